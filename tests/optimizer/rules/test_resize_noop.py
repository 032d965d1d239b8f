"""algebra/resize-noop: scales of 1, and sizes that are the data's."""

from __future__ import annotations

import pytest

from tests.rewrites import assert_left_alone, assert_rewritten

RULE = "algebra/resize-noop"
HEAD = "g (float[1,1,H,W] x) => (float[1,1,A,B] y)"


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("place", ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
def test_scales(mode: str, place: str) -> None:
    text = f"""{HEAD} <float[4] s = {{1, 1, 1, 1}}> {{
        a = Resize<mode = "{mode}", coordinate_transformation_mode = "{place}">(x, , s)\n y = Relu(a) }}"""
    assert_rewritten(RULE, "Relu", text)


def test_upsample() -> None:
    assert_rewritten(
        RULE,
        "Relu",
        f"{HEAD} <float[4] s = {{1, 1, 1, 1}}> {{ a = Upsample(x, s)\n y = Relu(a) }}",
        opset=9,
        runtime="onnxruntime",
    )
    text = f"{HEAD} {{ a = Upsample<scales = [1.0, 1.0, 1.0, 1.0]>(x)\n y = Relu(a) }}"
    assert_rewritten(RULE, "Relu", text, opset=8, runtime="onnxruntime")


def test_opset_10() -> None:
    assert_rewritten(
        RULE,
        "Relu",
        f"{HEAD} <float[4] s = {{1, 1, 1, 1}}> {{ a = Resize(x, s)\n y = Relu(a) }}",
        opset=10,
        runtime="onnxruntime",
    )


def test_known_sizes() -> None:
    text = """g (float[1,1,2,3] x) => (float[1,1,2,3] y) <int64[4] s = {1, 1, 2, 3}> {
        a = Resize<mode = "linear">(x, , , s)\n y = Relu(a) }"""
    assert_rewritten(RULE, "Relu", text)


def test_an_output_that_is_the_input() -> None:
    assert_rewritten(RULE, "Identity", f"{HEAD} <float[4] s = {{1, 1, 1, 1}}> {{ y = Resize(x, , s) }}")


LEFT_ALONE = {
    "another scale": f"{HEAD} <float[4] s = {{1, 1, 1, 2}}> {{ y = Resize(x, , s) }}",
    "sizes of another": f"{HEAD.replace('x)', 'x, float[1,1,K,L] z)', 1)} {{ s = Shape(z)\n y = Resize(x, , , s) }}",
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, LEFT_ALONE[case])


def test_elements_from_elsewhere() -> None:
    text = f"""{HEAD} <float[4] s = {{1, 1, 1, 1}}, float[8] roi = {{0, 0, 0, 0.5, 1, 1, 1, 1}}> {{
        y = Resize<coordinate_transformation_mode = "tf_crop_and_resize", mode = "linear">(x, roi, s) }}"""
    assert_left_alone(RULE, text, runtime="onnxruntime")
