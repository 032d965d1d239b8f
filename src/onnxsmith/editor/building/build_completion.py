"""Ends a build: checks the model, runs it, writes it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import onnx_ir as ir

from onnxsmith.base.clock import Clock, stage
from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.report.base import Part, Report
from onnxsmith.base.report.parts.written_files import Timing, written
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.result import Result
from onnxsmith.base.settings import Save
from onnxsmith.base.words import first_few, several
from onnxsmith.editor.building import trial
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.save import staged
from onnxsmith.graph.files.specification_check import check
from onnxsmith.graph.model_identity import identifies
from onnxsmith.graph.operators.operator_methods import LINE
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure import versions, walk

_MOST_NAMED = 5
"""Limits the names in a note. A choice: enough to find the place."""


@identifies()
def finished(
    model: ir.Model, output: str | Path | None, *, notes: Sequence[str], verify: bool, save: Save, where: str
) -> Result:
    """Checks and runs the model, writes it to `output`, and returns the result.

    Raises:
        OnnxsmithError: `build/no-output`, `build/invalid`, `build/refused` by the runtime, `save/…`. Nothing is
            written then.
    """
    if not model.graph.outputs:
        raise problem(
            "build/no-output",
            "the model has no output",
            where=where,
            why="without an output nothing is computed",
            fix='add g.output("y", y) at the end of the block',
        )
    facts.forget(model)
    model.ir_version = versions.least_ir(model)
    told = [*notes, *_unread(model)]
    parts: list[Part] = []
    files: list[Path] = []
    with Clock() as clock, ExitStack() as stack:
        target = Path(output) if output is not None else _unnamed(stack)
        opened = stack.enter_context(staged(target, durable=output is not None))
        with stage("write"):
            opened.write(model, external_data=save.external_data)
        with stage("check"):
            doubts = _checked(opened.path, where)
            if doubts and not verify:
                raise _invalid(doubts[0].what, doubts[0].why, where)
        if verify:
            with stage("run"):
                part, more = trial.run_once(opened.path, model, where)
            parts.append(part)
            # The run has compared the outputs with their declarations, so onnx's inference may be the one that errs.
            told += [*more, *(f"the model runs, but onnx's shape inference disagrees: {one.why}" for one in doubts)]
        if output is not None:
            files = opened.commit()
            parts.append(written(files))
    counted = several(walk.count_nodes(model), "node")
    ran = f"runs on {part.runtime}" if verify else "not run"
    headline = f"{output}: {counted}, {ran}" if output is not None else f"{counted}, {ran}"
    report = Report("build", Verdict.DONE, (*parts, Timing(dict(clock.seconds))), notes=tuple(told), headline=headline)
    return Result(report, model, files[0] if files else None)


def _unnamed(stack: ExitStack) -> Path:
    """Returns a temporary path, for the check of a model that is not written."""
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="onnxsmith-"))) / "model.onnx"


def _checked(path: Path, where: str) -> tuple[Problem, ...]:
    """Runs the structure check, the checker and strict shape inference on the written file. Returns the problems of
    shape inference. The structure check and the checker raise."""
    try:
        return check(load(path), where=str(path), file=path)
    except OnnxsmithError as error:
        raise _invalid(error.problem.what, error.problem.why, where) from error


def _invalid(what: str, why: str, where: str) -> OnnxsmithError:
    return problem(
        "build/invalid",
        f"the model is not valid: {what}",
        where=where,
        why=why,
        fix="correct the node that the checker names; its operands do not fit together",
    )


def _unread(model: ir.Model) -> list[str]:
    """Returns notes on inputs that nothing reads, and on nodes that no output needs."""
    outputs = set(model.graph.outputs)
    notes = []
    idle = [value.name or "" for value in model.graph.inputs if not value.uses() and value not in outputs]
    if idle:
        notes.append(f"{several(len(idle), 'input')} that nothing reads: {first_few(idle, _MOST_NAMED)}")
    needed: set[ir.Node] = set()
    waiting = [maker for value in outputs if (maker := value.producer()) is not None]
    while waiting:
        node = waiting.pop()
        if node in needed:
            continue
        needed.add(node)
        for inner in (node, *walk.inside(node)):
            waiting += [
                maker for value in inner.inputs if value is not None and (maker := value.producer()) is not None
            ]
    dead = [node for node in model.graph if node not in needed]
    if dead:
        lines = first_few([f"{node.name} ({node.meta.get(LINE, '')})" for node in dead], _MOST_NAMED)
        notes.append(f"{several(len(dead), 'node')} that no output needs: {lines}")
    return notes
