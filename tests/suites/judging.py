"""Runs a test case before and after it was simplified, and says what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import walk
from onnxsmith.optimizer.simplify import simplify
from onnxsmith.runtimes.base import Options, get
from onnxsmith.verification.rounding import roundings
from onnxsmith.verification.value_comparison import difference
from tests.suites.agreement import assert_sound, readable
from tests.suites.backend_data import Case, variant, wrong

RUNTIMES = ("onnxruntime", "reference")
Answer = list[Any] | Problem


@dataclass
class Verdict:
    """What came of one variant of a case.

    `judge` is the runtime on which the original gives what is expected, empty where none does; `doubts` says then what
    each does instead. `faults` are what simplifying did wrong.
    """

    name: str
    judge: str = ""
    doubts: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


def judged(case: Case, variant_name: str, folder: Path) -> Verdict | None:
    """The verdict; None where the case has no such variant."""
    made = variant(case, variant_name)
    if made is None:
        return None
    model, feeds = made
    verdict = Verdict(f"{case.name}, {variant_name}")
    answers: dict[str, Answer] = {}
    for runtime in RUNTIMES:
        answer = answers[runtime] = answer_of(model, feeds, runtime, folder)
        doubt = answer.id if isinstance(answer, Problem) else wrong(case, answer)
        if not doubt:
            verdict.judge = runtime
            break
        verdict.doubts[runtime] = doubt
        if isinstance(answer, list):
            break  # this runtime folds, so what is compared is its own opinion
    simple = _simplified(model, verdict)
    if simple is not None:
        verdict.faults += [fault for fault in [_fault(case, answers, simple, feeds, folder)] if fault]
    return verdict


def _simplified(model: onnx.ModelProto, verdict: Verdict) -> onnx.ModelProto | None:
    try:
        result = simplify(model, verify=False).model
    except OnnxsmithError as error:
        verdict.faults.append(f"refused: {error.problem}")
        return None
    assert result is not None
    simple: onnx.ModelProto = ir.to_proto(result)
    try:
        assert_sound(model, simple)
    except (AssertionError, onnx.checker.ValidationError) as error:
        verdict.faults.append(str(error))
    return simple


def _fault(case: Case, answers: dict[str, Answer], simple: onnx.ModelProto, feeds: dict[str, Any], folder: Path) -> str:
    """What the simplified model does wrong on the runtime that answered for the original; the last that was asked."""
    runtime, before = list(answers.items())[-1]
    after = answer_of(simple, feeds, runtime, folder)
    if isinstance(before, Problem):
        if isinstance(after, Problem):
            return "" if after.id == before.id else f"{runtime} refuses it otherwise: {after}"
        reason = wrong(case, after)
        return f"{runtime}, which refused the original, is wrong: {reason}" if reason else ""
    if isinstance(after, Problem):
        return f"{runtime} refuses it: {after}"
    reason = wrong(case, after) and _unlike(case.model, before, after)
    return f"{runtime} is wrong: {reason}" if reason else ""


def _unlike(model: onnx.ModelProto, before: list[Any], after: list[Any]) -> str:
    """How the answers differ by more than rounding explains; those of random operators by their kind alone."""
    if any(node.op_type in walk.RANDOM | {"Dropout"} for node in model.graph.node):
        kinds = [[(array.dtype, array.shape) for array in answer] for answer in (before, after)]
        return "" if kinds[0] == kinds[1] else f"{kinds[0]} became {kinds[1]}"
    shaped, _ = inferred(ir.from_proto(model))
    tolerances = [rounding.tolerance for rounding in roundings(shaped).values()]
    pairs = zip(before, after, tolerances, strict=True)
    return next((reason for old, new, near in pairs if (reason := difference(old, new, near).reason)), "")


def answer_of(model: onnx.ModelProto, feeds: dict[str, Any], runtime: str, folder: Path) -> Answer:
    """What the runtime gives, output by output, or why it gives nothing; without optimisation, as folding runs."""
    path = folder / "m.onnx"
    path.write_bytes(readable(model).SerializeToString())
    try:
        with get(runtime).prepare(path, Options(optimization="disable", threads=1)) as session:
            return list(session.run(feeds).values())
    except OnnxsmithError as error:
        return error.problem
