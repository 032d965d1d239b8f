"""Runs one cell of a plan: for a shell command, or here with everything shown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PureWindowsPath

from onnxsmith.base.clock import Clock, stage
from onnxsmith.base.problem import problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.written_files import Timing
from onnxsmith.base.words import first_few, in_place_of, pasted, pasted_words
from onnxsmith.fleet import cell_report, cell_run, environments, plan_reader
from onnxsmith.fleet import cells as cell_lists
from onnxsmith.fleet.cells import Cell
from onnxsmith.fleet.plan import HERE
from onnxsmith.fleet.row import Row, StepResult
from onnxsmith.fleet.stores.base import closing, opened
from onnxsmith.fleet.verbs import address_of

_UNLIMITED = "the commands run without the time limit and the memory limit of the plan"
_SHOWN = 8
"""Limits the names that a problem lists. A choice."""


@closing()
def compute(path: str | Path, key: str, store: str = "") -> Report:
    """Computes the cell of a key, and puts its row into the store.

    Raises:
        OnnxsmithError: `fleet/no-cell` if the plan has no such cell; the errors of reading the plan and the store.
    """
    with Clock() as clock:
        plan = plan_reader.read(path)
        cells = cell_lists.by_key(cell_lists.of_plan(plan))
        if key not in cells:
            raise problem(
                "fleet/no-cell",
                f"the plan has no cell {key}",
                where=str(path),
                why="the key is computed from the model's bytes, the steps and the versions; one of these has changed",
                fix=f"list the cells again: `{pasted_words(['onnxsmith', 'fleet', 'list', str(path)])}`",
            )
        address = address_of(plan, store)
        cell_run.compute(cells[key], address)
        row = opened(address).row(key)
        assert row is not None
        return _report("fleet cell", cells[key], row, clock, whole=False)


def why(path: str | Path, model: str, setting: str = "", environment: str = "") -> Report:
    """Runs a cell again here, and returns everything that its steps report. The store keeps the row that it has.

    Raises:
        OnnxsmithError: `fleet/no-cell` if there is no such cell, or several; the errors of reading the plan.
    """
    with Clock() as clock:
        plan = plan_reader.read(path)
        cell = chosen(cell_lists.of_plan(plan), path, model, setting, environment)
        with stage(f"run {cell.model.name}"):
            row = cell_run.run(cell)
        return _report("fleet why", cell, row, clock, whole=True)


def chosen(cells: Sequence[Cell], path: str | Path, model: str, setting: str, environment: str) -> Cell:
    """Returns the cell of a model: the only one, or that of the named setting and environment. `model` may be a name
    without its folder and ending, if only one model has it.

    Raises:
        OnnxsmithError: `fleet/no-cell`.
    """
    names = list(dict.fromkeys(cell.model.name for cell in cells))
    same = [name for name in names if name == model] or [name for name in names if _is_short_for(model, name)]
    if len(same) != 1:
        raise problem(
            "fleet/no-cell",
            f"the plan has no model {model!r}" if not same else f"{model!r} may mean several models",
            where=str(path),
            fix=in_place_of(model, names, _SHOWN) if not same else f"write one of: {first_few(same, _SHOWN)}",
        )
    fitting = [
        cell
        for cell in cells
        if cell.model.name == same[0]
        and (not setting or cell.setting == setting)
        and (not environment or cell.environment.name == environment)
    ]
    if len(fitting) == 1:
        return fitting[0]
    of_model = [cell for cell in cells if cell.model.name == same[0]]
    options = [f"--setting {pasted(cell.setting)} --environment {pasted(cell.environment.name)}" for cell in of_model]
    raise problem(
        "fleet/no-cell",
        f"{same[0]} has no such cell" if not fitting else f"{same[0]} has {len(fitting)} such cells",
        where=str(path),
        fix=first_few([f"add {words}" for words in options], _SHOWN, "; or "),
    )


def _is_short_for(short: str, name: str) -> bool:
    """Whether a name without its folder and ending is meant by a shorter one: `speech` for `models/speech.onnx`,
    `build` for `nets.py:build`."""
    file, is_factory, function = name.rpartition(":")  # the first colon may be that of a drive, C:\nets.py:build
    if is_factory and all(part.isidentifier() for part in function.split(".")):
        return short in (function, f"{PureWindowsPath(file).name}:{function}")
    return Path(name).stem == Path(short).stem


def _report(command: str, cell: Cell, row: Row, clock: Clock, *, whole: bool) -> Report:
    report = cell_report.of_row(command, row, cell.place, cell.folder, whole=whole, typed=partial(_typed, cell))
    notes = [*report.notes, *[_UNLIMITED] * (whole and bool(cell.limits.seconds or cell.limits.bytes))]
    problems = tuple(replace(one, fix=_for_environment(cell, one.fix)) for one in report.problems)
    return replace(report, parts=(*report.parts, Timing(clock.passed())), problems=problems, notes=tuple(notes))


def _for_environment(cell: Cell, fix: str) -> str:
    """Returns a fix whose commands run with the Python of the cell's environment. A package that is missing in an
    environment with requirements belongs to these: the environment is made anew then."""
    if cell.environment.name == HERE or "`" not in fix:
        return fix
    python = pasted(environments.interpreter(cell.environment))
    listed = rf"add \1 to the requirements of [environments.{cell.environment.name}] in the plan"
    if cell.environment.requirements:
        fix = re.sub(r"`(?:python -m )?pip install ([^`]+)`", lambda found: found.expand(listed), fix)
    fix = re.sub(r"`(?:python -m )?pip ", lambda _: f"`{python} -m pip ", fix)
    fix = re.sub(r"`onnxsmith ", lambda _: f"`{python} -m onnxsmith ", fix)
    return re.sub(r"`python ", lambda _: f"`{python} ", fix)


def _typed(cell: Cell, result: StepResult) -> str:
    """Returns the step as it is typed in the plan's folder, with the Python of its environment."""
    words = cell_report.words(result)
    if cell.environment.name != HERE and words:
        words[:1] = [environments.interpreter(cell.environment), "-m", "onnxsmith"]
    return pasted_words(words)
