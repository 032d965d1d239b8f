"""Walks reach branches and functions, and count what is there."""

from __future__ import annotations

import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure import walk

MODEL = from_text(
    '<ir_version: 10, opset_import: ["": 20, "l": 1]>\n'
    "g (float[4] x, bool c) => (float[4] y) <float[4] w = {1, 2, 3, 4}> {\n"
    " k = Constant<value = float[2] {1, 2}>()\n t = l.f(x)\n"
    " y = If(c) <then_branch = a () => (float[4] p) <float16[2] v = {1, 2}> { p = Abs(t) },"
    " else_branch = b () => (float[4] q) { [named] q = Add(t, w) }> }\n"
    '<domain: "l", opset_import: ["": 20]> f (a) => (b) { n = Abs(a)\n d = Constant<value_float = 1.0>()\n'
    " z = Cast<to = 9>(d)\n b = If(z) <then_branch = h () => (float[4] o) <int64 s = {5}> { o = Neg(n) }> }"
)


def test_every_node_is_reached() -> None:
    assert sorted(node.op_type for node in walk.all_nodes(MODEL)) == sorted(
        ["Constant", "f", "If", "Abs", "Add", "Abs", "Constant", "Cast", "If", "Neg"]
    )


def test_constants_compute_nothing() -> None:
    assert walk.count_nodes(MODEL) == 8


def test_operators_are_counted_the_most_frequent_first() -> None:
    found = walk.histogram(MODEL)
    assert list(found.items())[:3] == [("Abs", 2), ("Constant", 2), ("If", 2)]
    assert found["l::f"] == 1


@pytest.mark.parametrize(("index", "label"), [(0, "-> k"), (1, "-> t")])
def test_an_unnamed_node_is_called_by_what_it_makes(index: int, label: str) -> None:
    assert walk.node_label(MODEL.graph.node(index)) == label


def test_a_named_node_is_called_by_its_name() -> None:
    assert "named" in [walk.node_label(node) for node in walk.all_nodes(MODEL)]


def test_initializers_of_branches_and_functions_are_reached() -> None:
    assert [value.name for value in walk.initializers(MODEL)] == ["w", "v", "s"]


def test_tensors_of_attributes_are_reached() -> None:
    assert [tensor.numpy().tolist() for tensor in walk.attribute_tensors(MODEL)] == [[1.0, 2.0]]
