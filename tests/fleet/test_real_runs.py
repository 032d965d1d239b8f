"""Runs with the real processes of steps, on tiny models: few, because each step takes a second."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import onnxsmith
from onnxsmith.base.report.parts.fleet import CellSteps, FleetMatrix
from onnxsmith.fleet import one_cell, verbs
from onnxsmith.fleet.row import Outcome
from onnxsmith.fleet.stores.base import closing, opened
from onnxsmith.graph.files.load import load
from tests.fleets import MINUTE, is_running, models, plan, until

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(onnxsmith.__file__).parents[1])}


def test_a_good_and_a_bad_model(tmp_path: Path) -> None:
    models(tmp_path, "good.onnx")
    (tmp_path / "bad.onnx").write_bytes(b"garbage")
    path = plan(tmp_path, 'models = ["*.onnx"]\nsteps = ["simplify", "compare"]\nkeep = "out"\n')
    report = verbs.run(path)
    assert {(cell.model, cell.outcome, cell.problem) for cell in report.part(FleetMatrix).cells} == {
        ("good.onnx", "done", ""),
        ("bad.onnx", "failed", "model/garbage"),
    }
    with closing():
        store = opened(str(tmp_path / "fleet.sqlite"))
        good, bad = (
            next(row for row in map(store.row, store.keys()) if row is not None and row.model == name)
            for name in ("good.onnx", "bad.onnx")
        )
    assert [step.verb for step in good.steps] == ["simplify", "compare"]
    assert [step.outcome for step in good.steps] == [Outcome.DONE, Outcome.DONE]
    assert all(step.report is not None for step in (*good.steps, *bad.steps))
    assert [step.verb for step in bad.steps] == ["simplify"]
    (kept,) = good.files
    assert len(list(load(tmp_path / kept).graph)) == 1, "three Negs became one"


def test_why_shows_what_the_steps_report(tmp_path: Path) -> None:
    models(tmp_path, "a.onnx")
    report = one_cell.why(plan(tmp_path, 'models = ["a.onnx"]\nsteps = ["inspect"]\n'), "a")
    assert [step.outcome for step in report.part(CellSteps).steps] == ["done"]
    assert [part.kind() for part in report.parts] == ["cell_steps", "step_report", "model_summary", "timing"]


@pytest.mark.skipif(os.name == "nt", reason="SIGINT reaches a process of Windows in another way")
def test_an_interrupt_leaves_no_process_and_goes_on(tmp_path: Path) -> None:
    """Ctrl-C in the middle of a step: status 2, no process and no folder is left, and the run goes on."""
    models(tmp_path, "a.onnx")
    (tmp_path / "tmp").mkdir()
    (tmp_path / "wait.py").write_text(
        "import os, pathlib, time\n"
        "new = pathlib.Path('new'); new.write_text(str(os.getpid())); new.rename('pid')\n"
        "while not pathlib.Path('go').exists(): time.sleep(0.01)\n"
    )
    plan(
        tmp_path, 'models = ["a.onnx"]\nsteps = ["inspect"]\n[environments.slow]\npython = "./slow"\n'
    )  # relative to the plan
    slow = tmp_path / "slow"
    slow.write_text(
        f'#!/bin/sh\ncase "$*" in *step_host*) {sys.executable} wait.py;; esac\nexec {sys.executable} "$@"\n'
    )
    slow.chmod(0o755)
    command = [sys.executable, "-m", "onnxsmith", "fleet", "run", str(tmp_path / "p.toml"), "--name", "r"]
    environment = {**ENVIRONMENT, "TMPDIR": str(tmp_path / "tmp")}
    process = subprocess.Popen(
        command, cwd=tmp_path.parent, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    until(lambda: (tmp_path / "pid").exists() or process.poll() is not None)
    process.send_signal(signal.SIGINT)
    printed, said = process.communicate(timeout=MINUTE)
    assert process.returncode == 2, printed + said
    assert b"run/interrupted" in said
    assert b"p.toml --resume --name r" in b"".join(said.split(b"\n"))
    until(lambda: not is_running(int((tmp_path / "pid").read_text())))
    assert not list((tmp_path / "tmp").iterdir())
    (tmp_path / "go").touch()
    done = subprocess.run(
        [*command, "--resume"], cwd=tmp_path.parent, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
