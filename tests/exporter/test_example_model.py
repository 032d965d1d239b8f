"""The super-resolution example, as the command line runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner, Result

from onnxsmith.cli.application import app

EXAMPLE = Path(__file__).parents[2] / "examples" / "66_super_resolution"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, a new one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def export(*words: str) -> Result:
    """In this process, which has imported torch."""
    return CliRunner().invoke(app, ["export", *words])


def test_export_says_everything(tmp_path: Path) -> None:
    words = (
        "export", f"{EXAMPLE}/model.py:build", "-o", "superres.onnx", "--dynamic", "x:0=batch,2=height,3=width",
        "--json", "--html", "report.html",
    )  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "onnxsmith", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    parts = {part["kind"]: part for part in json.loads(done.stdout)["parts"]}
    assert parts["capture"]["inputs"][0]["dynamic"] == ["0=batch", "2=height", "3=width"]
    assert parts["capture"]["outputs"][0]["shape"] == ["batch", 1, "3*height", "3*width"]
    check = parts["verification"]
    assert check["equal"]
    assert check["outputs"][0]["worst_rel"] < check["outputs"][0]["tolerance"]
    assert all(len(sizes) >= 3 for sizes in check["sizes"].values())
    assert parts["timing"]["seconds"]["capture"] > 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["report.html", "superres.onnx"]
    assert "3*height" in (tmp_path / "report.html").read_text()


def test_weights_that_do_not_fit_name_the_keys(here: Path) -> None:
    (here / "model.py").write_text((EXAMPLE / "model.py").read_text())
    weights = load_file(EXAMPLE / "weights.safetensors")
    weights["conv9.weight"] = weights.pop("conv2.weight")
    save_file(weights, here / "weights.safetensors")
    done = export("model.py:build", "-o", "m.onnx")
    assert done.exit_code == 2
    assert "conv9.weight" in done.stderr
    assert "conv2.weight" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (here / "m.onnx").exists()


@pytest.mark.parametrize(
    ("spec", "code", "says"),
    [
        ("x=float32[2,1,20,30]", 0, ""),
        ("x=float64[2,1,20,30]", 2, "export/forward-failed"),
        ("x=float32[2,3,20,30]", 2, "export/forward-failed"),
        ("image=float32[2,1,20,30]", 2, "export/unknown-input"),
        ("x=float33[2,1,20,30]", 2, "input/syntax"),
    ],
)
@pytest.mark.usefixtures("here", "compared_once")
def test_inputs_from_the_command_line(spec: str, code: int, says: str) -> None:
    done = export(f"{EXAMPLE}/model.py:build", "-o", "m.onnx", "--input", spec, "-q")
    assert done.exit_code == code, done.stderr
    assert says in done.stderr
