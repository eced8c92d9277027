"""What does not compute is gone, and what does is untouched."""

from __future__ import annotations

from onnx import ModelProto, helper

from qnn.prepare.strip import strip
from tests.prepare.graphs import model, node, noise, value
from tests.prepare.test_pipeline import decorated


def small() -> ModelProto:
    return model(
        [node("Add", ["x", "c"], ["m"]), node("Relu", ["m"], ["y"])],
        [value("x", [2])],
        [value("y", [2])],
        {"c": noise(2), "d": noise(3)},
    )


def test_a_stripped_model_is_the_plain_one() -> None:
    made, plain = decorated(small()), small()
    del made.graph.initializer[-1], made.graph.value_info[:]  # those are the business of canonical order
    plain.graph.name = "net"
    strip(made, "net")
    assert made == plain


def test_functions_and_the_domains_in_use_are_kept() -> None:
    made = small()
    made.graph.node[1].domain, made.graph.node[1].op_type = "own", "Twice"
    body = [node("Add", ["a", "a"], ["b"])]
    made.functions.append(helper.make_function("own", "Twice", ["a"], ["b"], body, [helper.make_opsetid("", 17)]))
    made.functions[0].doc_string = made.functions[0].node[0].doc_string = "notes"
    made.opset_import.extend([helper.make_opsetid("own", 1), helper.make_opsetid("unused", 3)])
    strip(made, "net")
    assert [(entry.domain, entry.version) for entry in made.opset_import] == [("", 17), ("own", 1)]
    assert b"notes" not in made.SerializeToString()
    assert made.functions[0].name == "Twice"


def test_documentation_inside_branches_goes_too() -> None:
    branch = model([node("Relu", ["x"], ["a"])], [], [value("a", [2])]).graph
    branch.doc_string = branch.node[0].doc_string = "notes"
    made = small()
    made.graph.node.append(node("If", ["c"], ["z"], then_branch=branch, else_branch=branch))
    strip(made, "net")
    assert b"notes" not in made.SerializeToString()
