"""Runs every benchmark and writes docs/performance.md."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

from benchmarks import ci_cost, fanout, memory, noop, overhead, peer, plan, quickstart, scale

PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"


def main() -> None:
    """Each section is a benchmark's docstring and its table."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("onnxruntime", "onnxruntime-qnn"))
    parts = [
        "# Performance",
        "Written by `make bench`; every figure is from one run of the benchmarks in `benchmarks/`, which run both "
        f"sides one after the other. Machine: {os.cpu_count()} cores, {platform.machine()}, Python "
        f"{platform.python_version()}, {packages}.",
    ]
    sections = (
        ("Quick start", quickstart),
        ("Overhead", overhead),
        ("Many chips", fanout),
        ("Beside Olive", peer),
        ("A large model", memory),
        ("Nothing to do", noop),
        ("Many results", scale),
        ("Planning", plan),
        ("CI", ci_cost),
    )
    for title, module in sections:
        print(title)
        lines = module.main()
        print("\n".join(lines))
        parts += [f"## {title}", (module.__doc__ or "").strip(), "\n".join(lines)]
    PAGE.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
