"""Exact transformations of a prepared graph, each small, named and recorded, in the order in which they are applied.

A rewrite is a module of this package with a ``REWRITE`` (see base.py); its name is the module's with dashes, and
its line in MODULES is all that makes it run. This file imports neither onnx nor NumPy: rules of model.yaml need the
names alone.
"""

MODULES: tuple[str, ...] = (
    "double_to_float",
    "einsum_plain",
    "reduce_plain",
    "plain_functions",
    "plain_forms",
    "gather_nd",
    "sum_to_mean",
    "rms_norm",
    "rms_norm_rows",
    "scaled_squares",
    "softmax_mask",
    "lone_erf",
    "sigmoid_written_out",
    "function_written_out",
    "softmax_written_out",
    "log_softmax_range",
    "clip_exp",
    "computed_clip",
    "default_activations",
    "lstm_written_out",
    "fed_mask_floor",
    "softplus_flat",
    "reduce_l2_range",
    "resize_by_gather",
    "resize_by_matmul",
    "quantized_resize",
    "pad_by_gather",
    "conv_transpose_plain",
    "conv_transpose_dense",
    "conv_large_pads",
    "average_pool_padded",
    "quantized_average_pool",
    "max_pool_plain",
    "layer_norm_last_axis",
    "matmul_rank",
    "trilu_mask",
    "small_integers",
    "top_k_ties",
    "sequence_plain",
    "one_hot",
    "is_inf",
    "integer_plain",
    "wide_constants",
    "int64_interior",
    "computed_index",
    "integer_compare",
    "integer_mod",
    "integer_division",
    "cast_by_int32",
    "cast_flat",
    "arg_flat",
    "quantized_gather_index",
    "quantized_layer_norm",
    "quantized_silu_flat",
    "quantized_matmul_weight",
    "quantized_cum_sum",
    "quantized_own_constants",
)


def names() -> tuple[str, ...]:
    """The names of all rewrites, as `graphs.NAME.rewrites` of model.yaml has them, in order of application."""
    return tuple(module.replace("_", "-") for module in MODULES)
