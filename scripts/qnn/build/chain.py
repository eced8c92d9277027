"""A model's graphs run one after another, each on what the ones before it gave. Knows neither float nor HTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from qnn.files import link_or_copy
from qnn.model.spec import Graph

_INPUTS, _OUTPUTS = "inputs", "outputs"


@dataclass(frozen=True)
class Step:
    """One graph of one round: its runs as .npz files, inputs and outputs in the same order."""

    graph: str
    round: int
    inputs: tuple[Path, ...]
    outputs: tuple[Path, ...]


# Makes the inputs of a graph (000.npz … in the folder) from the steps before it.
Feed = Callable[[Graph, int, Sequence[Step], Path], tuple[Path, ...]]
# Runs a graph on inputs and leaves 000.npz … in the folder.
Run = Callable[[Graph, tuple[Path, ...], Path], None]


def run_chain(graphs: Sequence[Graph], rounds: int, first: Step, *, feed: Feed, run: Run, folder: Path) -> None:
    """Run all graphs `rounds` times over in their order; every step is kept below `folder`.

    The first step is `first`, which has been run already: the first graph on the model's samples. All others get what
    `feed` makes of the steps before them.
    """
    steps = [(turn, graph) for turn in range(rounds) for graph in graphs]
    for number, (turn, graph) in enumerate(steps):
        place = folder / f"{number:03d}-{graph.name}"
        for name in (_INPUTS, _OUTPUTS):
            (place / name).mkdir(parents=True)
        if number == 0:
            for name, files in ((_INPUTS, first.inputs), (_OUTPUTS, first.outputs)):
                for file in files:
                    link_or_copy(file, place / name / file.name)
        else:
            given = feed(graph, turn, read_chain(folder, len(graphs))[:number], place / _INPUTS)
            run(graph, given, place / _OUTPUTS)


def read_chain(folder: Path, graphs: int) -> tuple[Step, ...]:
    """The steps that `run_chain` left, in order; `graphs` is how many make a round."""
    return tuple(_steps(folder, graphs))


def _steps(folder: Path, graphs: int) -> Iterator[Step]:
    for place in sorted(path for path in folder.iterdir() if path.is_dir()):
        number, _, graph = place.name.partition("-")
        files = (tuple(sorted((place / name).glob("*.npz"))) for name in (_INPUTS, _OUTPUTS))
        yield Step(graph, int(number) // graphs, *files)
