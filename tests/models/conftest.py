"""One bench for all tests of the models; what it downloads stays in pytest's cache."""

import pytest
from tests.models.bench import Bench


@pytest.fixture(scope="session")
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(request.config.cache.mkdir("model-sources"), tmp_path_factory.mktemp("models"))
