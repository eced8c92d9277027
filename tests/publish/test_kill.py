"""A short run of the chaos script, whose long run is quoted in docs/reliability.md."""

import pytest

from tests.chaos import kill_publishes
from tests.publish.conftest import Shop


@pytest.mark.slow
def test_killed_publishes_complete_and_send_nothing_twice(built_shop: Shop) -> None:
    assert kill_publishes.run(count=3, seed=1, shop=built_shop) == 0
