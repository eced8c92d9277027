"""One pull in a process of its own: python -m tests.pull.pull_once BASE OUT CACHE."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.pull.conftest import Puller


def main() -> None:
    base, out, cache = sys.argv[1:]
    taken = Puller(Path(out), Path(cache)).pull(base)
    print(taken.folder)


if __name__ == "__main__":
    main()
