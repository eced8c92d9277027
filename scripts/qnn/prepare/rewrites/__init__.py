"""Exact transformations of a prepared graph, each small, named and recorded, in the order in which they are applied.

A rewrite is a module of this package with a ``REWRITE`` (see base.py); its name is the module's with dashes, and
its line in MODULES is all that makes it run. This file imports neither onnx nor NumPy: rules of model.yaml need the
names alone.
"""

MODULES: tuple[str, ...] = (
    "double_to_float",
    "gather_nd",
    "sum_to_mean",
    "rms_norm",
    "scaled_squares",
    "softmax_mask",
    "lone_erf",
    "clip_exp",
    "computed_clip",
    "default_activations",
)


def names() -> tuple[str, ...]:
    """The names of all rewrites, as `graphs.NAME.rewrites` of model.yaml has them, in order of application."""
    return tuple(module.replace("_", "-") for module in MODULES)
