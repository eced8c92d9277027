"""qnn-forge range: what leaves fp16, and whether it does harm."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from qnn.cli.console import out, print_json
from qnn.cli.options import jobs_option, json_option, store_option

if TYPE_CHECKING:
    from qnn.errors.base import ForgeError
    from qnn.ranges.facts import RangeFacts

# Tensors shown without --all: the largest, and the arguments of Exp, Softplus and Log.
_SHOWN = 10


@click.command("range")
@click.argument("models", nargs=-1, metavar="[MODEL]...")
@click.option("--precision", "precisions", multiple=True, metavar="NAME", help="Only these precisions (globs).")
@click.option("--bucket", "buckets", multiple=True, metavar="NAME", help="Only these shape buckets (globs).")
@click.option("--samples", type=click.IntRange(min=1), default=1, show_default=True, help="How many samples are run.")
@click.option("--all", "everything", is_flag=True, help="Every tensor, not only those that say something.")
@jobs_option
@store_option
@json_option
def range_(
    *,
    models: tuple[str, ...],
    precisions: tuple[str, ...],
    buckets: tuple[str, ...],
    samples: int,
    everything: bool,
    jobs: int,
    store: Path,
    as_json: bool,
) -> int:
    """Run MODELs in float on their samples and say which tensors leave fp16's range, and whether that does harm.

    Only float precisions are looked at: a quantized tensor has a range of its own. A build makes the same check before
    it compiles. Exit code 6 when a result would be wrong and model.yaml does not acknowledge it (checks.ranges).
    """
    from qnn.build.ranges import run_ranges  # noqa: PLC0415
    from qnn.cli.console import print_error  # noqa: PLC0415
    from qnn.model.load import find_models, load_models  # noqa: PLC0415
    from qnn.plan.targets import Wanted, variants_of  # noqa: PLC0415

    wanted = Wanted(buckets=buckets, precisions=precisions)
    variants = [variant for model in load_models(find_models(models)) for variant in variants_of(model, wanted)]
    results = run_ranges(variants, store, jobs, samples)
    faults = [result.fault for result in results if result.fault is not None]
    if as_json:
        from cattrs import unstructure  # noqa: PLC0415

        documents = [
            {"variant": result.variant.name, "wrong": result.fault is not None, **unstructure(result.facts)}
            for result in results
        ]
        print_json({"schema": 1, "graphs": documents})
    else:
        for result in results:
            _print(result.variant.name, result.facts, result.fault, everything=everything)
    for fault in faults:
        print_error(fault)
    return int(faults[0].exit_code) if faults else 0


def _print(variant: str, facts: RangeFacts, fault: ForgeError | None, *, everything: bool) -> None:
    from rich.markup import escape  # noqa: PLC0415

    from qnn.ranges.verdict import lines  # noqa: PLC0415

    console = out()
    verdict = "[red]wrong[/red]" if fault is not None else "[green]fits[/green]"
    console.print(f"{verdict} {escape(variant)} {escape(facts.graph)}", highlight=False)
    for finding in facts.findings:
        weight = "[red]wrong[/red]" if finding.harmful else "[dim]no harm[/dim]"
        where, remedy = lines(finding)
        console.print(f"  {weight} {escape(where)}", highlight=False)
        if finding.harmful:
            console.print(f"  {escape(remedy)}", highlight=False)
    for output in facts.outputs:
        said = f"  output {output.name}: cosine {output.cosine:.4f}, largest error {output.max_rel:.3g} of full scale"
        console.print(escape(said), highlight=False)
    console.print(_table(facts, everything=everything))


def _table(facts: RangeFacts, *, everything: bool) -> object:
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=None, pad_edge=False)
    for heading in ("tensor", "made by", "read by", "minimum", "maximum", "smallest", "square", "sum", "cumsum", "exp"):
        table.add_column(heading, justify="left" if heading in ("tensor", "made by", "read by") else "right")
    made = [tensor for tensor in facts.tensors if tensor.op != "constant"]
    shown = made
    if not everything:
        functions = [t for t in made if {"Exp", "Softplus", "Log"} & set(t.feeds)][:_SHOWN]
        largest = sorted(made, key=lambda tensor: -tensor.peak)[:_SHOWN]
        shown = [tensor for tensor in made if tensor in largest or tensor in functions]
    for tensor in shown:
        numbers = (
            tensor.minimum,
            tensor.maximum,
            tensor.smallest,
            tensor.square,
            tensor.sum,
            tensor.cumsum,
            tensor.exp,
        )
        table.add_row(
            tensor.name, tensor.op, " ".join(tensor.feeds), *("inf" if abs(n) > 1e300 else f"{n:.3g}" for n in numbers)
        )
    return table
