"""Fixes of sizes and ranges that no input has, and of outputs that are not free."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixes.harness import Case, helps, parameters

RELU = """
<ir_version: 10, opset_import: ["": 20]>
g (float[batch,3] x) => (float[batch,3] y) { y = Relu(x) }
"""
JOINED = """
<ir_version: 10, opset_import: ["": 20], metadata_props: ["onnxsmith.dims": "{\\"past\\": \\"32 - seq\\"}"]>
g (float[seq] x, float[past] p) => (float[m] y) { y = Concat<axis = 0>(x, p) }
"""
RUN = "onnxsmith run m.onnx --random"

CASES = [
    Case(
        "input/size-range",
        f"{RUN} --dim batch=9..4",
        {"m.onnx": RELU},
        by_hand=f"{RUN} --dim batch=4..9",
        says=["--dim batch=4..9"],
        name="upside down",
    ),
    Case(
        "input/size-range",
        f"{RUN} --dim batch=-3..4",
        {"m.onnx": RELU},
        by_hand=f"{RUN} --dim batch=..4",
        says=["--dim batch=..4"],
        name="negative",
    ),
    Case(
        "input/size-range",
        f"{RUN} --dim seq=40",
        {"m.onnx": JOINED},
        by_hand=f"{RUN} --dim seq=..32",
        says=["--dim seq=..32"],
        name="outside of a relation",
    ),
    Case(
        "input/size-range",
        f"{RUN} --dim seq=10 --dim past=10",
        {"m.onnx": JOINED},
        by_hand=f"{RUN} --dim seq=10",
        says=["remove --dim past"],
        name="two sizes that contradict",
    ),
    Case(
        "input/unknown-dim",
        f"{RUN} --dim bach=4",
        {"m.onnx": RELU},
        by_hand=f"{RUN} --dim batch=4",
        says=["--dim batch=4"],
    ),
    Case(
        "input/free",
        "onnxsmith compare m.onnx m.onnx --free signs:y",
        {"m.onnx": RELU},
        by_hand="onnxsmith compare m.onnx m.onnx --free sign:y",
        says=["--free sign:vectors"],
    ),
    Case(
        "input/free",
        "onnxsmith simplify m.onnx -o s.onnx --free order:boxes",
        {"m.onnx": RELU},
        by_hand="onnxsmith simplify m.onnx -o s.onnx --free order:y",
        says=["its outputs are: y"],
        name="an unknown output",
    ),
]


@pytest.mark.parametrize("one", parameters(CASES))
def test_the_fix_helps(one: Case, tmp_path: Path) -> None:
    helps(one, tmp_path)
