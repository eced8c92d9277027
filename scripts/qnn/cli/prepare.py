"""qnn-forge prepare: all that does not depend on the chip."""

from __future__ import annotations

from pathlib import Path

import click

from qnn.cli.console import out, print_json
from qnn.cli.options import jobs_option, json_option, store_option


@click.command()
@click.argument("models", nargs=-1, metavar="[MODEL]...")
@click.option("--precision", "precisions", multiple=True, metavar="NAME", help="Only these precisions (globs).")
@click.option("--bucket", "buckets", multiple=True, metavar="NAME", help="Only these shape buckets (globs).")
@jobs_option
@store_option
@json_option
def prepare(
    *,
    models: tuple[str, ...],
    precisions: tuple[str, ...],
    buckets: tuple[str, ...],
    jobs: int,
    store: Path,
    as_json: bool,
) -> None:
    """Fetch the sources of MODELs, prepare their graphs, make samples and float results, once for all chips.

    What is made stays in the store, where `qnn-forge build` finds it and `qnn-forge store export` takes it from.
    """
    from qnn.build.run import run_prepare  # noqa: PLC0415
    from qnn.model.load import find_models, load_models  # noqa: PLC0415
    from qnn.plan.targets import Wanted, variants_of  # noqa: PLC0415

    wanted = Wanted(buckets=buckets, precisions=precisions)
    variants = [variant for model in load_models(find_models(models)) for variant in variants_of(model, wanted)]
    run_prepare(variants, store, jobs)
    if as_json:
        print_json({"schema": 1, "variants": [variant.name for variant in variants]})
    else:
        for variant in variants:
            out().print(f"[green]ready[/green] {variant.name}")
