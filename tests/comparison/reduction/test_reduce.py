"""A failing model becomes its smallest part, and its folder shows the failure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import onnxsmith
from onnxsmith.base.report.parts.edits import Reduction
from onnxsmith.base.report.parts.written_files import Written
from onnxsmith.cli.commands.compare import Reduce
from onnxsmith.graph.files.text import from_text
from tests.comparison.reduction.planted import (
    Chain,
    crash,
    endless,
    flows,
    lost_nan,
    operators,
    planted,
    unknown,
    wrapped,
)
from tests.conftest import Refused

CASES: dict[str, tuple[Any, str, list[str]]] = {
    "refuses": (unknown, "refuses onnxruntime", ["Geluu"]),
    "refuses-reference": (unknown, "refuses reference", ["Geluu"]),
    "refuses-openvino": (unknown, "refuses openvino", ["Geluu"]),
    "differs-openvino": (wrapped, "differs reference openvino:threads=1", ["Sub", "Cast"]),
    "refuses-level": (unknown, "refuses onnxruntime:basic:threads=1", ["Geluu"]),
    "differs": (lost_nan, "differs onnxruntime reference", ["ReduceMax"]),
    "differs-options": (lost_nan, "differs onnxruntime:disable_all reference", ["ReduceMax"]),
    "crashes": (crash, "crashes onnxruntime", ["Div"]),
    "slow": (endless, "slow onnxruntime 1", ["Loop"]),
}


def shown(folder: Path) -> int:
    """The exit status of the folder's own program, in a process that has never heard of onnxsmith."""
    program = subprocess.run(
        [sys.executable, "-P", "repro.py"],
        cwd=folder,
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
        capture_output=True,
        timeout=120,
        check=False,
    )
    return program.returncode


@pytest.mark.parametrize("name", CASES)
def test_what_fails_is_left_and_its_program_shows_it(name: str, tmp_path: Path) -> None:
    plant, check, left = CASES[name]
    folder = tmp_path / "reduced"
    result = onnxsmith.reduce(planted(plant), folder, check=check)
    assert result.ok
    assert result.path == folder
    assert operators(folder / "model.onnx") == left
    assert shown(folder) == {"crashes": -8}.get(name, 1)
    assert "onnxsmith" not in (folder / "repro.py").read_text()
    files = {"model.onnx", "inputs.npz", "repro.py", "output.txt", "versions.txt", "README.md"}
    assert {file.name for file in folder.iterdir()} == files
    assert set(result.report.part(Written).files) == {str(folder / name) for name in files}
    part = result.report.part(Reduction)
    assert part.steps[0].nodes > part.steps[-1].nodes >= 1
    assert sum(step.tries for step in part.steps) == sum(part.tries.values())
    assert result.report.from_json(result.report.to_json()) == result.report
    assert not list(tmp_path.glob(".*")), "nothing is left beside it"


def test_a_command_judges(tmp_path: Path) -> None:
    check = tmp_path / "check.py"
    check.write_text(
        "import sys, onnx, numpy as np\n"
        "feeds = dict(np.load(sys.argv[2]))\n"
        "operators = [n.op_type for n in onnx.load(sys.argv[1]).graph.node]\n"
        "sys.exit(7 if 'Sqrt' in operators and 'Geluu' not in operators else 0)\n"
    )
    onnx.save(planted(lost_nan), tmp_path / "m.onnx")
    command = f"{sys.executable} {check} {{model}} {{inputs}}"
    report = Reduce(str(tmp_path / "m.onnx"), str(tmp_path / "out"), command=command, status=7).run()
    assert report.verdict.exit_code == 0
    assert operators(tmp_path / "out" / "model.onnx") == ["Sqrt"]
    assert shown(tmp_path / "out") == 1


def test_a_function_judges_two_nodes_far_apart(tmp_path: Path) -> None:
    chain = Chain()
    x = chain.add("Erf", chain.through("x", 5))
    model = chain.model(chain.add("Softmax", chain.through(x, 30)))
    result = onnxsmith.reduce(model, tmp_path / "out", check=flows("Erf", "Softmax"))
    assert operators(tmp_path / "out" / "model.onnx") == ["Erf", "Softmax"]
    assert result.ok


