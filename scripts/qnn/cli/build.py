"""qnn-forge build: models × chips → verified bundles."""

from __future__ import annotations

from pathlib import Path

import click

from qnn.cli.options import jobs_option, json_option, store_option


@click.command()
@click.argument("models", nargs=-1, metavar="[MODEL]...")
@click.option("--soc", "socs", multiple=True, metavar="EXPR", help="Chips: names, globs, all, public, flagships.")
@click.option("--precision", "precisions", multiple=True, metavar="NAME", help="Only these precisions (globs).")
@click.option("--bucket", "buckets", multiple=True, metavar="NAME", help="Only these shape buckets (globs).")
@click.option(
    "--verify",
    "policy",
    type=click.Choice(["all", "per-arch", "none"]),
    default="all",
    show_default=True,
    help="Run every binary on the emulator, one chip of each arch, or none.",
)
@click.option("--out", type=click.Path(path_type=Path), default=Path("dist"), show_default=True, help="Output folder.")
@click.option("--allow-restricted", is_flag=True, help="Also models whose licence restricts their use (QF157).")
@click.option("--keep-going", is_flag=True, help="Build what can be built after a failure.")
@click.option("--dry-run", is_flag=True, help="Say what would be built and what the store has.")
@jobs_option
@store_option
@json_option
def build(  # noqa: PLR0913, PLR0917 - one parameter an option
    models: tuple[str, ...],
    socs: tuple[str, ...],
    precisions: tuple[str, ...],
    buckets: tuple[str, ...],
    policy: str,
    out: Path,
    allow_restricted: bool,
    keep_going: bool,
    dry_run: bool,
    jobs: int,
    store: Path,
    as_json: bool,
) -> int:
    """Build verified bundles of MODELs (names below models/, or folders; all of them when none is named).

    \b
    qnn-forge build silero-vad --soc SM8650
    qnn-forge build ppocr-v4 --soc 'SM87*,QCS8550' --bucket p320 --out dist
    qnn-forge build --soc flagships --verify per-arch --json
    """
    from qnn.build.run import BuildRequest, run_build  # noqa: PLC0415
    from qnn.chips.table import load_table  # noqa: PLC0415
    from qnn.cli.build_view import print_dry_run, print_results, progress  # noqa: PLC0415
    from qnn.model.load import find_models, load_models  # noqa: PLC0415
    from qnn.plan.targets import Wanted, plan_build  # noqa: PLC0415

    loaded = load_models(find_models(models))
    wanted = Wanted(
        socs=tuple(part.strip() for expression in socs for part in expression.split(",") if part.strip()),
        buckets=buckets,
        precisions=precisions,
        allow_restricted=allow_restricted,
    )
    plan = plan_build(loaded, wanted, load_table())
    request = BuildRequest(plan=plan, policy=policy, out=out, store=store, jobs=jobs, keep_going=keep_going)
    if dry_run:
        print_dry_run(request, as_json=as_json)
        return 0
    with progress(request) as listener:
        results = run_build(request, listener)
    print_results(request, results, listener.said, as_json=as_json)
    failed = [result.error for result in results if result.error is not None]
    return int(failed[0].exit_code) if failed else 0
