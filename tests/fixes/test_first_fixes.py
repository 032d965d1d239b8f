"""Fixes of the first problems that a user meets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixes.harness import Case, helps, parameters

RELU = """
<ir_version: 10, opset_import: ["": 20]>
g (float[batch,3] x) => (float[batch,3] y) { y = Relu(x) }
"""

CASES = [
    Case("simplify/no-output", "onnxsmith simplify m.onnx", {"m.onnx": RELU}),
    Case(
        "model/not-found",
        "onnxsmith inspect model.onx",
        {"model.onnx": RELU},
        by_hand="onnxsmith inspect model.onnx",
        says=["model.onnx"],
    ),
    Case(
        "edit/no-match",
        "onnxsmith rename m.onnx yy z -o r.onnx",
        {"m.onnx": RELU},
        by_hand="onnxsmith rename m.onnx y z -o r.onnx",
        says=["names: y"],
    ),
    Case(
        "target/refused",
        "onnxsmith check m.onnx --target onnxruntime",
        {"m.onnx": RELU.replace("y = Relu(x)", "[n] a = Relu(x) [n] y = Neg(a)")},
        goes_on=False,
    ),
]


@pytest.mark.parametrize("one", parameters(CASES))
def test_the_fix_helps(one: Case, tmp_path: Path) -> None:
    helps(one, tmp_path)
