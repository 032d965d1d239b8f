"""Settings that several verbs share: one dataclass gives the command line, Python and the tests."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import onnxsmith
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.settings import Save, Verify, verifying
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text

TEXT = """<ir_version: 10, opset_import: ["": 20]> g (float[n,4] x) => (float[n,4] y) <float[4] w = {1., 2., 3., 4.}> {
    a = Identity(x)
    y = Mul(a, w)
}"""
LARGE = (
    TEXT.replace("float[4] w = {1., 2., 3., 4.}", f"float[512,4] w = {{{', '.join(['0.5'] * 2048)}}}")
    .replace("float[n,4] x) => (float[n,4] y)", "float[n,512] x) => (float[n,4] y)")
    .replace("Mul(a, w)", "MatMul(a, w)")
)


def test_true_stands_for_the_usual_settings_and_false_for_none() -> None:
    assert verifying(verify=True) == Verify()
    assert verifying(verify=False) is None
    assert verifying(Verify(seed=3)) == Verify(seed=3)


@pytest.mark.parametrize("sizes", [{"n": 3}, ("n=3",)])
def test_sizes_hold_in_the_check(sizes: object) -> None:
    result = onnxsmith.simplify(from_text(TEXT), verify=Verify(sizes=sizes))  # type: ignore[arg-type]
    assert result.report.part(Verification).sizes == {"n": (3,)}


@pytest.mark.parametrize(
    "inputs",
    [{"x": np.ones((2, 4), np.float32)}, ("x=float32[2,4]",), [{"x": np.ones((2, 4), np.float32)}] * 2],
    ids=["arrays by name", "texts", "several"],
)
def test_simplify_takes_inputs_as_compare_does(inputs: object) -> None:
    result = onnxsmith.simplify(from_text(TEXT), inputs=inputs)  # type: ignore[arg-type]
    assert "given" in result.report.part(Verification).runs[0]


def test_the_command_line_has_the_fields_of_the_settings(tmp_path: Path) -> None:
    source, written = tmp_path / "m.onnx", tmp_path / "s.onnx"
    save(from_text(LARGE), source)
    chosen = [
        "--dim",
        "n=5",
        "--runtime",
        "reference",
        "--tolerance",
        "0.5",
        "--seed",
        "7",
        "--external-data",
        "--json",
    ]
    command = [sys.executable, "-m", "onnxsmith", "simplify", str(source), "-o", str(written), *chosen]
    report = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    (verification,) = (part for part in report["parts"] if part["kind"] == "verification")
    assert verification["sizes"] == {"n": [5]}
    assert verification["outputs"][0]["tolerance"] == 0.5
    assert "reference" in verification["candidate"]
    assert any("seed 7" in run for run in verification["runs"])
    assert (tmp_path / "s.onnx.data").exists()


def test_weights_go_where_save_says(tmp_path: Path) -> None:
    assert onnxsmith.simplify(from_text(LARGE), tmp_path / "s.onnx", save=Save(external_data=True)).ok
    assert (tmp_path / "s.onnx.data").exists()
    assert onnxsmith.simplify(from_text(LARGE), tmp_path / "t.onnx", save=Save(external_data=False)).ok
    assert not (tmp_path / "t.onnx.data").exists()
