"""Collects the data of the page. Texts are held once, and cells point to them: a table of 8,000 cells stays small."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from onnxsmith.base.report.parts._text import duration
from onnxsmith.base.report.parts.fleet import FleetCell, FleetMatrix
from onnxsmith.base.words import pasted, pasted_words
from onnxsmith.fleet import cell_report
from onnxsmith.fleet.plan import HERE
from onnxsmith.fleet.row import Row, StepResult
from onnxsmith.viewer.problem_pages import problem_titles


@dataclass(frozen=True)
class Origin:
    """Where a run comes from: the plan as it is typed, "" if only its store is known; the folder of the plan; the store
    as it is typed, "" for the plan's own."""

    plan: str = ""
    folder: str = ""
    store: str = ""


class Content:
    """The data of the page while cells are added."""

    def __init__(self, table: FleetMatrix, origin: Origin) -> None:
        self._table, self._origin = table, origin
        self._texts: dict[str, int] = {}
        self._columns = {column: number for number, column in enumerate(table.columns())}
        self._models: dict[str, list[list[Any] | None]] = {}
        self._outcomes = _outcomes(table)
        self._problems: set[str] = set()

    def add(self, cell: FleetCell, row: Row | None, page: str) -> None:
        """Adds a cell with its row. `page` is the name of its report's page without the ending, "" if there is none."""
        cells = self._models.setdefault(cell.model, [None] * len(self._columns))
        self._problems.add(cell.problem)
        # state.js and panel.js name these by their places.
        cells[self._columns[cell.setting, cell.environment]] = [
            self._outcomes.index(cell.outcome),
            self._outcomes.index(cell.before) if cell.before else -1,
            cell.change,
            self._text(cell.headline),
            self._text(cell.problem),
            self._text(page),
            *(self._details(row) if row is not None else [self._text(_computing(cell, self._origin))]),
        ]

    def _details(self, row: Row) -> list[Any]:
        versions = ", ".join(f"{name} {version}" for name, version in row.versions.items())
        return [
            self._text(duration(row.seconds)),
            self._text(row.at),
            self._text(row.machine),
            self._text(versions),
            self._text(_fix(row)),
            [self._step(step) for step in row.steps],
            [self._text(pasted(name)) for name in row.files if name.endswith(".onnx")],
        ]

    def _step(self, step: StepResult) -> list[int]:
        return [self._text(str(step.outcome)), *(self._text(pasted(word)) for word in cell_report.words(step))]

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))

    def data(self, folder: str, left_out: int, every: str) -> dict[str, Any]:
        """Returns all data of the page. `folder` is the address of the folder with the pages of cells, `left_out` the
        number of cells without one, and `every` the command that writes all of them."""
        titles = problem_titles()
        several_environments = len({environment for _, environment in self._columns}) > 1
        return {
            "run": self._table.run,
            "since": self._table.since,
            "plan": self._origin.plan,
            "planFolder": self._origin.folder,
            "folder": folder,
            "leftOut": left_out,
            "every": every,
            "outcomes": self._outcomes,
            "titles": {id_: titles[id_] for id_ in sorted(self._problems) if id_ in titles},
            "columns": [
                [name, setting, environment if several_environments else "", environment != HERE]
                for name, (setting, environment) in zip(self._table.column_names(), self._columns, strict=True)
            ],
            "models": list(self._models),
            "cells": list(self._models.values()),
            "texts": list(self._texts),
        }


def _outcomes(table: FleetMatrix) -> list[str]:
    """Returns the outcomes that the table names, from good to bad."""
    harm = {cell.outcome: cell.harm for cell in table.cells}
    harm |= {cell.before: replace(cell, outcome=cell.before).harm for cell in table.cells if cell.before}
    return sorted(harm, key=lambda name: (-harm[name], name))


def seeing(cell: FleetCell, origin: Origin) -> str:
    """Returns the command that runs a cell again in its environment, and shows the command of each step."""
    words = ["onnxsmith", "fleet", "why", origin.plan or "PLAN", cell.model]
    return pasted_words([*words, "--setting", cell.setting, "--environment", cell.environment])


def _computing(cell: FleetCell, origin: Origin) -> str:
    """Returns the command that computes a cell without a row."""
    store = ["--store", origin.store] if origin.store else []
    return pasted_words(["onnxsmith", "fleet", "cell", origin.plan or "PLAN", cell.key, *store])


def _fix(row: Row) -> str:
    """Returns the fix of the row's problem, as its step reported it."""
    for step in row.steps:
        problems = step.report.get("problems") if step.report is not None else None
        for found in problems if isinstance(problems, list) else ():
            if isinstance(found, dict) and found.get("id") == row.problem and isinstance(found.get("fix"), str):
                return str(found["fix"])
    return ""
