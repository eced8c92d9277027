"""Faults of the compiler that are known: met in a graph, or no longer what the table says."""

from qnn.errors.base import ExitCode, ForgeError


class KnownFault(ForgeError):
    """What: The graph holds a form that the HTP compiler is known to compute wrongly, or cannot compile, on this chip
    and in this precision. Each node is named, with what to do about it.

    Why: The compiler accepts such graphs without a word, or refuses them without a name. qnn-forge keeps a table of
    these faults, each measured (docs/faults.md); most are mended by a rewrite while the graph is prepared, and what
    cannot be mended is refused before anything is compiled.

    Mend: Do what the lines say. If the fault is gone from your QAIRT version (`qnn-forge faults check` measures it),
    report it, so that the entry is removed.
    """

    id = "QF450"
    title = "the graph meets a known fault of the compiler"
    exit_code = ExitCode.GRAPH


class FaultsDiffer(ForgeError):
    """What: The installed compiler does not behave as the table of known faults says. Each difference is listed.

    Why: Every entry carries a tiny graph that shows the fault. Another QAIRT version may have mended it, may do
    something else, or may have broken what was right after a rewrite.

    Mend: Update scripts/qnn/faults/faults.yaml: the versions an entry was seen in, what its probes show, or remove
    it with its rewrite. Until then builds are safe: every binary is still verified.
    """

    id = "QF451"
    title = "the table of known faults does not hold for this compiler"
    exit_code = ExitCode.GRAPH
