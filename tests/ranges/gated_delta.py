"""A Gated DeltaNet layer as ONNX, chunked and token by token, and its float64 recurrence.

The formulas are those of the paper and of transformers' module: decay g = -A·softplus(a + dt_bias), beta = sigmoid(b),
keys and queries of length 1, S = exp(g)·S + k⊗(beta·(v - kᵀ·exp(g)·S)), o = qᵀS, a gated RMS norm and a projection. The
decay's own initialisation is transformers': dt_bias 1 and A in (0, 16), here the same four values every time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import ModelProto

from tests.prepare.graphs import Array, model, node, value

HEADS, KEY, HIDDEN = 4, 16, 64
DECAYS = np.array([0.05, 1.0, 6.0, 14.0], np.float32)


@dataclass(frozen=True)
class Layer:
    """One layer's weights. `spread` scales what the decay depends on: 1 is the initialisation, 8 a strong reset."""

    tokens: int
    chunk: int = 64
    spread: float = 1.0
    clip: bool = False  # the exponentials' arguments clipped at -80 by the author

    @property
    def weights(self) -> dict[str, Array]:
        rng = np.random.default_rng(5)

        def linear(rows: int, columns: int) -> Array:
            made: Array = (rng.standard_normal((rows, columns)) / np.sqrt(rows)).astype(np.float32)
            return made

        wide = HEADS * KEY
        return {
            **{f"w_{name}": linear(HIDDEN, wide) for name in "qkvz"},
            "w_a": linear(HIDDEN, HEADS) * np.float32(self.spread),
            "w_b": linear(HIDDEN, HEADS),
            "w_o": linear(wide, HIDDEN),
            "norm": np.ones(KEY, np.float32),
        }

    def feeds(self) -> dict[str, Array]:
        return {"x": np.random.default_rng(6).standard_normal((self.tokens, HIDDEN)).astype(np.float32)}

    def truth(self) -> Array:
        """The recurrence in float64: [tokens, HIDDEN]."""
        w = {name: array.astype(np.float64) for name, array in self.weights.items()}
        x = self.feeds()["x"].astype(np.float64)
        q, k, v, z = ((x @ w[f"w_{name}"]).reshape(-1, HEADS, KEY) for name in "qkvz")
        q, k = (array / np.sqrt((array**2).sum(-1, keepdims=True) + 1e-6) for array in (q, k))
        g = -DECAYS * np.log1p(np.exp(x @ w["w_a"] + 1))
        beta = 1 / (1 + np.exp(-(x @ w["w_b"])))
        state = np.zeros((HEADS, KEY, KEY))
        out = np.zeros_like(v)
        for t in range(self.tokens):
            state *= np.exp(g[t])[:, None, None]
            delta = beta[t][:, None] * (v[t] - np.einsum("hk,hkv->hv", k[t], state))
            state += k[t][:, :, None] * delta[:, None, :]
            out[t] = np.einsum("hk,hkv->hv", q[t] / np.sqrt(KEY), state)
        out /= np.sqrt((out**2).mean(-1, keepdims=True) + 1e-6)
        result: Array = (out * (z / (1 + np.exp(-z)))).reshape(self.tokens, -1) @ w["w_o"]
        return result

    def recurrent(self) -> ModelProto:
        """One step after the other: [HEADS, 1, KEY] times a state of [HEADS, KEY, KEY]."""
        build = _Build(self)
        q, k, v, g, beta = build.projections()
        decay = build.exp(g)
        state, outs = "", []
        for t in range(self.tokens):
            q_t, k_t, v_t, d_t, b_t = (build.token(name, t) for name in (q, k, v, decay, beta))
            if state:
                state = build.op("Mul", state, d_t)
                v_t = build.op("Sub", v_t, build.op("MatMul", k_t, state))
            delta = build.op("Mul", v_t, b_t)
            update = build.op("MatMul", build.op("Transpose", k_t, perm=[0, 2, 1]), delta)
            state = build.op("Add", state, update) if state else update
            outs.append(build.op("MatMul", q_t, state))
        return build.finished(build.op("Concat", *outs, axis=1))

    def chunked(self) -> ModelProto:
        """Chunks of `chunk` tokens by matrix products, the inverse by doubling; the state goes from one to the next."""
        build = _Build(self)
        projected = build.projections()
        state, outs = "", []
        for start in range(0, self.tokens, self.chunk):
            q, k, v, g, beta = (build.rows(name, start, start + self.chunk) for name in projected)
            out, state = build.chunk(q, k, v, g, beta, state)
            outs.append(out)
        return build.finished(outs[0] if len(outs) == 1 else build.op("Concat", *outs, axis=1))


