"""What is cut out of a graph leaves the rest computing what it computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
from hypothesis import given
from hypothesis import strategies as st

from onnxsmith.comparison.reduction.case import Case
from onnxsmith.comparison.reduction.node_removal import computing, prune, without
from onnxsmith.comparison.reduction.tensor_facts import Known, kinds
from onnxsmith.graph.files import specification_check
from onnxsmith.graph.files.load import from_proto
from onnxsmith.graph.files.text import from_text
from tests.comparison.reduction.evaluated import evaluated
from tests.comparison.reduction.planted import Chain

UNARY = ("Tanh", "Sin", "Neg", "Abs", "Exp")
BINARY = ("Add", "Mul", "Sub", "MatMul")


@st.composite
def graphs(draw: st.DrawFn) -> ir.Model:
    """Graphs of float tensors [4, 4] whose nodes read whatever came before."""
    chain = Chain(draw(st.integers(0, 3)))
    made = ["x", chain.constant(np.eye(4)), chain.constant(chain.rng.standard_normal((4, 4)) / 4)]
    for _ in range(draw(st.integers(1, 12))):
        one, other = draw(st.sampled_from(made)), draw(st.sampled_from(made))
        if draw(st.booleans()):
            made.append(chain.add(draw(st.sampled_from(BINARY)), one, other))
        else:
            made.append(chain.add(draw(st.sampled_from(UNARY)), one))
    model = chain.model(made[-1], shape=(4, 4))
    return from_proto(model, where="a drawn model")


def everything(model: ir.Model, feeds: dict[str, Any]) -> dict[str, Any]:
    """What every tensor of the graph holds."""
    copy = model.clone()
    while copy.graph.outputs:
        copy.graph.outputs.pop()
    copy.graph.outputs.extend(value for node in copy.graph for value in node.outputs)
    return dict(evaluated(copy, feeds))


def known_of(model: ir.Model, feeds: dict[str, Any]) -> Known:
    return Known(values={**feeds, **everything(model, feeds)}, kinds=kinds(model))


FEEDS = {"x": np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)}


@given(graphs(), st.data())
def test_every_cut_gives_the_values_that_were_there(model: ir.Model, data: st.DataObject) -> None:
    known = known_of(model, FEEDS)
    places = computing(model.graph)
    doomed = data.draw(st.sets(st.sampled_from(places), max_size=len(places)))
    case = without(Case(model, FEEDS), doomed, known, bypass=False, live=data.draw(st.booleans()))
    if case is None:
        assert not doomed or len(doomed) == len(places)
        return
    specification_check.check(case.model)
    assert case.model.graph.outputs
    assert set(case.feeds) == {value.name for value in case.model.graph.inputs}
    assert case.nodes <= len(places) - len(doomed)
    for name, value in evaluated(case.model, case.feeds).items():
        np.testing.assert_array_equal(value, known.values[name])


@given(graphs(), st.data())
def test_a_bypass_keeps_the_model_valid(model: ir.Model, data: st.DataObject) -> None:
    known = known_of(model, FEEDS)
    places = computing(model.graph)
    doomed = data.draw(st.sets(st.sampled_from(places), min_size=1, max_size=len(places)))
    case = without(Case(model, FEEDS), doomed, known, bypass=True, live=False)
    if case is not None:
        specification_check.check(case.model)
        evaluated(case.model, case.feeds)
        assert case.nodes <= len(places) - len(doomed)


def test_captured_values_are_cut_too() -> None:
    """A branch reads what the removed node made."""
    model = from_text(
        """<ir_version: 10, opset_import: ["": 20]>
        g (bool c, float[2] x) => (y) {
            a = Tanh(x)
            y = If(c) <then_branch = t () => (z) { z = Neg(a) }, else_branch = e () => (w) { w = Abs(a) }>
        }"""
    )
    feeds = {"c": np.array(True), "x": np.array([1, 2], np.float32)}
    case = without(Case(model, feeds), [0], known_of(model, feeds), bypass=False, live=False)
    assert case is not None
    assert [value.name for value in case.model.graph.inputs] == ["c", "a"]
    out = evaluated(case.model, case.feeds)["y"]
    np.testing.assert_array_equal(out, -np.tanh(feeds["x"]))


def test_a_sequence_keeps_its_maker() -> None:
    model = from_text(
        """<ir_version: 10, opset_import: ["": 20]>
        g (float[2] x) => (float[2] y) {
            a = Tanh(x)
            s = SequenceConstruct(a, a)
            n = Constant<value = int64 {0}>()
            y = SequenceAt(s, n)
        }"""
    )
    feeds = {"x": np.array([1, 2], np.float32)}
    known = known_of(model, feeds)
    case = without(Case(model, feeds), [0, 1], known, bypass=False, live=False)
    assert case is not None
    assert [node.op_type for node in case.model.graph] == ["SequenceConstruct", "Constant", "SequenceAt"]
    assert without(Case(model, feeds), [1], known, bypass=False, live=False) is None


def test_bfloat16_is_cut_into_an_initializer() -> None:
    model = from_text(
        """<ir_version: 10, opset_import: ["": 20]>
        g (float[2] x) => (float[2] y) { a = Cast<to = 16>(x)\n b = Neg(a)\n y = Cast<to = 1>(b) }"""
    )
    feeds = {"x": np.array([1, 2], np.float32)}
    case = without(Case(model, feeds), [0, 1], known_of(model, feeds), bypass=False, live=False)
    assert case is not None
    assert not case.model.graph.inputs
    assert set(case.model.graph.initializers) == {"b"}


def test_prune_keeps_what_an_output_needs() -> None:
    model = from_text(
        """<ir_version: 10, opset_import: ["": 20]>
        g (float[2] x, float[2] unused) => (float[2] y) <float[2] w = {1, 2}, float[2] idle = {1, 2}> {
            a = Tanh(x)
            dead = Neg(a)
            y = Add(x, w)
        }"""
    )
    prune(model)
    assert [node.op_type for node in model.graph] == ["Add"]
    assert [value.name for value in model.graph.inputs] == ["x"]
    assert set(model.graph.initializers) == {"w"}
