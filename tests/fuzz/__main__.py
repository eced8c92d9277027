"""``python -m tests.fuzz COUNT``: as many made-up inputs as asked, of all kinds in turn, and what they did."""

from __future__ import annotations

import argparse
import math
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

from qnn.child import Host
from tests.fuzz.kinds import kinds
from tests.fuzz.warm import warm_host

NAMES = ("yaml", "onnx", "verify", "pull", "index", "inspect")


def main(arguments: list[str]) -> int:
    """Draw inputs; 1 when one of them did harm. The same arguments draw the same inputs."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("count", type=int, help="How many inputs.")
    parser.add_argument("--seed", default="0", help="What they are drawn from.")
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="N", help="Leave out the first N.")
    parser.add_argument("--minutes", type=float, default=math.inf, help="End after this time, whatever the count.")
    parser.add_argument("--kind", choices=NAMES, action="append", help="Only this kind; may be repeated.")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="Copy inputs that did harm below this folder.")
    asked = parser.parse_args(arguments)
    names = asked.kind or NAMES
    drawn: Counter[str] = Counter()
    harmful: Counter[str] = Counter()
    end = time.monotonic() + 60 * asked.minutes
    with warm_host() as host:
        for number in range(asked.first, asked.first + asked.count):
            if time.monotonic() > end:
                break
            name = names[number % len(names)]  # so that a number and a seed are always the same input of one kind
            drawn[name] += 1
            with tempfile.TemporaryDirectory(prefix="qnn-forge-fuzz-") as scratch:
                fault = _fault(host, name, f"{asked.seed}/{name}/{number}", Path(scratch))
                if fault is None:
                    continue
                harmful[name] += 1
                again = f"python -m tests.fuzz 1 --kind {name} --seed {asked.seed} --from {number}"
                print(f"{fault}\nagain: {again}\n", flush=True)
                if asked.keep is not None:
                    _keep(Path(scratch), asked.keep / f"{name}-{number}", f"{fault}\nagain: {again}\n")
    for name in sorted(drawn):
        did = f"{harmful[name]} of {drawn[name]} inputs of {name} did harm"
        print(did if harmful[name] else f"{drawn[name]} inputs of {name}")
    return int(bool(harmful))


def _fault(host: Host, kind: str, seed: str, scratch: Path) -> str | None:
    """What an input, drawn into the folder, did that it must not, or None."""
    try:
        kinds(host)[kind](Random(seed), scratch)
    except AssertionError as error:
        return f"{kind}: {error}"
    return None


def _keep(scratch: Path, folder: Path, said: str) -> None:
    """All files of an input that did harm, and fault.txt with what it did."""
    shutil.copytree(scratch, folder, symlinks=True, dirs_exist_ok=True)
    (folder / "fault.txt").write_text(said, encoding="utf-8", errors="backslashreplace")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
