"""algebra/resize-roi: regions that are looked at, and those that are not."""

from __future__ import annotations

from tests.refusals import refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "algebra/resize-roi"
HEAD = "g (float[1,1,2,2] x, float[8] z) => (float[1,1,A,B] y)"
S = "float[4] s = {1, 1, 2, 2}, int64[4] t = {1, 1, 4, 4}"


def test_computed() -> None:
    assert_rewritten(RULE, "Resize", f"{HEAD} <{S}> {{ r = Neg(z)\n y = Resize(x, r, s) }}")


def test_with_sizes() -> None:
    assert_rewritten(RULE, "Resize", f'{HEAD} <{S}> {{ r = Neg(z)\n y = Resize<mode = "linear">(x, r, , t) }}')


def test_constant() -> None:
    result = assert_rewritten(
        RULE,
        "Resize",
        f"""{HEAD} <{S}, float[8] r = {{0, 0, 0, 0, 1, 1, 1, 1}}> {{
        y = Resize(x, r, s) }}""",
    )
    assert len(result.graph.initializers) == 1


@refuses(RULE, 1)
def test_opset_11() -> None:
    assert_refused(RULE, "requires the input", f"{HEAD} <{S}> {{ r = Neg(z)\n y = Resize(x, r, s) }}", opset=11)


def test_looked_at() -> None:
    text = f"""{HEAD} <{S}, float[8] r = {{0, 0, 0, 0, 1, 1, 1, 1}}> {{
        y = Resize<coordinate_transformation_mode = "tf_crop_and_resize", mode = "linear">(x, r, s) }}"""
    assert_left_alone(RULE, text, runtime="onnxruntime")
