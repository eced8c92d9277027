"""Faults of chains: graphs that are run one after another, each on what the ones before it gave."""

from qnn.errors.base import ExitCode, ForgeError


class ChainInterface(ForgeError):
    """What: What `checks.chain.feed` makes for a graph is not what that graph takes: a name, a dtype, a shape, or the
    layout (channels last where they belong first). The message names the graph, the input and both shapes.

    Why: An application would hand the graph the same thing. Bytes of another layout or dtype are read without any
    error on a device, and the result is nonsense.

    Mend: Correct the function: `graphs.NAME.inputs` in model.yaml says what the graph takes, and the function gets it
    as `inputs`. For channels first out of channels last write `array.transpose(0, 3, 1, 2)`.
    """

    id = "QF650"
    title = "graphs of a chain do not fit together"
    exit_code = ExitCode.GATE


class ChainEmpty(ForgeError):
    """What: `checks.chain.feed` gave no inputs for a graph, or more than 256 of them, so the chain ends there.

    Why: A chain that stops after its first graph checks nothing of the others: a detector that finds no line leaves
    the reader untested. When it happens on HTP only, the graph before it is at fault.

    Mend: Choose a first sample on which there is something to find (`checks.data`). If the float chain is fine, look
    at the numbers of the graph before: `checks.metrics` of that graph should have caught it.
    """

    id = "QF651"
    title = "a chain without inputs for its next graph"
    exit_code = ExitCode.GATE


class ChainDiverged(ForgeError):
    """What: On HTP the chain ran its last graph another number of times than on float, and there is no metric of the
    chain to judge that.

    Why: The outputs cannot be compared one by one when there are other numbers of them, and it is not known whether
    the difference matters.

    Mend: Add `checks.chain.metric`, which looks at what comes out in the end (the text of all lines, the boxes of all
    faces), with gates under `checks.chain.metrics`.
    """

    id = "QF652"
    title = "a chain takes another course on HTP"
    exit_code = ExitCode.GATE
