"""The quick test before a search: it lets every match through."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from onnxsmith.graph.patterns.match_filter import Producers
from onnxsmith.graph.patterns.match_search import Search
from onnxsmith.graph.patterns.pattern_conversion import pattern_of
from onnxsmith.graph.patterns.pattern_search import every_match, ways
from onnxsmith.graph.patterns.search_plan import Plan
from onnxsmith.graph.structure import walk
from tests.graph.patterns.models import BRANCHES, model

GIVEN = model(
    "r = Relu(x) m = Mul(x, r) e = ReduceMean(x, one) a = Add(m, r) b = Sum(a, r, x) c = Clip(b, , hi)"
    "q = Concat <axis = 0> (c) s = Cast <to = 1> (q) t = Cast <to = 7> (s) y = Neg(s)",
    opset=18,
    held="int64[1] one = {0}, float hi = {6}",
)
PATTERNS = (
    *("Add(Relu(x), _)", "Mul(x, Relu(x))", "any(Relu(x))", "Sum(Relu(x), ...)", "Sum(x, y, z)", "Sum(x, y)"),
    *("Clip(x, , c_hi)", "Clip(x, ...)", "Clip(x)", "Concat(x)", "Concat(x, z)", "ReduceMean <axes = [0]> (x)"),
    *("either(Neg(x), Cast(x))", "Neg(either(Cast(x), x))", "Cast <to = ?a> (Cast <to = ?b> (x))", "Add(Neg(x), _)"),
)


@pytest.mark.parametrize("text", PATTERNS)
def test_what_is_held_back_does_not_match(text: str) -> None:
    plan = Plan(pattern_of(text))
    producers, search = Producers(plan), Search(plan, GIVEN.opset_imports)
    matched = [node for node in GIVEN.graph if any(ways(plan, search, node))]
    assert all(producers.may_be_those_of(node) for node in matched)


@pytest.mark.parametrize(
    ("text", "through"),
    [
        ("Add(Relu(x), _)", ["a"]),
        ("Add(Neg(x), _)", []),
        ("Concat(x, z)", ["q"]),
        ("Clip(x)", []),
        ("Neg(Cast(x))", ["y"]),
    ],
)
def test_what_is_let_through(text: str, through: list[str]) -> None:
    producers = Producers(Plan(pattern_of(text)))
    assert [node.outputs[0].name for node in GIVEN.graph if producers.may_be_those_of(node)] == through


def test_every_match_of_a_node() -> None:
    given = model("r = Relu(x) s = Relu(x) y = Add(r, s)")
    (node,) = (node for node in given.graph if node.op_type == "Add")
    first = [match.values["a"].name for match in every_match(Plan(pattern_of("a = Relu(x) y = Add(a, z)")), node)]
    every = every_match(Plan(pattern_of("a = Relu(x) y = Add(a, z)"), apart=None), node)
    assert (first, [match["a"].name for match in every]) == (["r"], ["r", "s"])


def test_a_producer_in_an_outer_graph_is_no_part_of_it() -> None:
    given = model(f"s = Exp(x) {BRANCHES}", inputs="float[N] x, bool b")
    plan = Plan(pattern_of("Mul(_, Exp(_))"))
    (node,) = (node for node in walk.all_nodes(given) if isinstance(node, ir.Node) and node.op_type == "Mul")
    assert Producers(plan).may_be_those_of(node)
    assert any(ways(plan, Search(plan, given.opset_imports), node))
    assert not list(every_match(plan, node))
