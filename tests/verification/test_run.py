"""`run` as a user calls it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import onnxsmith
from onnxsmith.base.report.parts.verification import OutputArray, Outputs
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.verification.run import _summary
from tests.conftest import Refused

UPSCALE = """
<ir_version: 10, opset_import: ["": 20]>
g (float[batch,1,height,width] x) => (float[batch,1,h,w] y) <float[4] s = {1, 1, 2, 2}> { y = Resize(x, , s) }
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    save(from_text(UPSCALE), tmp_path / "up.onnx")
    return tmp_path / "up.onnx"


def test_arrays_in_arrays_out(model: Path) -> None:
    x = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)
    result = onnxsmith.run(model, {"x": x})
    np.testing.assert_array_equal(result.outputs["y"], x.repeat(2, 2).repeat(2, 3))
    part = result.report.part(Outputs)
    assert part.provider == "CPUExecutionProvider"
    assert sum(part.nodes.values()) == 1
    assert (part.outputs[0].low, part.outputs[0].high, part.outputs[0].shape) == (0.0, 5.0, (1, 1, 4, 6))


def test_a_runtime_behind_the_file(model: Path) -> None:
    shown = onnxsmith.run(f"{model}@reference", random=True).report.part(Outputs)
    assert shown.runtime == "reference"
    with pytest.raises(onnxsmith.OnnxsmithError, match="runtime/unknown"):
        onnxsmith.run(f"{model}@nothing", random=True)


def test_a_picture_keeps_its_sides(model: Path, tmp_path: Path) -> None:
    Image.fromarray(np.tile(np.arange(0, 250, 10, dtype=np.uint8), (7, 1))).save(tmp_path / "wide.png")
    onnxsmith.run(model, [f"x={tmp_path / 'wide.png'}"], output=tmp_path / "out.png", runtime="reference")
    with Image.open(tmp_path / "out.png") as out:
        assert out.size == (50, 14)
        assert np.asarray(out)[0, 0] == 0
        assert np.asarray(out)[0, -1] == 240


def test_outputs_as_npz(model: Path, tmp_path: Path) -> None:
    onnxsmith.run(
        model, random=True, sizes={"batch": 2, "height": 3, "width": 5}, output=tmp_path / "y.npz", runtime="reference"
    )
    with np.load(tmp_path / "y.npz") as arrays:
        assert arrays["y"].shape == (2, 1, 6, 10)


def test_the_report_says_where_an_output_went(model: Path, tmp_path: Path) -> None:
    x = {"x": np.ones((1, 1, 2, 3), np.float32)}
    written = onnxsmith.run(model, x, output=tmp_path / "y.npz", runtime="reference").report.part(Outputs)
    assert written.outputs[0].written.endswith("y.npz")
    assert onnxsmith.run(model, x, runtime="reference").report.part(Outputs).outputs[0].written == ""


def test_generated_inputs_are_the_same_for_the_same_seed(model: Path) -> None:
    runs = [onnxsmith.run(model, random=True, seed=seed, runtime="reference").outputs["y"] for seed in (1, 1, 2)]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


def test_many_unknown_inputs_are_counted(model: Path, refused: Refused) -> None:
    x = np.zeros((1, 1, 2, 2), np.float32)
    with refused("run/unknown-input") as refusal:
        onnxsmith.run(model, {f"k{number}": x for number in range(1000)})
    assert refusal.problem.what == "the model has no inputs 'k0', 'k1', 'k2' and 997 more"


@pytest.mark.parametrize(
    ("inputs", "options", "id_"),
    [
        ({}, {}, "run/missing-input"),
        ({"z": np.zeros((1, 1, 2, 2), np.float32)}, {}, "run/unknown-input"),
        ({"x": np.zeros((1, 1, 2, 2))}, {}, "run/wrong-dtype"),
        ({"x": np.zeros((1, 3, 2, 2), np.float32)}, {}, "run/wrong-shape"),
        ({"x": [[1.0]]}, {}, "run/not-an-array"),
        ((), {"random": True, "provider": "cuda"}, "runtime/provider-missing"),
        ((), {"random": True, "output": "y.txt"}, "output/unknown-kind"),
        ((), {"random": True, "output": "/no/such/folder/y.npz"}, "save/no-folder"),
        ((), {"random": True, "output": "y.png", "sizes": {"batch": 2}}, "output/not-an-image"),
    ],
)
def test_what_goes_wrong_has_a_name(model: Path, inputs: Any, options: dict[str, Any], id_: str) -> None:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.run(model, inputs, **options)
    assert caught.value.problem.id == id_


@pytest.mark.parametrize(
    ("value", "summary"),
    [
        ([np.zeros(1), np.zeros(2)], OutputArray("y", "a sequence of 2", ())),
        (None, OutputArray("y", "NoneType", ())),
        (np.array(["a"]), OutputArray("y", "string", (1,))),
        (np.zeros((0, 2), np.int64), OutputArray("y", "int64", (0, 2))),
        (np.float32([np.nan, np.inf]), OutputArray("y", "float32", (2,), nonfinite=2)),
        (np.float32([1, np.nan, 3, 8]), OutputArray("y", "float32", (4,), 1.0, 4.0, 8.0, 1)),
        (np.int64([1, 3]), OutputArray("y", "int64", (2,), 1.0, 2.0, 3.0, 0)),
    ],
)
def test_each_kind_of_output_has_a_summary(value: Any, summary: OutputArray) -> None:
    assert _summary("y", value, "") == summary
