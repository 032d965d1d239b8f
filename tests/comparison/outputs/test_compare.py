"""`compare` as a user calls it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text

TEXT = """
<ir_version: 10, opset_import: ["": 20]>
g (float[n,3] x, float[n,3] s) => (float[n,3] y, float[n,3] z) { y = Add(x, s)\n z = Sub(y, s) }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    save(from_text(TEXT), tmp_path / "a.onnx")
    return tmp_path / "a.onnx"


def problem_of(*args: object, **options: object) -> onnxsmith.Problem:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.compare(*args, **options)  # type: ignore[arg-type]
    return caught.value.problem


def test_a_file_at_two_runtimes(file: Path) -> None:
    result = onnxsmith.compare(file, f"{file}@reference")
    assert result.ok
    part = result.report.part(Verification)
    assert "onnxruntime" in part.reference
    assert "reference" in part.candidate


def test_other_names_are_paired_by_position_and_said(file: Path) -> None:
    other = TEXT.replace(" y", " out").replace("(y,", "(out,")
    result = onnxsmith.compare(file, from_text(other), runtime="reference")
    assert result.ok
    assert any("paired by position: y=out" in note for note in result.report.part(Verification).notes)


def test_another_order_is_paired_by_name(file: Path) -> None:
    swapped = TEXT.replace("(float[n,3] x, float[n,3] s)", "(float[n,3] s, float[n,3] x)")
    result = onnxsmith.compare(file, from_text(swapped), runtime="reference")
    assert result.ok


def test_swapped_inputs_differ(file: Path) -> None:
    swapped = TEXT.replace("Add(x, s)", "Add(s, s)")
    result = onnxsmith.compare(file, from_text(swapped), runtime="reference")
    assert not result.ok
    assert result.report.verdict.exit_code == 1
    assert result.report.problems[0].id == "verify/different"


def test_another_number_of_outputs(file: Path) -> None:
    fewer = TEXT.replace(", float[n,3] z)", ")").replace("z = Sub(y, s)", "")
    problem = problem_of(file, from_text(fewer))
    assert problem.id == "verify/outputs-differ"
    assert "z" in problem.where


@pytest.mark.usefixtures("compared_once")
def test_a_torch_module_and_its_export(tmp_path: Path) -> None:
    model, x = nn.Sequential(nn.Linear(4, 5), nn.Tanh()), torch.rand(2, 4)
    onnxsmith.export(model, (x,), dynamic={"input": {0: "n"}}, output=tmp_path / "m.onnx")
    assert onnxsmith.compare((model, (x,)), tmp_path / "m.onnx").ok
    with torch.no_grad():
        model[0].weight[0, 0] += 0.01
    assert not onnxsmith.compare((model, (x,)), tmp_path / "m.onnx").ok


def test_given_inputs_alone(file: Path) -> None:
    inputs = {name: np.ones((2, 3), np.float32) for name in ("x", "s")}
    part = onnxsmith.compare(file, file, inputs=inputs, generate=False, runtime="reference").report.part(Verification)
    assert part.runs == ("the given input",)


def test_nothing_to_compare_on_is_a_failure(file: Path) -> None:
    assert problem_of(file, file, generate=False, runtime="reference").id == "verify/nothing-compared"


@pytest.mark.parametrize(("text", "id_"), [("missing.onnx", "model/not-found"), ("a.onnx@nowhere", "runtime/unknown")])
def test_what_cannot_be_compared(file: Path, text: str, id_: str) -> None:
    assert problem_of(file, str(file.parent / text)).id == id_


TWO = """<ir_version: 9, opset_import: ["": 20]>
g (float[2] a, float[2] b) => (float[2] s, float[2] d) { s = Add(a, b) d = Sub(a, b) }"""


@pytest.mark.parametrize(
    ("old", "new", "clause"),
    [
        (
            "(float[2] a, float[2] b)",
            "(float[2] b, float[2] a)",
            "the inputs are in another order: input 1 is b, not a",
        ),
        ("(float[2] s, float[2] d)", "(float[2] d, float[2] s)", "the outputs are in another order: output 1 is d"),
    ],
)
def test_another_order_is_in_the_headline(old: str, new: str, clause: str) -> None:
    result = onnxsmith.compare(from_text(TWO), from_text(TWO.replace(old, new)))
    assert result.ok
    assert clause in result.report.headline


def test_an_output_that_one_model_lists_again_is_a_difference(tmp_path: Path) -> None:
    onnxsmith.save(from_text(TWO), tmp_path / "once.onnx")
    onnxsmith.save(from_text(TWO.replace("float[2] d)", "float[2] d, float[2] s)")), tmp_path / "twice.onnx")
    for pair in (("once.onnx", "twice.onnx"), ("twice.onnx", "once.onnx")):
        found = problem_of(*(tmp_path / name for name in pair))
        assert found.id == "verify/outputs-differ"
        assert "s" in found.where
        assert "--drop-output" not in found.fix  # it would drop both
