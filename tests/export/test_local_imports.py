"""Which files of a model's folder count as the code of an export."""

from __future__ import annotations

from pathlib import Path

import pytest

from qnn.export.local_imports import local_imports

FILES = {
    "export.py": "import torch\nfrom network import Net\nimport parts.blocks\n",
    "network.py": "def f():\n    import deep\n",
    "deep.py": "import network\n",  # in a circle
    "data.py": "import other\n",
    "other.py": "",
    "parts/__init__.py": "from . import norms\nfrom .gates import (a, b)\n",
    "parts/blocks.py": "from ..shared import x\nfrom .inner.core import y\n",
    "parts/norms.py": "",
    "parts/gates.py": "",
    "parts/inner/__init__.py": "",
    "parts/inner/core.py": "from .. import late\n",
    "parts/late.py": "",
    "parts/unused.py": "",
    "shared.py": "",
    "broken.py": "def (:\nimport other\n",
    "usesbroken.py": "import broken, no_such_module\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_imports_are_followed_through_packages_and_functions(folder: Path) -> None:
    assert local_imports(folder, "export.py") == (
        "deep.py", "export.py", "network.py", "parts/__init__.py", "parts/blocks.py", "parts/gates.py",
        "parts/inner/__init__.py", "parts/inner/core.py", "parts/late.py", "parts/norms.py", "shared.py",
    )  # fmt: skip


def test_what_is_no_python_stands_for_itself(folder: Path) -> None:
    assert local_imports(folder, "usesbroken.py") == ("broken.py", "usesbroken.py")


def test_a_file_that_is_not_there_is_nothing(folder: Path) -> None:
    assert local_imports(folder, "no.py") == ()
