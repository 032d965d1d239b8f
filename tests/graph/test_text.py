"""ONNX text is read, or refused; it never brings the process down."""

from __future__ import annotations

import onnx_ir as ir
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.files.text import from_text, to_text
from tests.conftest import Refused

ADD = '<ir_version: 10, opset_import: ["": 20]>\ng (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }'


def test_text_comes_back_as_the_same_model() -> None:
    model = from_text(ADD)
    again = from_text(to_text(model, weights=True))
    assert ir.to_proto(again).SerializeToString() == ir.to_proto(model).SerializeToString()


@pytest.mark.parametrize("weights", [False, True])
def test_weights_are_shown_when_asked_for(weights: bool) -> None:
    assert ("{1,2}" in to_text(from_text(ADD), weights=weights)) is weights


def test_bytes_in_a_string_attribute_are_shown() -> None:
    model = from_text(ADD.replace("Add(x, w)", 'other.Op<code = "text"> (x, w)'))
    model.graph.node(0).attributes["code"] = ir.Attr("code", ir.AttributeType.STRING, b"\xff\x00")
    assert "\\xff" in to_text(model)


def test_the_place_of_a_mistake_is_told(refused: Refused) -> None:
    with refused("model/text-syntax") as refusal:
        from_text(ADD.replace("=>", "=="))
    assert "line" in refusal.problem.why


@pytest.mark.parametrize("text", ["", "{", "<", "\0", ADD[:-3], ADD + "}", "g () => () {}", "\ud800"])
def test_what_does_not_parse_is_refused(text: str) -> None:
    with pytest.raises(OnnxsmithError):
        from_text(text)


@pytest.mark.parametrize("opening", ["z = If(x) <b = a () => (float t) { ", "seq("])
@pytest.mark.parametrize("depth", [101, 100_000])
def test_very_deep_text_is_refused(opening: str, depth: int, refused: Refused) -> None:
    with refused("model/text-syntax"):
        from_text(ADD[: ADD.index("y = Add")] + opening * depth)


def test_branches_nested_deeper_than_protobuf_reads_are_refused_with_the_limit(refused: Refused) -> None:
    body = "t0 = Relu(x)"
    for n in range(40):
        branches = f"then_branch = a () => (float t{n}) {{ {body} }}, else_branch = b () => (float e) {{ e = Neg(x) }}"
        body = f"t{n + 1} = If(c) <{branches}>"
    with refused("model/invalid") as refusal:
        from_text(
            ADD[: ADD.index("y = Add")].replace("<float[2] w = {1, 2}>", "<bool c = {1}>") + f"{body} y = Neg(t40) }}"
        )
    assert "about 30 If" in refusal.problem.why


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.raises(OnnxsmithError):
        from_text(text)


@given(place=st.integers(0, len(ADD) - 1), character=st.characters())
def test_a_model_with_any_other_character_is_read_or_refused(place: int, character: str) -> None:
    try:
        from_text(ADD[:place] + character + ADD[place + 1 :])
    except OnnxsmithError as error:
        assert error.problem.id.startswith("model/")  # noqa: PT017


@pytest.mark.parametrize(
    "text",
    [
        "g (float[2] x) => (float[2] y) <float[2] w = {1e39, 1}> { y = Add(x, w) }",
        "g (float[99999999999999999999] x) => (float[n] y) { y = Neg(x) }",
    ],
)
def test_numbers_that_the_parser_cannot_hold(text: str, refused: Refused) -> None:
    with refused("model/text-syntax"):
        from_text(f'<ir_version: 10, opset_import: ["": 20]> {text}')
