"""`reduce`: the smallest model that still fails a check."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith import rooms
from onnxsmith.clock import Clock, stage
from onnxsmith.feeds import given as given_inputs
from onnxsmith.model.load import Source, load
from onnxsmith.model.signature import signature
from onnxsmith.problem import OnnxsmithError, problem
from onnxsmith.reduction import folder as folders
from onnxsmith.reduction.anonymise import anonymised
from onnxsmith.reduction.bench import Bench
from onnxsmith.reduction.case import Case, fed
from onnxsmith.reduction.checks.base import Check, End, Outcome
from onnxsmith.reduction.function import Function, FunctionCheck
from onnxsmith.reduction.inputs import proposals
from onnxsmith.reduction.named import resolve
from onnxsmith.reduction.oracle import Oracle
from onnxsmith.reduction.process import Process
from onnxsmith.report.base import Report, Verdict
from onnxsmith.report.parts.reduction import Reduction
from onnxsmith.report.parts.timing import Timing
from onnxsmith.report.parts.written import Written, written
from onnxsmith.result import Result

_FIRST_LIMIT = 60.0
"""Seconds that one try may take where nobody said."""


def reduce(
    source: Source,
    output: str | Path | None = None,
    *,
    check: str | Check | Function,
    inputs: Mapping[str, Any] | Sequence[str] | None = None,
    sizes: Mapping[str, int] | None = None,
    status: int | None = None,
    anonymise: bool = False,
    time_limit: float | None = None,
    seed: int = 0,
) -> Result:
    """The smallest model found that fails `check` as the given one does. `Result.model` is that model.

    `check` is a text (`differs onnxruntime reference`, `crashes onnxruntime`, `refuses onnxruntime`,
    `slow onnxruntime 10`, `command python check.py {model}`), or a function of the model's path and its inputs that is
    true where the model still fails. `inputs` are arrays by name, or texts as the command line takes them; generated
    where there are none. Into the folder `output` go the model, its inputs and a program that shows the failure. With
    `anonymise` names and weights are made up. A try that takes longer than `time_limit` seconds is stopped.

    Raises:
        OnnxsmithError: `reduce/does-not-fail`, `reduce/flaky`, `reduce/time-limit`, `reduce/unknown-check`, … or what
            is wrong with the model, a runtime or the inputs.
    """
    judge = _check(check, status)
    for name in judge.runtimes():
        resolve(name)
    target = None if output is None else folders.checked(output)
    limit = _limit(time_limit)
    with Clock() as clock, Bench(limit) as bench:
        with stage("load"):
            model = load(source)
        oracle = Oracle(judge, bench)
        with stage("find the failure"):
            case, label, notes = _failing(model, oracle, _given(inputs, model), sizes or {}, seed)
        _refuse_flaky(case, oracle)
        with stage("reduce"):
            process = Process(case, oracle)
            case = process.run()
            kept: tuple[str, ...] = ()
            if anonymise:
                case, kept = anonymised(case, oracle)
        files: list[Path] = []
        if target is not None:
            with stage("write"):
                files = folders.write(target, case, oracle)
    part = Reduction(
        check=_text(check),
        failure=oracle.first.what if oracle.first is not None else "",
        inputs=label,
        steps=tuple(process.steps),
        tries=dict(oracle.tries),
        remembered=oracle.remembered,
        confirmed="the written files fail the same way, in a process of their own" if files else "",
        anonymised=anonymise,
        kept=kept,
    )
    shown = written(files) if files else Written({}, why_not="no folder was named")
    headline = f"{process.steps[0].nodes} → {case.nodes} nodes, failing as before"
    report = Report(
        "reduce", Verdict.DONE, (part, shown, Timing(dict(clock.seconds))), notes=tuple(notes), headline=headline
    )
    return Result(report, model=case.model, path=target, outputs={})


def _check(given: str | Check | Function, status: int | None) -> Check:
    if isinstance(given, Check):
        return given
    if not isinstance(given, str):
        if callable(given):
            return FunctionCheck(given)
        raise problem(
            "reduce/unknown-check", f"{type(given).__name__} is no check", fix="give a text, or a function to call"
        )
    known = rooms.classes("onnxsmith.reduction.checks", Check)
    usages = ", ".join(f"{name} {kind.usage}" for name, kind in known.items())
    try:
        words = shlex.split(given)
        if not words or words[0] not in known:
            raise ValueError(f"there is no check {words[0]!r}" if words else "it is empty")
        kind = known[words[0]]
        made = kind.parse(words[1:])
    except ValueError as error:
        raise problem(
            "reduce/unknown-check", "the check could not be understood", where=given, why=str(error), fix=usages
        ) from error
    if status is not None:
        if not hasattr(made, "status"):
            raise problem(
                "reduce/unknown-check", "only a command has an exit status", where=given, fix="leave --status out"
            )
        return type(made)(**{**vars(made), "status": status})
    return made


def _text(check: str | Check | Function) -> str:
    if isinstance(check, str):
        return check
    return str(check) if isinstance(check, Check) else getattr(check, "__name__", type(check).__name__)


def _limit(given: float | None) -> float:
    if given is None:
        return _FIRST_LIMIT
    if not given > 0:
        raise problem("reduce/time-limit", f"a time limit of {given:g} s leaves no time", fix="give more than 0")
    return given


def _given(inputs: Mapping[str, Any] | Sequence[str] | None, model: ir.Model) -> Mapping[str, Any] | None:
    if inputs is None or (not isinstance(inputs, Mapping) and not inputs):
        return None
    if isinstance(inputs, Mapping):
        return dict(inputs)
    return given_inputs.values([inputs] if isinstance(inputs, str) else list(inputs), signature(model))


def _failing(
    model: ir.Model, oracle: Oracle, given: Mapping[str, Any] | None, sizes: Mapping[str, int], seed: int
) -> tuple[Case, str, list[str]]:
    """The first inputs on which the model fails. Sets what later tries are held to."""
    ends: list[Outcome] = []
    doubtful: tuple[Case, str, Outcome] | None = None
    for label, values in proposals(model, given, sizes, seed):
        case = fed(model, values)
        outcome = oracle.judge(case)
        ends.append(outcome)
        if outcome.failure is None:
            continue
        if not outcome.failure.doubtful or given is not None:
            oracle.first = outcome.failure
            return case, label, []
        doubtful = doubtful or (case, label, outcome)
    if doubtful is not None and all(outcome.failure is not None for outcome in ends):
        oracle.first = doubtful[2].failure
        return doubtful[0], doubtful[1], ["every generated input is refused: give one that is meant, with --input"]
    raise _does_not_fail(ends, oracle)


def _does_not_fail(ends: list[Outcome], oracle: Oracle) -> OnnxsmithError:
    if all(outcome.end is End.TIMED_OUT for outcome in ends):
        return problem(
            "reduce/time-limit",
            f"the original could not be judged within {oracle.bench.time_limit:g} s",
            why=ends[-1].why,
            fix="give a try more time: --time-limit 300",
        )
    last = next((outcome for outcome in reversed(ends) if outcome.why), ends[-1])
    return problem(
        "reduce/does-not-fail",
        f"the model does not fail this check on any of {len(ends)} inputs",
        why=f"the last one: {last.end.value}: {last.why}"[:600],
        fix="give the inputs on which it fails: --input inputs.npz; or another check",
    )


def _refuse_flaky(case: Case, oracle: Oracle) -> None:
    """Raises unless the failure is there a second time, in new processes."""
    oracle.bench.close()
    again = oracle.judge(case)
    if again.failure is None or oracle.first is None or not again.failure.is_like(oracle.first):
        raise problem(
            "reduce/flaky",
            "the model failed once, and not a second time on the same inputs",
            why=f"first: {oracle.first.what if oracle.first else ''}; then: "
            f"{again.failure.what if again.failure else again.why or again.end.value}"[:600],
            fix="find what makes it vary (random numbers, threads, time) and take it out of the check",
        )
