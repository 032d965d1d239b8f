"""Cells without models. Workers import this module."""

from __future__ import annotations

import hashlib
import time
from typing import Any

from onnxsmith.fleet.cell_run import lost
from onnxsmith.fleet.cells import Cell
from onnxsmith.fleet.plan import Environment, Limits
from onnxsmith.fleet.row import Outcome, Row, StepResult
from onnxsmith.fleet.sources.base import Model
from onnxsmith.fleet.steps import Step
from onnxsmith.fleet.stores.base import closing, opened


def fake_cell(number: int, settings: int, folder: str, seconds: float) -> Cell:
    """A cell that waits for some seconds. The limit of its steps holds the seconds."""
    model, setting = divmod(number, settings)
    key = hashlib.sha256(str(number).encode()).hexdigest()[:32]
    source = Model(f"model-{model:05}", f"model-{model:05}.onnx", is_file=True)
    steps = (Step("inspect"),)
    return Cell(key, source, f"setting-{setting:02}", Environment(), steps, folder, Limits(seconds, 0))


def fake_task(cell: Cell, store: str, again: bool) -> tuple[str, float]:
    """Waits, and puts a row into the store, as `cell_run.compute` does."""
    with closing():
        rows = opened(store)
        if again or not rows.known([cell.key]):
            time.sleep(cell.limits.seconds)
            rows.put(row(cell))
    return cell.key, cell.limits.seconds


def row(cell: Cell) -> Row:
    """A row of the usual size: 3 KB of report."""
    report = {"verdict": "done", "headline": "equal on 8 inputs", "parts": [{"kind": "x", "rows": ["0.001"] * 400}]}
    step = StepResult("inspect", ("onnxsmith", "inspect"), Outcome.DONE, "equal on 8 inputs", 1.0, report=report)
    empty = lost(cell, "equal on 8 inputs")
    return Row(**{**vars(empty), "outcome": Outcome.DONE, "steps": (step,), "seconds": cell.limits.seconds})


def no_process(verb: str, words: Any, **_: Any) -> StepResult:
    """Stands for `step_process.run`: a step that takes no time."""
    return StepResult(verb, tuple(words), Outcome.DONE, "", 0.0, report={"verdict": "done"})
