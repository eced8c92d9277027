"""``python -m benchmarks.zoo [MODEL…]`` builds and verifies models on one chip of each kind and writes docs/zoo.md.

Every bundle is recorded as soon as it is made, so a run can be broken off and begun again: what is in the store and in
the records is not made anew. ``--page`` writes the page from the records alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from benchmarks.zoo import page, records
from qnn.build.events import Silence
from qnn.build.results import TargetResult
from qnn.build.run import BuildRequest, run_build
from qnn.chips.table import load_table
from qnn.errors.base import ForgeError
from qnn.model.load import find_models, load_models
from qnn.plan.targets import BuildPlan, Target, Wanted, plan_build
from qnn.toolchains.pip.toolchain import PipToolchain

ROOT = Path(__file__).resolve().parents[2]
RECORDS = Path(__file__).with_name("zoo.json")
PAGE = ROOT / "docs" / "zoo.md"


def main() -> int:
    """Exit code: 0 when every bundle of the page was made and passed its gates."""
    options = _options()
    models = load_models(find_models(options.models, ROOT / "models"))
    table = load_table()
    plan = plan_build(models, Wanted(socs=(options.soc,)), table)
    known = records.load(options.records)
    for file in sorted(options.merge.glob("*.json")) if options.merge else ():
        known |= records.load(file)
    if options.merge:
        records.save(options.records, known.values())
    if not options.page:
        for record in _built(page.in_order(plan, known), known, options):
            known[record.key] = record
            records.save(options.records, known.values())
            print(f"{' '.join(record.key)}: {record.error or 'ok'} ({record.seconds:.0f} s)", flush=True)
    wanted = {page.key_of(target) for target in plan.targets}
    shown = [record for key, record in sorted(known.items()) if key in wanted]
    everything = load_models(find_models((), ROOT / "models"))
    PAGE.write_text(page.render(everything, plan, shown, table), encoding="utf-8")
    missing = len(wanted) - len(shown)
    failed = [record for record in shown if record.error]
    print(f"{len(shown) - len(failed)} passed, {len(failed)} failed, {missing} not built yet; {PAGE.name} is written")
    return 1 if failed or missing else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo", description=__doc__)
    parser.add_argument("models", nargs="*", help="names below models/; all when none is named")
    parser.add_argument("--soc", default="groups", help="chips (default: one of each kind)")
    parser.add_argument("--store", type=Path, default=Path.home() / ".cache" / "qnn-forge", help="the store")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where bundles go")
    parser.add_argument("--records", type=Path, default=RECORDS, help="what was measured so far")
    parser.add_argument("--jobs", type=int, default=2, help="bundles at once")
    parser.add_argument("--merge", type=Path, metavar="FOLDER", help="add the records of all .json files there first")
    parser.add_argument("--page", action="store_true", help="write the page from the records, build nothing")
    return parser.parse_args()


def _built(
    targets: Sequence[Target], known: Mapping[records.Key, records.Record], options: argparse.Namespace
) -> Iterator[records.Record]:
    """A record a target as soon as it is made, several at a time."""
    before = dict(known)
    with ThreadPoolExecutor(options.jobs) as pool:
        futures = [pool.submit(_build, target, before.get(page.key_of(target)), options) for target in targets]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _build(target: Target, known: records.Record | None, options: argparse.Namespace) -> records.Record:
    """Make one bundle; a failure is recorded and ends nothing."""
    request = BuildRequest(BuildPlan((target,), ()), "all", options.out, options.store, jobs=1, keep_going=True)
    (result,) = run_build(request, Silence())
    return _record(result, known)


def _record(result: TargetResult, known: records.Record | None) -> records.Record:
    rows = tuple(records.Row(g.graph, g.size, g.cosine, g.max_abs, g.metric) for g in result.graphs)
    # A bundle out of the store says nothing of what making it took; the record of when it was made does.
    seconds = (known.seconds if known else 0.0) if result.reused else result.seconds
    return records.Record(
        *page.key_of(result.target),
        PipToolchain().identity.qairt,
        round(seconds, 1),
        rows,
        result.error.id if result.error else "",
    )


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ForgeError as error:
        sys.exit(f"{error.id} {error}")
