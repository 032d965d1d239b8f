"""An input of unknown rank gets a shape that what reads it takes."""

from __future__ import annotations

import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.verification.inputs.generate import Generator
from onnxsmith.verification.inputs.ranks import Sizes, guessed


@pytest.mark.parametrize(
    ("nodes", "weights", "wanted"),
    [
        ("y = MatMul(x, w)", "float[3,4] w", (None, 3)),
        ("y = MatMul(x, w)", "float[5,3,4] w", (None, None, 3)),
        ("y = Gemm<transB = 1>(x, w)", "float[3,4] w", (None, 4)),
        ("y = Conv<group = 2>(x, w)", "float[4,3,1,1] w", (None, 6, None, None)),
        ("i = Identity(x)\n y = Conv(i, w)", "float[4,3,1] w", (None, 3, None)),
        ("y = MaxPool<kernel_shape = [2]>(x)", "", (None, None, None)),
        ("y = Transpose<perm = [0, 2, 1]>(x)", "", (None, None, None)),
        ("y = BatchNormalization(x, w, w, w, w)", "float[7] w", (None, 7, None, None)),
        ("r = Reshape(x, s)\n y = MatMul(r, w)", "float[3,4] w", (None, None)),
        ("y = Neg(x)", "", (None, None)),
    ],
)
def test_a_shape_follows_from_what_reads_it(nodes: str, weights: str, wanted: Sizes) -> None:
    given = ", ".join(["float x", *([weights] if weights else [])])
    model = from_text(
        f'<ir_version: 10, opset_import: ["": 20]>\ng ({given}) => (float y) <int64[2] s = {{-1, 3}}> {{ {nodes} }}'
    )
    model.graph.inputs[0].shape = None
    assert guessed(model.graph.inputs[0]) == wanted


def test_values_are_made_of_it() -> None:
    model = from_text(
        '<ir_version: 10, opset_import: ["": 20]>\n'
        "g (float[a] x) => (float[b,c] y) <float[3,1] w = {1, 2, 3}> { y = MatMul(x, w) }"
    )
    model.graph.inputs[0].shape = None
    made = Generator.for_model(model)
    assert made.signature.symbols() == ("x.0",)
    assert made.feed({"x.0": 5}).values["x"].shape == (5, 3)
