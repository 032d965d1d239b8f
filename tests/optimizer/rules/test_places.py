"""The place of a refusal: the value or node to blame, by its name."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.optimizer.rules.base import NoMatch
from onnxsmith.optimizer.simplification_rounds import simplified
from tests.rewrites import head

MODEL = from_text(head(20) + "g (float x) => (float y) { [first] a = Neg(x) b = Abs(a) [last] y = Exp(b) }")
FIRST, SECOND, LAST = MODEL.graph


@pytest.mark.parametrize(
    ("where", "place"),
    [
        ("", "last"),
        ("b", "b"),
        (FIRST, "first"),
        (SECOND, "-> b"),
        (SECOND.outputs[0], "b"),
        (ir.Value(name=None), "last"),
    ],
)
def test_it_is_named_or_else_the_anchor(where: ir.Node | ir.Value | str, place: str) -> None:
    assert NoMatch("why", where).place(LAST) == place


def test_it_is_in_the_report() -> None:
    text = (
        head(20)
        + """g (float[n,3,8,8] x, float[4,3,1,1] w) => (float[n,4,8,8] y)
        <float[4] m = {1, 2, 3, 4}, float[4] s = {1, 1, 1, 1}> {
        c = Conv(x, w) [norm] y = BatchNormalization(c, s, s, m, s) }"""
    )
    _, part = simplified(from_text(text))
    (found,) = (entry for entry in part.refused if entry.rule == "fuse/conv-batchnorm")
    assert (found.where, found.why_not) == ("w", "weights or bias are not constants: the weight is not a constant")
