"""docs/fleet.md: its workflow joins the parts, and fails only for what was not known. Steps of cells are played."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.fleet import FleetMatrix
from onnxsmith.cli import application
from onnxsmith.fleet import cells
from onnxsmith.fleet.row import Outcome
from tests import documents, gallery
from tests.fleets import Steps, cells_of, models, plan, steps

__all__ = ["steps"]
PAGE = (Path(__file__).parents[2] / "docs" / "fleet.md").read_text(encoding="utf-8")
TEXTS = ["\n".join(one.lines) for one in documents.blocks(PAGE)]
(WORKFLOW,) = (yaml.safe_load(text)["jobs"] for text in TEXTS if "fleet.yml" in text)
(KNOWN,) = (text for text in TEXTS if "--name known" in text)


def ran(line: str) -> bool:
    """Runs a line of the workflow in this process, and says whether it succeeded. `|| [ $? = 1 ]` allows a 1."""
    command, _, allowed = line.partition(" || ")
    assert allowed in ("", "[ $? = 1 ]")
    words = [file for word in shlex.split(command) for file in (sorted(map(str, Path().glob(word))) or [word])]
    assert words.pop(0) == "onnxsmith"
    _, status = gallery.called(application.main, words)
    return status == 0 or (status == 1 and bool(allowed))


def lines(job: str, **values: str) -> list[str]:
    """The commands of a job, with the values of its expressions."""
    found = [one["run"] for one in WORKFLOW[job]["steps"] if one.get("run", "").startswith("onnxsmith ")]
    for name, value in {**values, "github.run_id": "77"}.items():
        found = [one.replace(f"${{{{ {name} }}}}", value) for one in found]
    return found


def parts(*left_out: int) -> None:
    for number in WORKFLOW["part"]["strategy"]["matrix"]["part"]:
        if number not in left_out:
            assert all(map(ran, lines("part", **{"matrix.part": str(number)})))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: Steps) -> Path:
    """A plan with a known failure, and the store that knows it."""
    monkeypatch.chdir(tmp_path)
    for number in range(4):
        models(tmp_path, f"m{number}.onnx", text=_model(number))
    plan(tmp_path, 'models = ["m*.onnx"]\nsteps = ["simplify", "check"]\n', "plan.toml")
    steps.endings = {"check m0.onnx": Outcome.FAILED, "simplify m0.onnx": Outcome.FAILED}
    ran(KNOWN)
    return tmp_path


def _model(number: int) -> str:
    port = f"float[{number + 1}]"
    return f'<ir_version: 10, opset_import: ["": 20]> g ({port} x) => ({port} y) {{ y = Neg(x) }}'


def whole() -> list[bool]:
    return [ran(line) for line in lines("whole")]


def test_known_failures_do_not_fail_the_workflow(folder: Path) -> None:
    parts()
    assert whole() == [True, True]
    uploads: Any = WORKFLOW["whole"]["steps"][-1]
    assert uploads["if"] == WORKFLOW["whole"]["if"] == "${{ !cancelled() }}"
    found = [file.name for pattern in uploads["with"]["path"].splitlines() for file in folder.glob(pattern)]
    assert sorted(found) == ["fleet.sqlite", "matrix-cells", "matrix.html"]


def test_a_new_failure_fails_the_workflow_and_keeps_its_files(folder: Path, steps: Steps) -> None:
    steps.endings = {**steps.endings, "simplify m1.onnx": Outcome.FAILED}
    models(folder, "m1.onnx", text=_model(10))
    parts()
    assert whole() == [True, False]
    assert (folder / "matrix.html").exists()
    text, _ = gallery.called(application.main, ["fleet", "show", "fleet.sqlite", "--since", "known", "--json"])
    table = Report.from_json(text).part(FleetMatrix)
    assert [cell.model for cell in table.worse()] == ["m1.onnx"]


def test_a_part_that_did_not_run_fails_the_workflow(folder: Path) -> None:
    for number in range(4):
        models(folder, f"m{number}.onnx", text=_model(number + 10))
    everything = cells_of(folder / "plan.toml")
    parts(next(number for number in range(1, 5) if cells.shard(everything, number, 4)))
    assert whole() == [True, False]
