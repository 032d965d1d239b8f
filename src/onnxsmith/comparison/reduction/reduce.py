"""`reduce`: finds the smallest model that still fails a check."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import onnx_ir as ir

from onnxsmith.base import rooms
from onnxsmith.base.clock import Clock, stage
from onnxsmith.base.problem import problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.edits import Reduction
from onnxsmith.base.report.parts.written_files import Timing, Written, written
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.result import Result
from onnxsmith.base.words import first_few, several
from onnxsmith.comparison.reduction import folder as folders
from onnxsmith.comparison.reduction.anonymise import anonymised
from onnxsmith.comparison.reduction.case import Case
from onnxsmith.comparison.reduction.checks.base import Attempt, Check, End, Failure, Outcome, failed
from onnxsmith.comparison.reduction.oracle import Oracle
from onnxsmith.comparison.reduction.original_failure import failing, refuse_flaky
from onnxsmith.comparison.reduction.reduction_loop import Process
from onnxsmith.comparison.reduction.runtime_workers import Bench, identity
from onnxsmith.graph.files.load import Source, load
from onnxsmith.graph.files.output_paths import refuse_loss
from onnxsmith.graph.model_identity import identifies
from onnxsmith.graph.structure.dim_ranges import Sizes
from onnxsmith.graph.structure.signature import signature
from onnxsmith.runtimes.base import Feeds
from onnxsmith.verification.inputs import user_inputs as given_inputs

_TRY_LIMIT = 60.0
"""Seconds that one try may take by default. A choice."""


@identifies("source")
def reduce(
    source: Source,
    output: str | Path | None = None,
    *,
    check: str | Check | Function,
    inputs: Mapping[str, Any] | Sequence[str] | None = None,
    sizes: Sizes | None = None,
    status: int | None = None,
    anonymise: bool = False,
    time_limit: float | None = None,
    seed: int = 0,
) -> Result:
    """Finds the smallest model that fails `check` like the given one. `Result.model` is that model.

    `check` is a text (`differs onnxruntime reference`, `crashes onnxruntime`, `refuses onnxruntime`,
    `slow onnxruntime 10`, `command python check.py {model}`), or a function of the model's path and its inputs that
    returns a true value if the model still fails. `inputs` are arrays by name, or texts as on the command line; without
    them, inputs are generated. The folder `output` gets the model, its inputs and a program that shows the failure.
    With `anonymise`, names and weights are replaced. A try that takes longer than `time_limit` seconds is stopped.

    Raises:
        OnnxsmithError: `reduce/does-not-fail`, `reduce/flaky`, `reduce/time-limit`, `reduce/unknown-check`, … or the
            problem of the model, a runtime or the inputs.
    """
    judge = chosen(check, status)
    for name in judge.runtimes():
        identity(name)
    target = None if output is None else folders.checked(output)
    with Clock() as clock, Bench(_limit(time_limit)) as bench:
        with stage("load"):
            model = load(source)
            refuse_loss([target], [source, model, inputs, check])
        oracle = Oracle(judge, bench)
        with stage("find the failure"):
            case, label, notes = failing(model, oracle, _given(inputs, model), given_inputs.sizes(sizes), seed)
        refuse_flaky(case, oracle)
        with stage("reduce"):
            process = Process(case, oracle)
            case = process.run()
            case, kept = anonymised(case, oracle) if anonymise else (case, ())
        notes = [*notes, *_other_numbers(oracle, case)]
        files: list[Path] = []
        if target is not None:
            with stage("write"):
                files = folders.write(target, case, oracle)
    part = _part(process, label, files, check=text_of(check), anonymised=anonymise, kept=kept)
    shown = written(files) if files else Written({}, why_not="no folder was named")
    headline = f"{process.steps[0].nodes:,} → {several(case.nodes, 'node')}, failing as before"
    parts = (part, shown, Timing(clock.passed()))
    report = Report("reduce", Verdict.DONE, parts, notes=tuple(notes), headline=headline)
    return Result(report, model=case.model, path=target, outputs={})


_SHOWN = 6
"""Limits the numbers of a message that a note lists. A choice."""
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])")
"""Matches a number in a message that is no part of a name."""


def _other_numbers(oracle: Oracle, case: Case) -> list[str]:
    """Notes that the reduced model's message has other numbers than that of the original. With smaller sizes it has in
    most cases; but a size may also have become too small for an index, which is another fault of the same kind."""
    now = oracle.judge(case).failure
    if oracle.first is None or now is None:
        return []
    before, after = _NUMBER.findall(oracle.first.what), _NUMBER.findall(now.what)
    if before == after:
        return []
    moved = f"{first_few(before, _SHOWN)} → {first_few(after, _SHOWN)}" if before and after else now.what
    return [f"the error message now has other numbers, so the fault may be another one of the same kind: {moved}"]


def _part(process: Process, inputs: str, files: list[Path], **known: Any) -> Reduction:
    oracle = process.oracle
    return Reduction(
        failure=oracle.first.what if oracle.first is not None else "",
        inputs=inputs,
        steps=tuple(process.steps),
        tries=dict(oracle.tries),
        remembered=oracle.remembered,
        confirmed="the written files fail in the same way, in a new process" if files else "",
        **known,
    )


def _limit(given: float | None) -> float:
    if given is None:
        return _TRY_LIMIT
    if not given > 0:
        raise problem("reduce/time-limit", f"a time limit of {given:g} s leaves no time", fix="give more than 0")
    return given


def _given(inputs: Mapping[str, Any] | Sequence[str] | None, model: ir.Model) -> Mapping[str, Any] | None:
    if inputs is None or (not isinstance(inputs, Mapping) and not inputs):
        return None
    if isinstance(inputs, Mapping):
        return dict(inputs)
    return given_inputs.values([inputs] if isinstance(inputs, str) else list(inputs), signature(model))


# Finds the check that a caller names: by text, as a function, or as a check itself.


def chosen(given: str | Check | Function, status: int | None) -> Check:
    """Returns the check. `status` is the exit status that means failure, if the check is a command.

    Raises:
        OnnxsmithError: `reduce/unknown-check`, with the possible checks; `runtime/…` for a runtime that cannot be used.
    """
    if isinstance(given, Check):
        return given
    if not isinstance(given, str):
        if callable(given):
            return FunctionCheck(given)
        raise problem(
            "reduce/unknown-check", f"{type(given).__name__} is not a check", fix="give a text, or a function to call"
        )
    made = _parsed(given)
    if status is None:
        return made
    if not hasattr(made, "status"):
        raise problem(
            "reduce/unknown-check", "only a command has an exit status", where=given, fix="leave out --status"
        )
    return type(made)(**{**vars(made), "status": status})


def _parsed(given: str) -> Check:
    known = rooms.classes("onnxsmith.comparison.reduction.checks", Check)
    usages = ", ".join(f"{name} {kind.usage}" for name, kind in known.items())
    try:
        words = shlex.split(given)
        if not words or words[0] not in known:
            raise ValueError(f"there is no check {words[0]!r}" if words else "it is empty")
        return known[words[0]].parse(words[1:])
    except ValueError as error:
        raise problem(
            "reduce/unknown-check", "the text of the check cannot be read", where=given, why=str(error), fix=usages
        ) from error


def text_of(check: str | Check | Function) -> str:
    """Returns the check in the form that a report shows."""
    if isinstance(check, str):
        return check
    return str(check) if isinstance(check, Check) else getattr(check, "__name__", type(check).__name__)


Function = Callable[[Path, Feeds], object]
"""The caller's function. It gets the model's file and its inputs by name, and returns a true value if the model
fails."""


@dataclass(frozen=True)
class FunctionCheck(Check):
    """Calls a function in this process. Its crash ends the reduction, and its hang blocks it; a command is safer."""

    usage = ""

    function: Function

    @classmethod
    def parse(cls, words: Sequence[str]) -> Self:
        raise ValueError("a function can be given only in Python")

    def judge(self, attempt: Attempt, bench: Bench) -> Outcome:
        try:
            fails = self.function(attempt.path, attempt.feeds)
        except Exception as error:  # noqa: BLE001 — the caller's code may raise anything on a cut model
            return Outcome(End.REFUSED, why=f"the check raised {type(error).__name__}: {error}")
        if not fails:
            return Outcome(End.PASSED, why="the check reports that the model does not fail")
        return failed(Failure("the check reports that the model fails", frozenset({"true"})))

    def script(self, failure: Failure) -> tuple[str, ...]:
        return (
            "import numpy as np",
            "import onnx",
            "",
            'model, feeds = onnx.load("model.onnx"), dict(np.load("inputs.npz"))',
            "print(onnx.printer.to_text(model.graph))",
            "print({name: value.shape for name, value in feeds.items()})",
        )

    def shows(self, failure: Failure, status: int, said: str) -> bool:
        return status == 0  # the program only prints the case: the check itself stays with the caller
