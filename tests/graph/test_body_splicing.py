"""A body takes the place of its node, under names that nobody else has."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from onnxsmith.graph.files import specification_check
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.value_replacement import take_over
from onnxsmith.graph.surgery import body_splicing

HEAD = '<ir_version: 10, opset_import: ["": 20]> g '
IFS = f"""{HEAD}(bool c, float[2] x) => (float[2] y) {{
    a = If(c) <then_branch = t () => (float[2] p) <float[2] w = {{1, 2}}> {{ o = Neg(x)\n p = Add(o, w) }},
               else_branch = e () => (float[2] p) <float[2] w = {{3, 4}}> {{ o = Abs(x)\n p = Add(o, w) }}>
    b = If(c) <then_branch = t () => (float[2] p) <float[2] w = {{5, 6}}> {{ o = Sin(a)\n p = Add(o, w) }},
               else_branch = e () => (float[2] q) {{ q = Abs(a) }}>
    y = Neg(b)
}}"""


def put(node: ir.Node, branch: str, names: Names) -> list[ir.Node]:
    moved, results = body_splicing.splice(node, node.attributes[branch].as_graph(), names)
    for old, new in zip(node.outputs, results, strict=True):
        take_over(old, new)
    body_splicing.remove(node)
    return moved


def all_names(model: ir.Model) -> list[str | None]:
    return [*model.graph.initializers, *(value.name for node in model.graph for value in node.outputs)]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_names_stay_unless_another_graph_has_them(order: tuple[int, int]) -> None:
    model = from_text(IFS)
    names = Names(model)
    ifs = [node for node in model.graph if node.op_type == "If"]
    for at in order:
        put(ifs[at], "then_branch", names)
        specification_check.check(model)
    found = all_names(model)
    assert len(set(found)) == len(found)
    assert [node.op_type for node in model.graph] == ["Neg", "Add", "Sin", "Add", "Neg"]
    assert {"o", "p", "w"} <= set(found), "the last to move has its names to itself"


def test_the_other_branch_keeps_no_name() -> None:
    model = from_text(IFS)
    names = Names(model)
    second = [node for node in model.graph if node.op_type == "If"][1]
    put(second, "else_branch", names)
    assert "q" in all_names(model)
    put(next(node for node in model.graph if node.op_type == "If"), "then_branch", names)
    assert set(all_names(model)) == {"w", "o", "p", "q", "y"}, "nobody else has them any more"


def test_a_copy_has_the_origin_of_the_node() -> None:
    model = from_text(f"{HEAD}(float[2] x) => (float[2] y) {{ a = Neg(x)\n y = Abs(a) }}")
    node = model.graph[1]
    node.doc_string = "model.py, line 3"
    copy = body_splicing.copied(node, model.graph[0].outputs[0])
    maker = copy.producer()
    assert maker is model.graph[1]
    assert maker is not None
    assert maker.op_type == "Identity"
    assert maker.doc_string == "model.py, line 3"
