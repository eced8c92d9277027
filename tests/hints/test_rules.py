"""Every rule, on graphs that deserve its hint and on graphs that do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from qnn.hints.qnn_graph import QnnGraph
from qnn.hints.registry import RULES, hints_of
from qnn.hints.rules.fusions import GELU, HARD_SWISH, LAYER_NORM, SILU
from qnn.hints.rules.layout import TRANSPOSES
from qnn.hints.rules.memory import SOFTMAX, SPILL
from qnn.hints.rules.shape import BATCH, BUCKET, INTEGER_CHIPS
from qnn.hints.rules.sizes import CHANNELS, INNER
from qnn.hints.seen import Filled, Rule, Seen
from tests.hints.graphs import conv, model, node, number, op, seen


def only(rule: Rule, of: Seen) -> tuple[str, tuple[str, ...]]:
    (hint,) = rule.hints(of)
    assert (hint.id, hint.title, hint.change) == (rule.id, rule.title, rule.change)
    return hint.found, hint.details


def convs(*layers: tuple[str, int, int, str]) -> QnnGraph:
    made = [conv(name, into, out, kind=kind) for name, into, out, kind in layers]
    return QnnGraph(tuple(one for one, _ in made), {key: dim for _, dims in made for key, dim in dims.items()})


def products(*shapes: tuple[int, int, int]) -> QnnGraph:
    """Products [rows, inner] × [inner, out], as MatMul."""
    nodes = tuple(op("MatMul", [f"a{i}", f"b{i}"], f"c{i}", [f"mm{i}"]) for i in range(len(shapes)))
    dims: dict[str, tuple[int, ...]] = {}
    for i, (rows, inner, out) in enumerate(shapes):
        dims |= {f"a{i}": (1, rows, inner), f"b{i}": (1, inner, out), f"c{i}": (1, rows, out)}
    return QnnGraph(nodes, dims)


class TestChannels:
    def test_channels_that_fill_their_groups_are_fine(self) -> None:
        assert not CHANNELS.hints(seen(qnn=convs(("a", 3, 32, "Conv2d"), ("b", 32, 64, "Conv2d"))))

    def test_the_share_of_work_for_nothing_is_said(self) -> None:
        # 33 → 33 channels cost 64 × 64: 1 - 33²/64² of this layer.
        found, details = only(CHANNELS, seen(qnn=convs(("b", 33, 33, "Conv2d"))))
        assert found == "73% of all multiplications are of convolutions whose sizes are rounded up to 32"
        assert details == ("b_node (Conv2d): in 33 → 64, out 33 → 64, 73.4% of all",)

    def test_a_pictures_channels_are_not_blamed(self) -> None:
        assert not CHANNELS.hints(seen(qnn=convs(("stem", 3, 32, "Conv2d"))))
        assert CHANNELS.hints(seen(qnn=convs(("stem", 5, 32, "Conv2d"))))

    def test_a_small_layer_beside_large_ones_is_not_worth_a_word(self) -> None:
        odd = ("odd", 33, 33, "DepthWiseConv2d")
        assert not CHANNELS.hints(seen(qnn=convs(odd, *((f"c{i}", 256, 256, "Conv2d") for i in range(3)))))
        assert "out" not in only(CHANNELS, seen(qnn=convs(odd)))[1][0]

    def test_depthwise_channels_count_once(self) -> None:
        assert only(CHANNELS, seen(qnn=convs(("d", 33, 33, "DepthWiseConv2d"))))[0].startswith("48% of all")

    def test_a_transposed_convolution_is_counted_at_its_input(self) -> None:
        """Twice as wide an output from 24 to 1 channels: 28² places; beside it a plain layer at 56²."""
        up = op("TransposeConv2d", ["x", "w"], "y", ["up"])
        dims = {"x": (1, 28, 28, 24), "w": (2, 2, 24, 1), "y": (1, 56, 56, 1)}
        plain, more = conv("c", 32, 32)
        _, details = only(CHANNELS, seen(qnn=QnnGraph((up, plain), {**dims, **more})))
        done = 28 * 28 * 4 * 32 * 32
        share = (done - 28 * 28 * 4 * 24) / (done + 56 * 56 * 9 * 32 * 32)
        assert details == (f"up (TransposeConv2d): in 24 → 32, out 1 → 32, {share:.1%} of all",)


class TestInnerDimensions:
    def test_multiples_of_32_are_fine(self) -> None:
        assert not INNER.hints(seen(qnn=products((128, 384, 1536))))

    def test_an_odd_inner_dimension_and_an_odd_result(self) -> None:
        found, details = only(INNER, seen(qnn=products((128, 100, 50))))
        assert found.startswith("39% of all multiplications are of products")
        assert details == ("mm0 (MatMul): inner 100 → 128, out 50 → 64, 39.0% of all",)

    def test_a_transposed_weight_is_read_the_other_way_round(self) -> None:
        turned = QnnGraph((op("FullyConnected", ["a", "w"], "c", ["fc"]),), {"w": (64, 40), "c": (1, 64), "a": (1, 40)})
        assert only(INNER, seen(qnn=turned))[1] == ("fc (FullyConnected): inner 40 → 64, 37.5% of all",)
        flagged = QnnGraph(
            (op("MatMul", ["a", "w"], "c", ["mm"], ["transpose_in1"]),), {"w": (64, 40), "c": (1, 64), "a": (1, 40)}
        )
        assert only(INNER, seen(qnn=flagged))[1][0].startswith("mm (MatMul): inner 40 → 64")

    def test_products_and_convolutions_are_weighed_together(self) -> None:
        heavy = convs(("c", 256, 256, "Conv2d"))
        light = products((1, 100, 50))
        both = QnnGraph((*heavy.nodes, *light.nodes), {**(heavy.dims or {}), **(light.dims or {})})
        assert not INNER.hints(seen(qnn=both))


DIMS: dict[str, tuple[int, ...]] = {
    "x": (1, 3, 224, 224), "t": (1, 224, 224, 3), "m": (1, 56, 56, 64), "n": (1, 64, 56, 56),
    "s": (1, 8), "u": (8, 1),
}  # fmt: skip


class TestTransposes:
    def graph(self, *nodes: Any) -> QnnGraph:
        return QnnGraph(nodes, DIMS, frozenset({"x"}), frozenset({"y"}))

    def test_inserted_ones_are_named_with_their_tensors(self) -> None:
        graph = self.graph(op("Transpose", ["x"], "t"), op("Relu", ["t"], "m", ["relu"]), op("Transpose", ["m"], "n"))
        found, details = only(TRANSPOSES, seen(qnn=graph))
        assert found == "the compiler put in 2 Transposes, moving 702 kB a run"
        assert details == (
            "tensor m [1, 56, 56, 64] → [1, 64, 56, 56], made by relu: 401 kB",
            "input x [1, 3, 224, 224] → [1, 224, 224, 3]: 301 kB",
        )

    def test_the_models_own_are_its_own(self) -> None:
        assert not TRANSPOSES.hints(seen(qnn=self.graph(op("Transpose", ["m"], "n", ["transpose_3"]))))

    def test_small_ones_are_not_worth_a_word(self) -> None:
        assert not TRANSPOSES.hints(seen(qnn=self.graph(op("Transpose", ["s"], "u"))))


def gelu_tanh(root: float) -> onnx.ModelProto:
    return model(
        [
            node("Mul", ["x", "x"], "x2"), node("Mul", ["x2", "x"], "x3"), node("Mul", ["x3", "k"], "kx"),
            node("Add", ["x", "kx"], "inner"), node("Mul", ["inner", "root"], "scaled"), node("Tanh", ["scaled"], "t"),
            node("Add", ["t", "one"], "u"), node("Mul", ["x", "u"], "v"), node("Mul", ["v", "half"], "y"),
        ],
        [number("k", 0.044715), number("root", root), number("one", 1), number("half", 0.5)],
    )  # fmt: skip


class TestGelu:
    def test_one_that_did_not_become_gelu(self) -> None:
        qnn = QnnGraph((op("Tanh", ["scaled"], "t", ["t"]),))
        found, details = only(GELU, seen(gelu_tanh(0.7978845608), qnn))
        assert found == "GELU is written out in a form that does not become Gelu, once"
        assert details == ("t (Tanh): became Tanh",)

    def test_one_that_did(self) -> None:
        fused = QnnGraph((op("Gelu", ["x"], "y", ["x2", "x3", "kx", "inner", "scaled", "t", "u", "v", "y"]),))
        assert not GELU.hints(seen(gelu_tanh(0.7978845608), fused))

    def test_another_tanh_is_no_gelu(self) -> None:
        assert not GELU.hints(seen(gelu_tanh(0.5), QnnGraph((op("Tanh", ["scaled"], "t", ["t"]),))))

    def test_a_lone_erf(self) -> None:
        lone = model([node("Erf", ["x"], "e"), node("Add", ["e", "x"], "y")])
        assert only(GELU, seen(lone))[1] == ("e (Erf): not seen in the compiled graph",)


def layer_norm(square: onnx.NodeProto, *tail: onnx.NodeProto) -> onnx.ModelProto:
    head = [node("ReduceMean", ["x"], "mean", axes=[-1]), node("Sub", ["x", "mean"], "d"), square]
    middle = [node("ReduceMean", ["q"], "var", axes=[-1]), node("Add", ["var", "eps"], "v"), node("Sqrt", ["v"], "s")]
    return model([*head, *middle, *tail], [number("eps", 1e-5), number("two", 2)])


class TestLayerNorm:
    @pytest.mark.parametrize("square", [node("Mul", ["d", "d"], "q"), node("Pow", ["d", "two"], "q")])
    def test_without_gamma_it_is_not_fused(self, square: onnx.NodeProto) -> None:
        found, _ = only(LAYER_NORM, seen(layer_norm(square, node("Div", ["d", "s"], "y"))))
        assert found == "a layer norm is written out in a form that does not become LayerNorm, once"

    def test_one_that_the_compiler_recognised_is_fine(self) -> None:
        qnn = QnnGraph((op("LayerNorm", ["x"], "y", ["mean", "d", "q", "var", "v", "s", "y"]),))
        assert not LAYER_NORM.hints(seen(layer_norm(node("Mul", ["d", "d"], "q"), node("Div", ["d", "s"], "y")), qnn))

    def test_with_a_reciprocal_too(self) -> None:
        tail = (node("Reciprocal", ["s"], "r"), node("Mul", ["r", "d"], "y"))
        assert LAYER_NORM.hints(seen(layer_norm(node("Mul", ["d", "d"], "q"), *tail)))

    def test_the_operator_is_fine(self) -> None:
        gamma = numpy_helper.from_array(np.ones(64, np.float32), "g")
        assert not LAYER_NORM.hints(seen(model([node("LayerNormalization", ["x", "g"], "y")], [gamma])))

    def test_another_fraction_is_no_norm(self) -> None:
        other = [node("ReduceMean", ["x"], "m", axes=[-1]), node("Sub", ["x", "m"], "d"), node("Div", ["d", "m"], "y")]
        assert not LAYER_NORM.hints(seen(model(other)))


class TestSilu:
    def test_a_sigmoid_of_exp(self) -> None:
        written = [
            node("Neg", ["x"], "n"), node("Exp", ["n"], "e"), node("Add", ["e", "one"], "a"),
            node("Div", ["x", "a"], "y"),
        ]  # fmt: skip
        found, details = only(SILU, seen(model(written, [number("one", 1)])))
        assert found == "a sigmoid (of SiLU, say) is written out in a form that does not become Sigmoid, once"
        assert details[0].startswith("y (Div)")

    def test_sigmoid_and_mul_is_as_good_as_it_gets(self) -> None:
        assert not SILU.hints(seen(model([node("Sigmoid", ["x"], "s"), node("Mul", ["x", "s"], "y")])))

    def test_another_sum_below_a_fraction_is_none(self) -> None:
        other = [node("Exp", ["x"], "e"), node("Add", ["e", "one"], "a"), node("Div", ["x", "a"], "y")]
        assert not SILU.hints(seen(model(other, [number("one", 1)])))


class TestHardSwish:
    def test_of_hard_sigmoid(self) -> None:
        assert HARD_SWISH.hints(seen(model([node("HardSigmoid", ["x"], "s"), node("Mul", ["s", "x"], "y")])))

    @pytest.mark.parametrize("three", [3.0, 2.0])
    def test_of_clip(self, three: float) -> None:
        written = [
            node("Add", ["x", "three"], "p"), node("Clip", ["p", "zero", "six"], "c"),
            node("Mul", ["x", "c"], "m"), node("Div", ["m", "six"], "y"),
        ]  # fmt: skip
        hints = HARD_SWISH.hints(seen(model(written, [number("three", three), number("zero", 0), number("six", 6)])))
        assert len(hints) == (three == 3.0)

    def test_of_a_clip_that_is_divided_first(self) -> None:
        written = [
            node("Add", ["three", "x"], "p"), node("Clip", ["p", "zero", "six"], "c"),
            node("Div", ["c", "six"], "g"), node("Mul", ["g", "x"], "y"),
        ]  # fmt: skip
        assert HARD_SWISH.hints(seen(model(written, [number("three", 3), number("zero", 0), number("six", 6)])))

    def test_a_gate_of_something_else_and_the_operator_are_fine(self) -> None:
        gate = [node("Relu", ["x"], "r"), node("HardSigmoid", ["r"], "s"), node("Mul", ["s", "x"], "y")]
        assert not HARD_SWISH.hints(seen(model(gate)))
        assert not HARD_SWISH.hints(seen(model([node("HardSwish", ["x"], "y")])))


class TestMemory:
    @pytest.mark.parametrize(("length", "hinted"), [(512, False), (1024, True)])
    def test_a_softmax_that_does_not_fit_vtcm(self, length: int, hinted: bool) -> None:
        # 4 heads, fp16, in and out: 4 MB at 512, 16.8 MB at 1024, of 8 MiB.
        graph = QnnGraph((op("Softmax", ["s"], "p", ["softmax"]),), {"s": (1, 4, length, length)})
        hints = SOFTMAX.hints(seen(qnn=graph))
        assert bool(hints) is hinted
        if hinted:
            assert hints[0].found == "1 Softmax with more in and out than the 8 MB of VTCM"
            assert hints[0].details == ("softmax [1, 4, 1024, 1024]: 16.8 MB",)

    def test_a_chip_with_less_memory_is_hinted_sooner(self) -> None:
        graph = QnnGraph((op("Softmax", ["s"], "p", ["softmax"]),), {"s": (1, 4, 512, 512)})
        small = next(soc for soc in ("SM7550", "QCM6490", "SM7325") if seen(soc=soc).soc.vtcm_mb <= 2)
        assert SOFTMAX.hints(seen(qnn=graph, soc=small))

    def test_spill_is_held_against_vtcm(self) -> None:
        # CREPE full at 8 frames keeps 14.4 MB, MiniLM at batch 8 0.13 MB.
        assert only(SPILL, seen(spill_bytes=14_417_920))[0].startswith(
            "the binary keeps 14.4 MB in a spill/fill buffer"
        )
        assert not SPILL.hints(seen(spill_bytes=131_072))
        assert not SPILL.hints(seen(spill_bytes=None))


class TestShape:
    def test_a_bucket_that_every_sample_leaves_empty(self) -> None:
        large = (Filled("tokens", "length", 512, 40), Filled("mask", "length", 512, 300))
        assert only(BUCKET, seen(filled=large))[1] == ("length of tokens: at most 40 of 512 are used",)
        assert not BUCKET.hints(seen(filled=(Filled("tokens", "length", 512, 256),)))

    def test_integer_chips_are_counted_and_named(self) -> None:
        found, _ = only(INTEGER_CHIPS, seen(integer_chips=tuple(f"C{i}" for i in range(10))))
        assert found.startswith(
            "10 of the model's targets have no floating point: C0, C1, C2, C3, C4, C5, C6, C7 and 2 more;"
        )
        assert not INTEGER_CHIPS.hints(seen())

    def test_a_batch_of_everything(self) -> None:
        assert only(BATCH, seen(model([node("Relu", ["x"], "y")], shape=[8, 3, 24, 24])))[0] == (
            "every input and output begins with a batch of 8"
        )
        assert not BATCH.hints(seen(model([node("Relu", ["x"], "y")], shape=[1, 3, 24, 24])))

    def test_a_first_axis_that_outputs_do_not_share_is_no_batch(self) -> None:
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            [node("ReduceMean", ["x"], "y", axes=[0])],
            "g",
            [value("x", TensorProto.FLOAT, [32, 576])],
            [value("y", TensorProto.FLOAT, [1, 576])],
        )
        assert not BATCH.hints(seen(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])))


def test_a_plain_graph_deserves_nothing() -> None:
    assert hints_of(seen()) == ()


def test_ids_are_in_order_and_every_rule_says_why_and_what() -> None:
    assert [rule.id for rule in RULES] == [f"QH{i:02d}" for i in range(1, len(RULES) + 1)]
    assert all(rule.why.endswith(".") and rule.change.endswith(".") for rule in RULES)
