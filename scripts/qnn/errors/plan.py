"""Faults of a request: it asks for what a model or a chip does not offer."""

from typing import ClassVar

from qnn.errors.base import ExitCode, ForgeError


class ChipNotTargeted(ForgeError):
    """What: A chip named on the command line is not among the model's targets, or the model excludes it.

    Why: The model's author has a reason to leave a chip out; building for it all the same would hand out something
    that nobody vouches for.

    Mend: Leave the chip out, or change `targets` in the model.yaml.
    """

    id = "QF206"
    title = "the chip is not a target of the model"
    exit_code = ExitCode.CHIP


class NothingToBuild(ForgeError):
    """What: After all filters no combination of model, bucket, precision and chip is left.

    Why: A build that does nothing and says nothing looks like success.

    Mend: Widen `--soc`, `--precision` or `--bucket`, or the targets in model.yaml. The message lists what was left
    out and why.
    """

    id = "QF207"
    title = "nothing is left to build"
    exit_code = ExitCode.CHIP


class UnknownBucket(ForgeError):
    """What: The model has no shape bucket of the name given with `--bucket`.

    Why: Buckets are the fixed shapes a model is compiled for; each model names its own.

    Mend: Choose among the buckets that the message lists, or add one to the model.yaml.
    """

    id = "QF208"
    title = "the model has no such bucket"
    exit_code = ExitCode.CHIP
    what: ClassVar[str] = "bucket"


class UnknownPrecision(ForgeError):
    """What: The model is not offered in the precision given with `--precision`.

    Why: A precision needs a source graph of that precision, which the model.yaml names.

    Mend: Choose among the precisions that the message lists, or add one to the model.yaml.
    """

    id = "QF209"
    title = "the model has no such precision"
    exit_code = ExitCode.CHIP
    what: ClassVar[str] = "precision"


class NoBase(ForgeError):
    """What: `--changed-from` names a commit that git does not know here, or that has no history in common with HEAD.

    Why: What changed is told by comparing HEAD with the commit where it left the base. A shallow clone, as CI services
    make, has neither.

    Mend: Fetch the whole history (`git fetch --unshallow`, `fetch-depth: 0` of actions/checkout) and name a branch, tag
    or commit that exists, as `origin/main`. Or list the changed files with `--changed`.
    """

    id = "QF950"
    title = "the base of a change cannot be read"
    exit_code = ExitCode.SYSTEM
