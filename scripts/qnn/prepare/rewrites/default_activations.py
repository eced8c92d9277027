"""Recurrent layers whose activations are written out though they are the defaults."""

from __future__ import annotations

from onnx import ModelProto, NodeProto

from qnn.prepare.prepared import Change
from qnn.prepare.rewrites.base import Rewrite, applied, refused
from qnn.prepare.rewrites.view import GraphView, attribute

NAME = "default-activations"
_DEFAULTS = {"LSTM": ("sigmoid", "tanh", "tanh"), "GRU": ("sigmoid", "tanh"), "RNN": ("tanh",)}
_ATTRIBUTES = ("activations", "activation_alpha", "activation_beta")


def apply(model: ModelProto) -> list[Change]:
    """Drop `activations` of LSTM, GRU and RNN where they are the operator's defaults."""
    view = GraphView(model)
    changes = []
    for node in view.nodes(*_DEFAULTS):
        written = [text.decode().lower() for text in attribute(node, "activations", ())]
        if not written:
            continue
        default = list(_DEFAULTS[node.op_type]) * (2 if attribute(node, "direction", b"") == b"bidirectional" else 1)
        if written == default:
            _drop(node)
            changes.append(applied(NAME, node, f"{', '.join(written)} are its defaults and need not be written"))
        else:
            changes.append(refused(NAME, node, f"its activations {', '.join(written)} are not the defaults"))
    return changes


def _drop(node: NodeProto) -> None:
    kept = [entry for entry in node.attribute if entry.name not in _ATTRIBUTES]
    del node.attribute[:]
    node.attribute.extend(kept)


REWRITE = Rewrite(
    name=NAME,
    title="Default activations of LSTM, GRU and RNN are left out",
    pattern="LSTM, GRU or RNN with an `activations` attribute that lists the operator's defaults",
    why="The compiler refuses any `activations` attribute, also one that says what holds without it. The defaults "
    "(Sigmoid and Tanh) have no parameters, so alpha and beta go with it. Nothing is computed differently.",
    default=True,
    apply=apply,
)
