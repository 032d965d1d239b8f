"""Verification records: what `--record` writes, and what `verify-record` finds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import torch
from typer.testing import CliRunner

import onnxsmith
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.records import RecordCheck
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli import application
from onnxsmith.gate.records import record_file
from onnxsmith.gate.records.record_comparison import changes
from onnxsmith.gate.records.recording import Plan, Recording
from onnxsmith.graph.files import digest
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text

MODEL = (
    '<ir_version: 10, opset_import: ["": 20]> g (float[n,2] x) => (float[n,2] y) '
    "<float[2,2] w = {1.0, 2.5, -3.0, 4.0}> { a = Identity(x) b = MatMul(a, w) y = Relu(b) }"
)
MODULE = """
import torch

def build():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(16, 40), torch.nn.ReLU(), torch.nn.Linear(40, 2)), (torch.ones(3, 16),)
"""
PATCH = '[[step]]\ndo = "rename"\ntensor = "y"\nto = "z"\n'
COMMANDS = {
    "simplify": "simplify m.onnx -o out.onnx",
    "compare": "compare m.onnx same.onnx",
    "edit": "edit m.onnx p.toml -o out.onnx --write-patch again.toml",
    "export": "export net.py:build -o out.onnx --external-data",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    work = tmp_path / "work"
    work.mkdir()
    save(from_text(MODEL), work / "m.onnx")
    save(from_text(MODEL.replace("a = Identity(x) b = MatMul(a, w)", "b = MatMul(x, w)")), work / "same.onnx")
    (work / "p.toml").write_text(PATCH)
    (work / "net.py").write_text(MODULE)
    before = Path.cwd()
    os.chdir(work)
    yield work
    os.chdir(before)


def called(command: str) -> Report:
    result = CliRunner().invoke(application.app, [*command.split(), "--json"])
    report = Report.from_json(result.stdout[result.stdout.index('{\n  "schema"') :])
    assert result.exit_code == report.verdict.exit_code
    return report


def recorded(command: str = COMMANDS["simplify"], record: str = "r.json") -> dict[str, Any]:
    report = called(f"{command} --record {record}")
    assert report.verdict is Verdict.DONE, report.problems
    return dict(json.loads(Path(record).read_text()))


def checked(record: str = "r.json", *, replay: bool = True) -> tuple[Report, RecordCheck]:
    report = onnxsmith.verify_record(record, replay=replay).report
    return report, report.part(RecordCheck)


def edit(act: Callable[[Any], object], record: str = "r.json") -> None:
    data = json.loads(Path(record).read_text())
    act(data["predicate"])
    Path(record).write_text(json.dumps(data))


def ids(report: Report) -> list[str]:
    return [one.id for one in report.problems]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_record_verifies_in_another_folder(name: str, folder: Path) -> None:
    recorded(COMMANDS[name])
    moved = folder.rename(folder.with_name("moved"))
    report, part = checked(str(moved / "r.json"))
    assert report.verdict is Verdict.DONE, report.problems
    assert part.replayed
    assert not part.fields
    assert {one.again for one in part.files if one.role == "about"} == {"same bytes"}
    assert not (moved / "again").exists()


def test_the_statement() -> None:
    found = recorded()
    assert found["_type"] == "https://in-toto.io/Statement/v1"
    assert found["predicateType"] == record_file.PREDICATE
    (subject,) = found["subject"]
    assert subject["name"] == "out.onnx"
    assert subject["digest"] == {"sha256": digest.sha256(Path("out.onnx"))}
    predicate = found["predicate"]
    assert predicate["command"] == ["simplify", "m.onnx", "--output", "out.onnx"]
    assert [one["name"] for one in predicate["parents"]] == ["m.onnx"]
    assert predicate["verdict"] == "done"
    assert {"onnxsmith", "python", "onnx", "onnxruntime"} <= predicate["versions"].keys()
    (part,) = predicate["compared"]
    assert part["outputs"][0]["name"] == "y"
    assert part["power"]["seen"] == 1
    text = Path("r.json").read_text()
    recorded()
    assert Path("r.json").read_text() == text


def test_the_folder_of_the_command_is_known() -> None:
    Path("records").mkdir()
    assert recorded(record="records/r.json")["predicate"]["folder"] == ".."
    assert checked("records/r.json")[0].verdict is Verdict.DONE


@pytest.mark.parametrize("name", ["m.onnx", "out.onnx"])
def test_a_changed_byte_is_named(name: str) -> None:
    recorded()
    content = bytearray(Path(name).read_bytes())
    content[-1] ^= 1
    Path(name).write_bytes(content)
    report, part = checked()
    assert report.verdict is Verdict.DIFFERENT
    assert ids(report) == ["record/file-changed"]
    assert [one.name for one in part.files if one.result == "changed"] == [name]
    assert not part.replayed


def test_a_missing_file_is_named() -> None:
    recorded()
    Path("m.onnx").unlink()
    report, _ = checked()
    assert report.verdict is Verdict.FAILED
    assert ids(report) == ["record/file-missing"]
    assert "m.onnx" in report.problems[0].what


def test_all_bytes_of_external_data_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxsmith.graph.files.digest._WHOLE", 64)  # reports hash parts of a larger file
    monkeypatch.setattr("onnxsmith.graph.files.digest._PIECE", 16)
    weights = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    text = '<ir_version: 10, opset_import: ["": 20]> g (float[n,64] x) => (float[n,64] y) { y = MatMul(x, w) }'
    save(_with_weight(text, weights), "large.onnx", external_data=True)
    recorded("simplify large.onnx -o out.onnx")
    data = Path("large.onnx.data")
    content = bytearray(data.read_bytes())
    content[5000] ^= 1
    data.write_bytes(content)
    report, part = checked(replay=False)
    assert ids(report) == ["record/file-changed"]
    assert [one.name for one in part.files if one.result == "changed"] == ["large.onnx.data"]


def _with_weight(text: str, weights: Any) -> ir.Model:
    model = from_text(text.replace("(float[n,64] x)", "(float[n,64] x, float[64,64] w)"))
    value = model.graph.inputs.pop()
    value.const_value = ir.tensor(weights, name="w")
    model.graph.register_initializer(value)
    return model


def test_every_file_of_a_folder_that_is_read_counts() -> None:
    Path("pretrained").mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        Path("pretrained", name).write_text(name)
    plan = Plan(("export", "pretrained"), ("pretrained",), (), ("same.onnx",), None)
    found = Recording(plan).record(Report("export", Verdict.DONE), ".")
    assert isinstance(found, record_file.Record)
    record_file.write(found, Path("r.json"))
    assert checked(replay=False)[0].verdict is Verdict.DONE
    Path("pretrained/tokenizer.json").write_text("tokeniser.json")
    _, part = checked(replay=False)
    assert [one.name for one in part.files if one.result == "changed"] == ["pretrained/tokenizer.json"]


def test_the_modules_that_a_factory_imports_are_parents() -> None:
    Path("own_layers.py").write_text("import torch\n\nlayer = torch.nn.ReLU()\n")
    Path("net.py").write_text(
        "import torch\nimport own_layers\n\ndef build():\n    return own_layers.layer, (torch.ones(2),)\n"
    )
    try:
        found = recorded("export net.py:build -o out.onnx")
    finally:
        sys.modules.pop("own_layers", None)
    assert [one["name"] for one in found["predicate"]["parents"]] == ["net.py", "own_layers.py"]


CHANGES: dict[str, tuple[Callable[[Any], object], str]] = {
    "a tolerance": (
        lambda data: data["compared"][0]["outputs"][0].update(tolerance=0.1),
        "verification.outputs[y].tolerance",
    ),
    "a verdict": (lambda data: data.update(verdict="different"), "verdict"),
    "a size": (lambda data: data["compared"][0]["sizes"]["n"].append(4096), "verification.sizes.n[6]"),
    "a fault": (lambda data: data["compared"][0]["power"].update(seen=9), "verification.power.seen"),
    "a gap": (lambda data: data["compared"][0].update(untried=["all else"]), "verification.untried"),
    "a parent": (lambda data: data["parents"].clear(), "parents: m.onnx"),
    "a seed": (lambda data: data.update(seed=1), "seed"),
    "a comparison": (lambda data: data["compared"].clear(), "verification.verified"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_field_is_named(name: str) -> None:
    recorded()
    original = record_file.read(Path("r.json"))
    act, field = CHANGES[name]
    edit(act)
    found = changes(record_file.read(Path("r.json")), original, elsewhere=False)
    assert field in [one.field for one in found if not one.explained], found


@pytest.mark.parametrize("name", ["a tolerance", "a verdict"])
def test_a_changed_record_is_noticed(name: str) -> None:
    recorded()
    act, field = CHANGES[name]
    edit(act)
    report, part = checked()
    assert report.verdict is Verdict.DIFFERENT
    assert ids(report) == ["record/changed"]
    assert [one.field for one in part.fields] == [field]
    assert field in report.problems[0].what


def test_the_time_for_planted_faults_explains_their_number() -> None:
    recorded()
    limited = "left out to save time (a thorough verification includes this: --thorough): 5 of 10 weights"
    edit(lambda data: data["compared"][0].update(notes=[limited]))
    edit(lambda data: data["compared"][0]["power"].update(tried=10))
    now = record_file.read(Path("r.json"))
    edit(lambda data: data["compared"][0]["power"].update(tried=14))
    assert [one.explained for one in changes(record_file.read(Path("r.json")), now, elsewhere=False)] == [True]
    edit(lambda data: data["compared"][0]["power"].update(tried=30))
    assert [one.explained for one in changes(record_file.read(Path("r.json")), now, elsewhere=False)] == [False]


def test_another_command_is_noticed() -> None:
    recorded()
    edit(lambda data: data.update(command=["simplify", "same.onnx", "--output", "out.onnx"]))
    report, _ = checked()
    assert ids(report) == ["record/changed"]


def test_another_version_is_a_note() -> None:
    recorded()
    edit(lambda data: data["versions"].update(onnx="1.0"))
    report, part = checked()
    assert report.verdict is Verdict.DONE
    assert "onnx 1.0, here" in report.notes[0]
    edit(lambda data: data["compared"][0]["outputs"][0].update(tolerance=1.5e-6))
    report, part = checked()
    assert report.verdict is Verdict.DONE
    assert [(one.field, one.explained) for one in part.fields] == [("verification.outputs[y].tolerance", True)]
    edit(lambda data: data["compared"][0]["outputs"][0].update(tolerance=0.1))
    report, part = checked()
    assert report.verdict is Verdict.CANNOT_TELL
    assert "another version or machine may be the cause (onnx 1.0" in report.problems[0].why


@pytest.mark.parametrize(("model", "said"), [("named.onnx", "the models agree"), ("other.onnx", "the models differ")])
def test_other_bytes_are_compared_as_models(model: str, said: str) -> None:
    recorded()
    renamed = from_text(MODEL)
    renamed.graph.name = "named"
    save(renamed, "named.onnx")
    save(from_text(MODEL.replace("4.0", "4.5")), "other.onnx")
    shutil.copy(model, "out.onnx")
    data = json.loads(Path("r.json").read_text())
    data["subject"][0]["digest"]["sha256"] = digest.sha256(Path(model))
    Path("r.json").write_text(json.dumps(data))
    report, part = checked()
    assert report.verdict is Verdict.DIFFERENT
    assert ids(report) == ["record/other-bytes"]
    assert part.files[0].again == f"other bytes, {said}"
    edit(lambda data: data["versions"].update(onnx="1.0"))
    assert checked()[0].verdict is (Verdict.DONE if model == "named.onnx" else Verdict.CANNOT_TELL)


def test_the_result_in_place_of_the_input() -> None:
    recorded("opset m.onnx 21 -o m.onnx")
    report, _ = checked()
    assert report.verdict is Verdict.FAILED
    assert ids(report) == ["record/replaced"]
    assert checked(replay=False)[0].verdict is Verdict.DONE


def test_a_record_without_replay_on_the_command_line() -> None:
    recorded()
    report = called("verify-record r.json --no-replay")
    assert report.verdict is Verdict.DONE
    assert report.headline == "r.json: 2 files as recorded; the command was not run again"


def test_a_failed_command_leaves_no_record() -> None:
    report = called("simplify p.toml -o out.onnx --record r.json")
    assert ids(report)[-1] == "record/not-written"
    assert not Path("r.json").exists()


def test_a_record_of_two_models_that_differ() -> None:
    save(from_text(MODEL.replace("4.0", "4.5")), "other.onnx")
    assert called("compare m.onnx other.onnx --record r.json").verdict is Verdict.DIFFERENT
    assert json.loads(Path("r.json").read_text())["predicate"]["verdict"] == "different"
    report, _ = checked()
    assert report.verdict is Verdict.DONE


def test_two_exports_give_the_same_bytes(folder: Path) -> None:
    """The order of sets and dictionaries of one process is not that of another one."""
    commands = (
        "export net.py:build -o net.onnx",
        "simplify net.onnx -o simple.onnx",
        "quantize net.onnx -o narrow.onnx --to int4 --no-time",
    )
    contents = []
    for seed in ("1", "2"):
        for command in commands:
            words = [sys.executable, "-m", "onnxsmith", *command.split(), "--quiet"]
            subprocess.run(words, check=True, env={**os.environ, "PYTHONHASHSEED": seed}, cwd=folder)
        contents.append([Path(name).read_bytes() for name in ("net.onnx", "simple.onnx", "narrow.onnx")])
        for name in ("net.onnx", "simple.onnx", "narrow.onnx"):
            Path(name).unlink()
    assert contents[0] == contents[1]


def test_torch_is_a_version_of_an_export() -> None:
    assert recorded(COMMANDS["export"])["predicate"]["versions"]["torch"] == torch.__version__
