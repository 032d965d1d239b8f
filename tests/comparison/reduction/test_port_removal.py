"""Loops, Scans and Ifs that have to stay lose the states and results that the failure does not need."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.comparison.reduction.case import Case
from onnxsmith.comparison.reduction.oracle import Oracle
from onnxsmith.comparison.reduction.port_removal import fewer
from onnxsmith.comparison.reduction.reduce import chosen
from onnxsmith.comparison.reduction.runtime_workers import Bench
from onnxsmith.comparison.reduction.tensor_facts import Known
from onnxsmith.graph.files import specification_check
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure import walk
from tests.comparison.reduction.evaluated import evaluated, is_taken

HEAD = '<ir_version: 10, opset_import: ["": 20]> g '
X = {"x": np.array([1, 2], np.float32)}
Function = Callable[[Path, Any], bool]


def holds(kind: str, inner: str) -> Function:
    """Fails where a node of the kind has the operator in a body of its own."""

    def judged(path: Path, feeds: Any) -> bool:
        model = load(path)
        return any(n.op_type == kind and inner in _inside(n) for n in walk.all_nodes(model))

    return judged


def _inside(node: ir.Node) -> set[str]:
    held = (a for a in node.attributes.values() if a.type == ir.AttributeType.GRAPH)
    return {inner.op_type for attribute in held for inner in attribute.as_graph()}


def only(model: ir.Model, kind: str) -> ir.Node:
    (node,) = (node for node in model.graph if node.op_type == kind)
    return node


LOOP = f"""{HEAD}(float[2] x) => (float[2] y, float[k, 2] z) <int64 n = {{3}}, bool c = {{1}}> {{
    y, v, w, z, q = Loop(n, c, x, x, n) <body = b (int64 i, bool more, float[2] s, float[2] t, int64 u)
            => (bool again, float[2] s2, float[2] t2, int64 u2, float[2] one, float[2] two) {{
        again = Identity(more)
        s2 = Erf(s)
        t2 = Add(t, s)
        u2 = Add(u, i)
        one = Neg(t)
        two = Abs(t)
    }}>
}}"""

SCAN = f"""{HEAD}(float[5, 2] x, float[2] h) => (float[2] y) {{
    a = Abs(h)
    y, v, z, q = Scan<num_scan_inputs = 1, scan_output_axes = [0, 1],
            body = b (float[2] s, float[2] t, float[2] e)
            => (float[2] s2, float[2] t2, float[2] one, float[2] two) {{
        s2 = Erf(s)
        t2 = Add(t, e)
        one = Neg(t)
        two = Abs(t)
    }}>(h, a, x)
}}"""

IF = f"""{HEAD}(bool c, float[2] x) => (float[2] y) {{
    p, y, q = If(c) <
        then_branch = t () => (float[2] a, float[2] b, float[2] d) {{ a = Neg(x)\n b = Erf(x)\n d = Sin(b) }},
        else_branch = e () => (float[2] a, float[2] b, float[2] d) {{ a = Neg(x)\n b = Abs(x)\n d = Cos(b) }}>
}}"""

SWAPPED = f"""{HEAD}(float[2] x) => (float[2] y) <int64 n = {{3}}, bool c = {{1}}> {{
    o = Abs(x)
    y, v = Loop(n, c, x, o) <body = b (int64 i, bool more, float[2] s, float[2] t)
            => (bool again, float[2] t2, float[2] s) {{
        again = Identity(more)
        t2 = Erf(t)
    }}>
}}"""


@pytest.mark.parametrize(
    ("text", "kind", "ports"),
    [(LOOP, "Loop", (3, 1)), (SCAN, "Scan", (2, 1)), (IF, "If", (1, 1))],
    ids=["loop", "scan", "if"],
)
def test_what_the_failure_does_not_need_is_gone(text: str, kind: str, ports: tuple[int, int]) -> None:
    result = onnxsmith.reduce(from_text(text), check=holds(kind, "Erf"))
    assert result.model is not None
    node = only(result.model, kind)
    assert (len(node.inputs), len(node.outputs)) == ports
    assert "Erf" in _inside(node)
    assert is_taken(onnxsmith.load(ir.to_proto(result.model)))


@pytest.mark.parametrize("text", [LOOP, SCAN, IF, SWAPPED], ids=["loop", "scan", "if", "swapped"])
def test_what_is_left_computes_what_it_did(text: str) -> None:
    """A result that does not flow from a state that is gone is the same as before, whatever else went."""
    model = from_text(text.replace("[0, 1]", "[0, 0]"))  # the evaluator has no other axes
    feeds: dict[str, Any] = {
        "x": np.arange(10, dtype=np.float32).reshape(5, 2) if text is SCAN else X["x"],
        "h": X["x"],
        "c": np.array(True),
    }
    feeds = {name: value for name, value in feeds.items() if name in {v.name for v in model.graph.inputs}}
    kind = next(n.op_type for n in model.graph if n.op_type in ("Loop", "Scan", "If"))
    before = evaluated(model, feeds)["y"]

    def fails(path: Path, given: Any) -> bool:
        found = evaluated(path, given)
        return "y" in found and np.array_equal(found["y"], before) and bool(holds(kind, "Erf")(path, given))

    with Bench(60) as bench:
        oracle = Oracle(chosen(fails, None), bench)
        case = Case(model, feeds)
        oracle.first = oracle.judge(case).failure
        small = fewer(case, Known(), oracle)
    specification_check.check(small.model)
    assert len(only(small.model, kind).outputs) < len(only(model, kind).outputs) or text is SWAPPED


def test_a_state_that_another_takes_over_is_given_a_copy() -> None:
    result = onnxsmith.reduce(from_text(SWAPPED), check=holds("Loop", "Erf"))
    assert result.model is not None
    assert len(only(result.model, "Loop").outputs) == 1
    assert is_taken(onnxsmith.load(ir.to_proto(result.model)))