class _Build:
    """Nodes of one layer; every method returns the name of the tensor it makes, [HEADS, tokens, …]."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.nodes: list[Any] = []
        c = layer.chunk
        self.constants: dict[str, Any] = {
            **layer.weights,
            "heads": np.array([layer.tokens, HEADS, -1]),
            "flat": np.array([layer.tokens, HEADS * KEY]),
            "axis1": np.array(1),
            "last": np.array([-1]),
            "minus_a": -DECAYS.reshape(HEADS, 1, 1),
            "bias": np.float32(1),
            "eps": np.float32(1e-6),
            "scale": np.float32(KEY**-0.5),
            "lower": np.tril(np.ones((c, c), np.float32)),
            "strictly": -np.tril(np.ones((c, c), np.float32), -1),
            "eye": np.eye(c, dtype=np.float32),
            "least": np.float32(-80),
        }

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        made = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(node(kind, inputs, [made], **attributes))
        return made

    def exp(self, x: str) -> str:
        return self.op("Exp", self.op("Clip", x, "least") if self.layer.clip else x)

    def rows(self, name: str, start: int, stop: int) -> str:
        if (start, stop) == (0, self.layer.tokens):
            return name
        self.constants |= {f"at{n}": np.array([n]) for n in (start, stop)}
        self.constants["one"] = np.array([1])
        return self.op("Slice", name, f"at{start}", f"at{stop}", "one")

    def token(self, name: str, t: int) -> str:
        return self.rows(name, t, t + 1)

    def projections(self) -> tuple[str, str, str, str, str]:
        q, k, v, a, b = (self._heads(self.op("MatMul", "x", f"w_{name}")) for name in "qkvab")
        q, k = self.op("Mul", self._unit(q), "scale"), self._unit(k)
        g = self.op("Mul", self.op("Softplus", self.op("Add", a, "bias")), "minus_a")
        return q, k, v, g, self.op("Sigmoid", b)

    def chunk(self, q: str, k: str, v: str, g: str, beta: str, state: str) -> tuple[str, str]:
        total = self.op("CumSum", g, "axis1")  # [HEADS, chunk, 1]
        across = self.op("Transpose", total, perm=[0, 2, 1])
        decay = self.exp(self.op("Mul", self.op("Sub", total, across), "lower"))
        decay = self.op("Mul", decay, "lower")
        k_t = self.op("Transpose", k, perm=[0, 2, 1])
        weighted = self.op("Mul", k, beta)
        step = self.op("Mul", self.op("Mul", self.op("MatMul", weighted, k_t), decay), "strictly")
        inverse = self.op("Add", step, "eye")
        power, size = step, 2
        while size < self.layer.chunk:  # (I - N)⁻¹ = (I + N)(I + N²)(I + N⁴)…
            power = self.op("MatMul", power, power)
            inverse = self.op("MatMul", inverse, self.op("Add", power, "eye"))
            size *= 2
        new = self.op("MatMul", inverse, self.op("Mul", v, beta))
        since = self.exp(total)
        inner = self.op("Mul", self.op("MatMul", q, k_t), decay)
        if state:
            carried = self.op("MatMul", inverse, self.op("Mul", weighted, since))
            new = self.op("Sub", new, self.op("MatMul", carried, state))
        out = self.op("MatMul", inner, new)
        if state:
            out = self.op("Add", out, self.op("MatMul", self.op("Mul", q, since), state))
        end = self.op("Slice", total, self._index(self.layer.chunk - 1), self._index(self.layer.chunk), self._index(1))
        left = self.exp(self.op("Sub", end, total))
        update = self.op("MatMul", self.op("Transpose", self.op("Mul", k, left), perm=[0, 2, 1]), new)
        if state:
            update = self.op("Add", self.op("Mul", state, self.exp(end)), update)
        return out, update

    def finished(self, core: str) -> ModelProto:
        z = self._heads(self.op("MatMul", "x", "w_z"))
        square = self.op("ReduceMean", self.op("Mul", core, core), axes=[-1])
        core = self.op("Div", core, self.op("Sqrt", self.op("Add", square, "eps")))
        gated = self.op("Mul", self.op("Mul", core, "norm"), self.op("Mul", z, self.op("Sigmoid", z)))
        rows = self.op("Reshape", self.op("Transpose", gated, perm=[1, 0, 2]), "flat")
        self.nodes.append(node("MatMul", [rows, "w_o"], ["y"]))
        shape = [self.layer.tokens, HIDDEN]
        used = {name for n in self.nodes for name in n.input}
        constants = {name: array for name, array in self.constants.items() if name in used}
        return model(self.nodes, [value("x", shape)], [value("y", shape)], constants)

    def _heads(self, flat: str) -> str:
        return self.op("Transpose", self.op("Reshape", flat, "heads"), perm=[1, 0, 2])

    def _unit(self, x: str) -> str:
        square = self.op("ReduceSum", self.op("Mul", x, x), "last")
        return self.op("Div", x, self.op("Sqrt", self.op("Add", square, "eps")))

    def _index(self, number: int) -> str:
        self.constants[f"at{number}"] = np.array([number])
        return f"at{number}"
