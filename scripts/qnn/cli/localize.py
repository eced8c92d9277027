"""qnn-forge localize: the first wrong tensor of a graph that misses its gate, and the node to blame."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from qnn.cli.console import err, out, print_json
from qnn.cli.options import json_option, store_option

if TYPE_CHECKING:
    from qnn.localize.facts import Located
    from qnn.plan.targets import Target


@click.command()
@click.argument("model")
@click.option("--soc", required=True, metavar="NAME", help="The chip.")
@click.option("--graph", metavar="NAME", help="Which graph.  [default: each]")
@click.option("--bucket", metavar="NAME", help="Which shape bucket.  [default: the first]")
@click.option("--precision", metavar="NAME", help="Which precision.  [default: the first]")
@click.option(
    "--threshold",
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    default=0.999,
    show_default=True,
    help="Least cosine of a tensor that is right.",
)
@click.option("--sample", type=click.IntRange(min=0), metavar="N", help="Which sample.  [default: the first wrong one]")
@click.option(
    "--bisect/--no-bisect", default=None, help="Cut the graph in two, again and again, before looking at tensors."
)
@click.option(
    "--without", "off", multiple=True, metavar="REWRITE", help="Prepare the graph without this rewrite (`all`: any)."
)
@store_option
@json_option
def localize(  # noqa: PLR0913 - one parameter an option
    *,
    model: str,
    soc: str,
    graph: str | None,
    bucket: str | None,
    precision: str | None,
    threshold: float,
    sample: int | None,
    bisect: bool | None,
    off: tuple[str, ...],
    store: Path,
    as_json: bool,
) -> None:
    """Run MODEL on the emulator with its inner tensors as outputs; name the first wrong one and what makes it.

    Every tensor is held against the same prepared graph on the CPU. A finding is tried again with its node alone on
    true inputs, and the rest of the graph with its true value. Graphs of more than 300 nodes are bisected.
    """
    from qnn.localize.find import Question, locate  # noqa: PLC0415

    target = _target(model, soc, bucket, precision, off)
    names = [graph] if graph else [one.name for one in target.variant.model.graphs]
    found = []
    for name in names:
        question = Question(target, name, threshold, sample, bisect)
        found.append(locate(question, store, lambda text: err().print(f"[dim]{text}[/dim]", markup=True)))
    if as_json:
        from cattrs import unstructure  # noqa: PLC0415

        print_json({"schema": 1, "graphs": [unstructure(one) for one in found]})
    else:
        for one in found:
            _print(one)


def _target(model: str, soc: str, bucket: str | None, precision: str | None, off: tuple[str, ...]) -> Target:
    from qnn.chips.table import load_table, require_precision  # noqa: PLC0415
    from qnn.localize.find import without_rewrites  # noqa: PLC0415
    from qnn.model.load import find_models, load_models  # noqa: PLC0415
    from qnn.plan.targets import Target, Wanted, variants_of  # noqa: PLC0415
    from qnn.prepare.rewrites import names  # noqa: PLC0415

    unknown = sorted({*off} - {*names(), "all"})
    if unknown:
        raise click.UsageError(f"no rewrite is called {unknown[0]!r}; there are: {', '.join(names())}")
    (loaded,) = load_models(find_models((model,)))
    if off:
        loaded = without_rewrites(loaded, names() if "all" in off else off)
    wanted = Wanted(buckets=(bucket,) if bucket else (), precisions=(precision,) if precision else ())
    variant = variants_of(loaded, wanted)[0]
    chip = load_table().lookup(soc)
    require_precision(chip, variant.precision)
    return Target(variant, chip)


def _print(found: Located) -> None:
    from rich.markup import escape  # noqa: PLC0415

    from qnn.localize.verdict import lines  # noqa: PLC0415

    console = out()
    for line in lines(found):
        console.print(escape(line), highlight=False)
