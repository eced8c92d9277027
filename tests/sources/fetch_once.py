"""One fetch in a process of its own: python -m tests.sources.fetch_once URL SHA256 SIZE OUT DOWNLOADS."""

from __future__ import annotations

import sys
from pathlib import Path

from qnn.model.spec import Source, SourceKind
from qnn.sources.fetch import fetch
from tests.sources.conftest import PLAIN


def main() -> None:
    url, sha256, size, out, downloads = sys.argv[1:]
    source = Source("det", SourceKind.URL, url, None, sha256, int(size))
    fetched = fetch(source, Path(out), Path(downloads), model_folder=Path(out), policy=PLAIN)
    print(fetched.sha256)


if __name__ == "__main__":
    main()
