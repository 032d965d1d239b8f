"""Rows that no model was run for, and stores of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.written_files import Timing, Written
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.fleet.row import Outcome, Row, StepResult
from onnxsmith.fleet.run_list import Place, Run
from onnxsmith.fleet.stores.base import closing, opened

FIX = "`onnxsmith compare a.onnx b.onnx --per-layer`"


def report(command: str, outcome: Outcome, problem: str = "") -> dict[str, Any]:
    """The report of a step as plain data."""
    problems = (Problem(problem, "the outputs differ", fix=FIX),) if problem else ()
    verdict = Verdict(outcome) if outcome in list(Verdict) else Verdict.FAILED
    parts = (Written({"out.onnx": 12}), Timing({"load": 1.0}))
    return json.loads(Report(command, verdict, parts, problems, ("a note",), f"{command} ended").to_json())


def row(
    place: Place,
    outcome: Outcome = Outcome.DONE,
    *,
    key: str = "",
    headline: str = "",
    problem: str = "",
    machine: str = "runner",
    versions: Mapping[str, str] | None = None,
    files: Iterable[str] = (),
) -> Row:
    """The row of a cell with two steps, of which the second has the outcome."""
    model, setting, environment = place
    reported = report("compare", outcome, problem) if outcome in list(Verdict) else None
    said = "" if reported is not None else "Fatal Python error: Segmentation fault"
    written = "TEMPORARY/1-simplify.onnx"
    first = ("onnxsmith", "simplify", model, "-o", written)
    second = ("onnxsmith", "compare", model, written)
    steps = (
        StepResult("simplify", first, Outcome.DONE, "9 nodes", 1.5, "", report("simplify", Outcome.DONE)),
        StepResult("compare", second, outcome, headline, 2.0, problem, reported, said),
    )
    return Row(
        key=key or key_of(place),
        model=model,
        setting=setting,
        environment=environment,
        outcome=outcome,
        headline=headline or f"{model} is {outcome}",
        problem=problem,
        seconds=3.5,
        at="2026-11-30T04:00:00+00:00",
        machine=machine,
        versions=dict(versions or {"onnx": "1.20.0"}),
        files=dict.fromkeys(files, "ab"),
        steps=steps,
    )


def key_of(place: Place) -> str:
    return hashlib.sha256(json.dumps(place).encode()).hexdigest()[:32]


def store(path: Path, runs: Mapping[str, Mapping[Place, Row | None]]) -> str:
    """Writes a store with these runs, the latest last. None is a cell without a row."""
    with closing():
        rows = opened(str(path))
        for number, (name, cells) in enumerate(runs.items()):
            for one in cells.values():
                if one is not None:
                    rows.put(one)
            keys = {place: one.key if one is not None else key_of(place) for place, one in cells.items()}
            rows.put_run(Run(name, "plan", "", f"2026-11-30T00:00:{number:02d}+00:00", keys))
    return str(path)
