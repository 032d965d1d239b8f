"""shape/constant-expand: targets that say the data's own dimensions, ones, or numbers."""

from __future__ import annotations

import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.simplification_rounds import simplified
from tests.refusals import refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten, head

RULE = "shape/constant-expand"


def test_to_its_own_shape() -> None:
    text = "g (float[batch,4] x) => (float[batch,4] y) { s = Shape(x)\n e = Expand(x, s)\n y = Relu(e) }"
    assert_rewritten(RULE, "Relu", text)


@pytest.mark.parametrize("ones", ["1", "1, 1"])
def test_to_ones(ones: str) -> None:
    count = ones.count("1")
    text = f"g (float[n,4] x) => (float[n,4] y) <int64[{count}] t = {{{ones}}}> {{ e = Expand(x, t)\n y = Relu(e) }}"
    assert_rewritten(RULE, "Relu", text)


def test_a_number_beside_its_own_dimension() -> None:
    text = """g (float[batch,1] x) => (float[batch,3] y) <int64[1] three = {3}> {
        s = Shape<start = 0, end = 1>(x)\n t = Concat<axis = 0>(s, three)\n e = Expand(x, t)\n y = Relu(e) }"""
    made = assert_rewritten(RULE, "Expand Relu", text)
    target = made.graph[0].inputs[1]
    assert target is not None
    assert target.const_value is not None
    assert target.const_value.numpy().tolist() == [1, 3]


def test_a_target_of_numbers_stays_as_folding_makes_it() -> None:
    text = """g (float[2,1] x) => (float[2,3] y) <int64[1] three = {3}> {
        s = Shape<start = 0, end = 1>(x)\n t = Concat<axis = 0>(s, three)\n e = Expand(x, t)\n y = Relu(e) }"""
    made, part = simplified(from_text(head(17) + text), only=[RULE])
    assert [entry.rule for entry in part.fired if entry.is_rewrite] == [RULE]
    expand = next(node for node in made.graph if node.op_type == "Expand")
    assert facts.integers(expand.inputs[1]) == (2, 3)


def test_more_axes_than_the_data_has() -> None:
    text = "g (float[n] x) => (float[1,n] y) <int64[2] t = {1, 1}> { e = Expand(x, t)\n y = Relu(e) }"
    assert_left_alone(RULE, text)


@refuses(RULE, 1)
def test_refused_1_a_size_of_another_input() -> None:
    text = """g (float[a,1] x, float[b] z) => (float[p,q] y) <int64[1] one = {1}> {
        s = Shape(z)\n t = Concat<axis = 0>(one, s)\n e = Expand(x, t)\n y = Relu(e) }"""
    assert_refused(RULE, "depends on sizes that the data does not have", text)


@refuses(RULE, 1)
def test_refused_1_its_own_size_at_another_place() -> None:
    text = """g (float[a,1] x) => (float[p,q] y) <int64[1] one = {1}> {
        s = Shape<start = 0, end = 1>(x)\n t = Concat<axis = 0>(one, s)\n e = Expand(x, t)\n y = Relu(e) }"""
    assert_refused(RULE, "depends on sizes that the data does not have", text)


def test_a_target_that_only_a_run_knows() -> None:
    assert_left_alone(RULE, "g (float[a,1] x, int64[2] t) => (float[p,q] y) { e = Expand(x, t)\n y = Relu(e) }")
