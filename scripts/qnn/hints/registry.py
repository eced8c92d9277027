"""All rules in the order of their ids."""

from __future__ import annotations

from qnn.hints.facts import Hint
from qnn.hints.rules import fusions, layout, memory, shape, sizes
from qnn.hints.seen import Rule, Seen

RULES: tuple[Rule, ...] = (
    sizes.CHANNELS,
    sizes.INNER,
    layout.TRANSPOSES,
    fusions.GELU,
    fusions.LAYER_NORM,
    fusions.SILU,
    fusions.HARD_SWISH,
    memory.SOFTMAX,
    memory.SPILL,
    shape.BUCKET,
    shape.INTEGER_CHIPS,
    shape.BATCH,
)


def hints_of(seen: Seen) -> tuple[Hint, ...]:
    """Every hint a graph deserves, in the order of the rules."""
    return tuple(hint for rule in RULES for hint in rule.hints(seen))
