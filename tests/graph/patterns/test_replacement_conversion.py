"""What a replacement may be that a pattern may not."""

from __future__ import annotations

import pytest

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.patterns.pattern import Variable
from onnxsmith.graph.patterns.pattern_conversion import pattern_of, replacement_of


@pytest.mark.parametrize("source", ["x", "(x) => (x) {}", lambda op, x: x])
def test_a_variable_alone(source: object) -> None:
    found = replacement_of(source)  # type: ignore[arg-type]
    assert (found.nodes, found.outputs) == ((), (Variable("x"),))
    assert replacement_of(found.text()).outputs == found.outputs
    with pytest.raises(OnnxsmithError):
        pattern_of(source)  # type: ignore[arg-type]


def test_results_that_have_nothing_in_common() -> None:
    text = "(x, z) => (a, b) { a = Relu(x) b = Neg(z) }"
    assert len(replacement_of(text).outputs) == 2
    with pytest.raises(OnnxsmithError) as caught:
        pattern_of(text)
    assert caught.value.problem.id == "pattern/unconnected"


def test_a_variable_that_is_not_read() -> None:
    assert [one.name for one in replacement_of("(x, c) => (y) { y = Relu(x) }").variables] == ["x", "c"]


def test_the_error_says_which_of_the_two_texts_is_wrong() -> None:
    with pytest.raises(OnnxsmithError) as caught:
        replacement_of("Relu(x")
    assert "the text of the replacement" in str(caught.value.problem.where)
