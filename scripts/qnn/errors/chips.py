"""Faults of naming a chip, of asking a chip for what it cannot do, and of the chip table itself."""

from qnn.errors.base import ExitCode, ForgeError


class UnknownChip(ForgeError):
    """What: A name or number does not belong to any chip of the table. The nearest names are listed.

    Why: Chips have many names (SM8650, Snapdragon 8 Gen 3, SM8650P) and two kinds of numbers that are easily mixed
    up: QNN's soc_id (57) and the Linux kernel's soc0 id. The compiler takes a name it does not know with no more
    than a warning and writes a binary for no chip at all, so names are settled here. A bare number is never guessed.

    Mend: Use one of the names listed, or see `qnn-forge soc list`. For a number say which kind it is: `soc_id:57` or
    `soc0:69`. Spec-sheet part numbers (SM8750-AC) are not names a device reports: leave the part behind the dash out.
    """

    id = "QF201"
    title = "unknown chip"
    exit_code = ExitCode.CHIP


class AmbiguousChip(ForgeError):
    """What: A name belongs to several chips of the table, which are listed.

    Why: Some product names cover chips with different soc_ids (Snapdragon X Plus is SC8380XP or SC8340XP). A context
    binary is made for one soc_id, so a guess could give a file that does not load.

    Mend: Use the chip's own name from the list. On a device, `getprop ro.soc.model` (Android) tells which it is.
    """

    id = "QF202"
    title = "the name belongs to several chips"
    exit_code = ExitCode.CHIP


class ChipWithoutHtp(ForgeError):
    """What: The chip is known, but nothing can be compiled for it: it has no HTP, or no usable soc_id.

    Why: Context binaries run on the Hexagon Tensor Processor, which begins with Hexagon v68 (Snapdragon 888). The
    compiler accepts the ids of many older and smaller chips and then writes a generic binary that no device runs.

    Mend: Leave the chip out. An app can run the model on its CPU or GPU instead.
    """

    id = "QF203"
    title = "the chip has no HTP this compiler supports"
    exit_code = ExitCode.CHIP


class NoFp16(ForgeError):
    """What: A float precision was asked for on a chip whose HTP has no fp16.

    Why: fp16 is a property of the chip, not of its Hexagon version: SM8550 (v73) has it, SM8635 (v73) has not. On a
    chip without it the compiler ends with "graph is now invalid" or moves operators to the CPU, and for SM8350 it
    even writes a binary. So this is refused before anything is compiled.

    Mend: Use a quantized precision on this chip, or leave the chip out of the fp16 targets (`targets.exclude` with
    a reason). The message lists the nearest chips that have fp16.
    """

    id = "QF204"
    title = "the chip has no fp16"
    exit_code = ExitCode.CHIP


class ChipTableDiffers(ForgeError):
    """What: `qnn-forge soc check` asked the installed compiler for every chip, and its answers differ from the table.

    Why: A new QAIRT brings new chips and now and then other facts of known ones. Bundles are made from the table's
    facts (VTCM above all), so the table has to follow.

    Mend: Read the differences. For a new chip add a row to socs.yaml (or to without_htp.yaml); for a changed fact
    find a second source, then correct the row and its date. If the installed compiler is older than the pinned one,
    install the pinned one first.
    """

    id = "QF205"
    title = "the compiler and the chip table differ"
    exit_code = ExitCode.CHIP


class NoChipSelected(ForgeError):
    """What: An expression that selects chips, or one part of it, gives none.

    Why: An empty selection would build nothing and look like success. A glob that matches nothing is most often a
    typing error.

    Mend: Correct the glob, or use names or the words `all`, `public`, `flagships` and `groups`. A selection begins
    with what to include; `!` then takes chips away, as in `public,!SM8350`.
    """

    id = "QF210"
    title = "no chip is selected"
    exit_code = ExitCode.CHIP