def test_values_that_a_failure_depends_on_are_kept(tmp_path: Path) -> None:
    """With ones it would agree: the NaN was really there, and is fed now."""
    onnxsmith.reduce(planted(lost_nan), tmp_path / "out", check="differs reference onnxruntime")
    model = onnx.load(tmp_path / "out" / "model.onnx")
    held = [onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer]
    held += list(dict(np.load(tmp_path / "out" / "inputs.npz")).values())
    assert any(np.isnan(array).any() for array in held)


def test_given_inputs_are_used(tmp_path: Path, refused: Refused) -> None:
    model = planted(lost_nan, 0)
    calm = {"x": np.ones((1, 4), np.float32)}
    with refused("reduce/does-not-fail") as refusal:
        onnxsmith.reduce(model, tmp_path / "out", check="differs onnxruntime reference", inputs=calm)
    assert "--input" in refusal.problem.fix
    assert not (tmp_path / "out").exists()
    odd = {"x": np.array([[1, 0, 1, 1]], np.float32)}
    assert onnxsmith.reduce(model, tmp_path / "out", check="differs onnxruntime reference", inputs=odd).ok


def test_without_a_folder_the_model_is_given() -> None:
    result = onnxsmith.reduce(planted(unknown, 3), check="refuses onnxruntime")
    assert result.model is not None
    assert [node.op_type for node in result.model.graph] == ["Geluu"]
    assert result.path is None


def test_the_callers_model_is_not_changed() -> None:
    model = onnxsmith.load(planted(lost_nan))
    before = onnxsmith.load(planted(lost_nan))
    onnxsmith.reduce(model, check="differs onnxruntime reference")
    assert [node.op_type for node in model.graph] == [node.op_type for node in before.graph]
    assert [value.name for value in model.graph.inputs] == ["x"]


def test_anonymised(tmp_path: Path) -> None:
    model = planted(lost_nan)
    model.doc_string = "secret"
    model.producer_name = "secret"
    for node in model.graph.node:
        node.doc_string = "secret"
        node.metadata_props.add(key="stack_trace", value="/home/secret/model.py")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "secret"
    folder = tmp_path / "out"
    result = onnxsmith.reduce(model, folder, check="differs onnxruntime reference", anonymise=True)
    for file in folder.iterdir():
        assert b"secret" not in file.read_bytes()
        assert str(Path.home()).encode() not in file.read_bytes()
    names = {name for node in onnx.load(folder / "model.onnx").graph.node for name in (*node.input, *node.output)}
    assert not any(name.startswith(("t", "w", "x")) for name in names)
    assert result.report.part(Reduction).anonymised
    assert shown(folder) == 1


def test_what_cannot_be_anonymised_is_named(tmp_path: Path) -> None:
    chain = Chain()
    model = chain.model(chain.add("Acme", chain.through("x", 6), domain="com.acme", recipe="butter"))
    model.opset_import.add(domain="com.acme", version=1)
    result = onnxsmith.reduce(model, tmp_path / "out", check="refuses onnxruntime", anonymise=True)
    kept = " ".join(result.report.part(Reduction).kept)
    assert "com.acme::Acme" in kept
    assert "Acme.recipe" in kept


def test_the_same_failure_not_another() -> None:
    """Two unknown operators: the one that is reported first stays, not the one that is cheaper to keep."""
    chain = Chain()
    x = chain.add("Geluu", chain.through("x", 6))
    model = chain.model(chain.add("Siluu", chain.through(x, 6)))
    result = onnxsmith.reduce(model, check="refuses onnxruntime")
    assert result.model is not None
    assert [node.op_type for node in result.model.graph] == ["Geluu"]


def test_a_message_with_other_numbers_is_noted() -> None:
    """Index 40 is outside of 36 columns. With two columns, index 1 stays inside; with one, it is outside, too."""
    model = from_text(
        '<ir_version: 10, opset_import: ["": 20]> g (float[n,36] x) => (float[n,2] y) <int64[2] i = {1, 40}> '
        "{ a = Relu(x) y = Gather<axis = 1>(a, i) }"
    )
    result = onnxsmith.reduce(model, check="refuses onnxruntime")
    (note,) = (one for one in result.report.notes if "other numbers" in one)
    assert "40" in note


def test_a_folder_of_ours_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    onnxsmith.reduce(planted(unknown, 3), folder, check="refuses onnxruntime")
    (folder / "stale.txt").write_text("from before")
    onnxsmith.reduce(planted(unknown, 3), folder, check="refuses onnxruntime")
    assert not (folder / "stale.txt").exists()
    assert operators(folder / "model.onnx") == ["Geluu"]
