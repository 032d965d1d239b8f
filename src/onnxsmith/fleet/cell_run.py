"""Runs a cell: its steps one after the other, and puts its row into the store.

An engine calls `compute`, on this machine or on another. It gives the key only: the row goes to the store, so that a
worker that is lost after the cell takes no result with it.
"""

from __future__ import annotations

import datetime
import os
import platform
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from onnxsmith.base import folders
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.system import children
from onnxsmith.fleet import cell_limits, environments, kept_files, reasons, step_process, steps
from onnxsmith.fleet.cells import Cell
from onnxsmith.fleet.row import Outcome, Row, StepResult
from onnxsmith.fleet.sources import address
from onnxsmith.fleet.steps import Role, Step
from onnxsmith.fleet.stores.base import closing, opened
from onnxsmith.graph.files import digest
from onnxsmith.graph.files.save import named_data

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Variables that limit the threads of a process in the libraries that compute."""


def compute(cell: Cell, store: str, again: bool = False) -> tuple[str, float, bool]:
    """Computes a cell unless the store has its row, which another run may have put there since. Returns its key, the
    seconds that it took, and whether it was computed. `again` computes it in any case.

    Raises:
        OnnxsmithError: the errors of the store.
        StoppedError: the run was stopped meanwhile.
    """
    began = time.monotonic()
    with closing():
        rows = opened(store)
        is_wanted = again or rows.row(cell.key) is None
        if is_wanted:
            rows.put(run(cell))
    return cell.key, time.monotonic() - began, is_wanted


def run(cell: Cell) -> Row:
    """Runs the steps of a cell, and returns its row. Each step is a process of its own; a step that fails to write a
    model ends the cell.

    Raises:
        StoppedError: the run was stopped meanwhile.
    """
    began = time.monotonic()
    with folders.temporary() as temporary:
        chain = _Chain(cell, temporary)
        results = chain.results()
        files = chain.kept()
    worst = max(results, key=lambda result: result.outcome.harm, default=None)
    return Row(
        key=cell.key,
        model=cell.model.name,
        setting=cell.setting,
        environment=cell.environment.name,
        outcome=worst.outcome if worst is not None else Outcome.DONE,
        headline=worst.headline if worst is not None else "no step was needed",
        problem=worst.problem if worst is not None else "",
        seconds=time.monotonic() - began,
        at=datetime.datetime.now(tz=datetime.UTC).isoformat(timespec="seconds"),
        machine=platform.node(),
        versions=chain.versions,
        files=files,
        steps=tuple(results),
    )


def lost(cell: Cell, why: str) -> Row:
    """Returns the row of a cell that no worker survived."""
    at = datetime.datetime.now(tz=datetime.UTC).isoformat(timespec="seconds")
    place = {"model": cell.model.name, "setting": cell.setting, "environment": cell.environment.name}
    return Row(cell.key, **place, outcome=Outcome.LOST, headline=why, problem="", seconds=0.0, at=at, machine="",
               versions={}, files={}, steps=())  # fmt: skip


class _Chain:
    """The steps of a cell while they run. The present model is the file that the next step reads."""

    def __init__(self, cell: Cell, temporary: Path) -> None:
        self._cell, self._temporary = cell, temporary
        self._present = cell.model.argument
        self._first = self._present if cell.model.is_file else ""
        self._written: list[Path] = []
        self.versions: dict[str, str] = {}

    def results(self) -> list[StepResult]:
        """Runs the steps."""
        try:
            python = environments.interpreter(self._cell.environment)
            self.versions = environments.versions_of(python)
            if self._cell.model.address:
                self._present = self._first = address.fetched(self._cell.model.address, self._temporary / "source")
        except OnnxsmithError as error:
            return [_unprepared(error)]
        results = []
        for number, step in enumerate(self._cell.steps, 1):
            results.append(self._step(number, step, python))
            writes = step.role in (Role.MAKES, Role.REWRITES)
            if writes and not self._took_over(number, step):
                break
        return results

    def _step(self, number: int, step: Step, python: str) -> StepResult:
        words = self._words(number, step)
        folder = self._temporary / f"step-{number}"
        folder.mkdir()
        result = step_process.run(
            step.verb,
            words,
            python=python,
            folder=self._cell.folder,
            seconds=self._cell.limits.seconds,
            memory=self._cell.limits.bytes,
            variables={
                **children.HERE.temporary(str(folder)),
                **self._threads(),
                **cell_limits.variables(self._cell.limits.bytes),
            },
        )
        shown = tuple(word.replace(str(self._temporary), "TEMPORARY") for word in result.command)
        said = {"headline": result.headline, "report": result.report, "said": result.said}
        return replace(result, command=shown, **self._known(said))

    def _known(self, value: Any) -> Any:
        """Returns plain data with the names that a user knows in place of paths in the temporary folder: the address of
        a fetched file, and for a written file the name that the shown commands have, for a copy that a step made of
        its model the model."""
        if isinstance(value, dict):
            return {self._known(key): self._known(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self._known(one) for one in value]
        if not isinstance(value, str):
            return value
        if self._temporary.name not in value:
            return value
        for folder in (str(self._temporary.resolve()), str(self._temporary)):
            value = re.sub(_copy_in(folder), lambda _: self._present, value)
        if self._cell.model.address:
            value = value.replace(self._first, self._cell.model.address)
        for folder in (str(self._temporary.resolve()), str(self._temporary)):
            value = value.replace(f"{folder}{os.sep}", "").replace(folder, "a temporary folder")
        return value

    def _words(self, number: int, step: Step) -> list[str]:
        target = self._target(number, step)
        if step.role in (Role.MAKES, Role.REWRITES):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)  # the file of an earlier run would pass for that of this step
        return steps.words_of(step, self._first, self._present, self._shown(target))

    def _target(self, number: int, step: Step) -> Path:
        """Returns the file that a step writes: in the folder of the plan's `keep`, or in the temporary folder."""
        keep = Path(self._cell.folder) / self._cell.keep
        folder = kept_files.folder_of(self._cell.place, keep) if self._cell.keep else self._temporary
        return folder / kept_files.name_of(number, step.verb)

    def _shown(self, target: Path) -> str:
        """Returns the path as the step gets it, relative to the plan's folder if it lies there."""
        folder = Path(self._cell.folder)
        return str(target.relative_to(folder) if target.is_relative_to(folder) else target)

    def _took_over(self, number: int, step: Step) -> bool:
        """Takes the written file as the present model. Returns whether there is one."""
        target = self._target(number, step)
        if not target.exists():
            return False
        self._written.append(target)
        self._present = self._shown(target)
        self._first = self._first or self._present
        return True

    def _threads(self) -> Mapping[str, str]:
        """Returns variables that keep cells that run side by side from taking all cores each."""
        count = self._cell.threads
        return {} if not count else {name: str(count) for name in _THREADS if name not in os.environ}

    def kept(self) -> dict[str, str]:
        """Returns the kept files with their digests."""
        if not self._cell.keep:
            return {}
        data = [target.parent / name for target in self._written for name in named_data(target)]
        return {self._shown(file): digest.sha256(file) for file in (*self._written, *data) if file.is_file()}


def _copy_in(folder: str) -> str:
    """Returns a pattern of the paths of ONNX files in the temporary folders of steps: each is a copy of the model that
    the step reads."""
    return rf"""{re.escape(folder)}[\\/]step-\d+[^\s"',;:()]*\.onnx"""


def _unprepared(error: OnnxsmithError) -> StepResult:
    """Returns the result of a cell whose environment or file could not be had: the next run tries again."""
    found = error.problem
    reason = reasons.of_problem(found.what, found.why)
    return StepResult("prepare", (), Outcome.LOST, reason, 0.0, found.id, None, str(found))
