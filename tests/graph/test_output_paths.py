"""An output that is a file that an input needs is refused, by whatever path it is named."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper, numpy_helper, parser
from typer.testing import CliRunner

import onnxsmith
from onnxsmith import simplify
from onnxsmith.cli.application import app
from onnxsmith.graph.files.output_paths import refuse_loss
from tests.conftest import Refused

WEIGHTS = np.arange(600, dtype=np.float32)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model whose weights lie in `weights.bin`, with arrays, a keep-list and a report."""
    monkeypatch.chdir(tmp_path)
    write("m.onnx", "weights.bin")
    np.savez("in.npz", x=WEIGHTS)
    Path("keep.txt").write_text("y\n")
    Path("report.html").write_text("<!DOCTYPE html>\n<html></html>")
    Path("model.py").write_text("import torch\nfrom torch.nn import Identity as build\n")
    return tmp_path


def write(name: str, location: str) -> None:
    proto = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]>\ng (float[600] x) => (float[600] y) { i = Identity(x) y = Add(i, w) }'
    )
    tensor = numpy_helper.from_array(WEIGHTS, "w")
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    proto.graph.initializer.append(tensor)
    Path(name).write_bytes(proto.SerializeToString())
    Path(location).write_bytes(WEIGHTS.tobytes())


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def command(*words: str) -> tuple[int, list[str]]:
    """Exit status, and the ids of the report's problems."""
    done = CliRunner().invoke(app, [*words, "--json"])
    return done.exit_code, [problem["id"] for problem in json.loads(done.stdout)["problems"]]


def test_weights_are_not_written_over_by_the_command(folder: Path) -> None:
    words = [sys.executable, "-m", "onnxsmith", "simplify", "m.onnx", "-o", "weights.bin"]
    env = {**os.environ, "PYTHONPATH": str(Path(onnxsmith.__file__).parents[1])}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 2
    assert "save/needed" in done.stderr
    assert Path("weights.bin").read_bytes() == WEIGHTS.tobytes()


@pytest.mark.parametrize(
    "words",
    [
        "simplify m.onnx -o weights.bin",
        "simplify m.onnx -o ./x/../weights.bin",
        "simplify m.onnx -o linked.bin",
        "simplify m.onnx -o in.npz --input in.npz",
        "simplify m.onnx -o new.onnx --html new.onnx",
        "simplify m.onnx -o new.onnx --html m.onnx",
        "simplify m.onnx -o new.onnx --html weights.bin",
        "inspect m.onnx --html m.onnx",
        "inspect m.onnx --html model.py",
        "run m.onnx --input x=in.npz -o in.npz",
        "run m.onnx --random -o m.npz",
        "dump m.onnx --input in.npz -o in.npz",
        "dump m.onnx@onnxruntime -o m.npz",
        "compare m.onnx m.onnx --input in.npz --worst-input in.npz",
        "compare m.onnx@reference m.onnx --worst-input m.onnx",
        "bisect m.onnx --model m.onnx",
        "bisect m.onnx --model weights.bin",
        "bisect m.onnx -o weights.bin",
        "bisect m.onnx -o keep.txt --keep keep.txt",
        "reduce x/m.onnx -o x --check 'refuses onnxruntime'",
        "export model.py:build -o model.py",
        "export model.py:build -o in.npz --input in.npz",
    ],
)
def test_nothing_that_is_read_is_written_over(folder: Path, words: str) -> None:
    Path("x").mkdir()
    Path("x/README.md").write_text("<!-- onnxsmith reduce -->")
    Path("x/m.onnx").write_bytes(b"model")
    Path("linked.bin").symlink_to("weights.bin")
    Path("m.npz").symlink_to("m.onnx" if words.startswith("dump") else "weights.bin")
    before = contents(folder)
    assert command(*shlex.split(words)) == (2, ["save/needed"])
    assert contents(folder) == before


@pytest.mark.parametrize("how", [os.symlink, os.link])
def test_links_make_no_difference(folder: Path, how: Callable[[str, str], None], refused: Refused) -> None:
    how("in.npz", "other.npz")
    with refused("save/needed"):
        refuse_loss(["other.npz"], ["x=in.npz"])


def test_the_case_of_letters_is_as_the_disk_has_it(folder: Path, refused: Refused) -> None:
    Path("M.ONNX").write_bytes(b"another file here")
    if Path("m.onnx").samefile("M.ONNX"):
        with refused("save/needed"):
            refuse_loss(["M.ONNX"], ["m.onnx"])
    else:
        refuse_loss(["M.ONNX"], ["m.onnx"])


def test_a_report_is_written_again_and_devices_take_any_number(folder: Path) -> None:
    refuse_loss(["report.html", "/dev/null", "/dev/null"], ["m.onnx"])
    assert command("inspect", "m.onnx", "--html", "report.html")[0] == 0


@pytest.mark.parametrize("name", ["m.onnx", "./m.onnx", "link.onnx"])
def test_a_model_is_simplified_in_place(folder: Path, name: str) -> None:
    Path("link.onnx").symlink_to("m.onnx")
    assert command("simplify", "m.onnx", "-o", name)[0] == 0
    model = onnx.load("m.onnx")
    assert [node.op_type for node in model.graph.node] == ["Add"]
    assert Path("weights.bin").read_bytes() == WEIGHTS.tobytes()


def test_weights_that_another_model_reads_stay_when_theirs_goes(folder: Path) -> None:
    write("old.onnx", "old.onnx.data")
    Path("copy.onnx").write_bytes(Path("old.onnx").read_bytes())
    assert simplify("m.onnx", "old.onnx").ok
    assert Path("old.onnx.data").read_bytes() == WEIGHTS.tobytes()
    assert "w" in onnx.load("copy.onnx").graph.initializer[0].name


def test_a_model_does_not_go_while_the_input_reads_its_weights(folder: Path, refused: Refused) -> None:
    Path("sub").mkdir()
    write("sub/old.onnx", "old.onnx.data")
    Path("old.onnx.data").rename("sub/old.onnx.data")
    proto = onnx.load("m.onnx", load_external_data=False)
    proto.graph.initializer[0].external_data[0].value = "sub/old.onnx.data"
    Path("m.onnx").write_bytes(proto.SerializeToString())
    with refused("save/needed"):
        simplify("m.onnx", "sub/old.onnx")
    assert Path("sub/old.onnx.data").is_file()


def test_inputs_that_are_no_files_are_passed_over(folder: Path) -> None:
    model = ir.from_proto(helper.make_model(helper.make_graph([], "g", [], [])))
    refuse_loss(["keep.txt", None, "", "new"], ["x=float32[1,2]", 5, None, {"x": WEIGHTS}, model, "a" * 5000, "\0"])
