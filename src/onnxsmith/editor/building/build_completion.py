"""Ends a build: checks the model, runs it, writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith.base import folders
from onnxsmith.base.clock import Clock, stage
from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.report.base import Part, Report
from onnxsmith.base.report.parts.verification import Outputs
from onnxsmith.base.report.parts.written_files import Timing, written
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.result import Result
from onnxsmith.base.settings import Save
from onnxsmith.base.words import first_few, several
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.save import staged
from onnxsmith.graph.files.specification_check import check
from onnxsmith.graph.model_identity import identifies
from onnxsmith.graph.operators.operator_methods import LINE
from onnxsmith.graph.shapes import dims, facts
from onnxsmith.graph.structure import versions, walk
from onnxsmith.graph.structure.signature import Signature, signature
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Options, Session, Value
from onnxsmith.verification import runtime_choice
from onnxsmith.verification.input_search import Plan
from onnxsmith.verification.output_declarations import Declarations
from onnxsmith.verification.run import accepted, planned, summary

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
                raise _invalid(doubts[0].what, doubts[0].why, where, is_doubt=True)
        if verify:
            with stage("run"):
                part, more = run_once(opened.path, model, where)
            parts.append(part)
            # The run has compared the outputs with their declarations, so onnx's inference may be the one that errs.
            told += [
                *more,
                *(f"the model runs, but onnx's shape inference reports an error: {one.why}" for one in doubts),
            ]
        if output is not None:
            files = opened.commit()
            parts.append(written(files))
    counted = several(walk.count_nodes(model), "node")
    ran = f"runs on {part.runtime}" if verify else "not run"
    headline = f"{output}: {counted}, {ran}" if output is not None else f"{counted}, {ran}"
    report = Report("build", Verdict.DONE, (*parts, Timing(clock.passed())), notes=tuple(told), headline=headline)
    return Result(report, model, files[0] if files else None)


def _unnamed(stack: ExitStack) -> Path:
    """Returns a temporary path, for the check of a model that is not written."""
    return stack.enter_context(folders.temporary()) / "model.onnx"


def _checked(path: Path, where: str) -> tuple[Problem, ...]:
    """Runs the structure check, the checker and strict shape inference on the written file. Returns the problems of
    shape inference. The structure check and the checker raise."""
    try:
        return check(load(path), where=str(path), file=path)
    except OnnxsmithError as error:
        raise _invalid(error.problem.what, error.problem.why, where) from error


def _invalid(what: str, why: str, where: str, *, is_doubt: bool = False) -> OnnxsmithError:
    """Makes the problem for a model that the checker refuses. With `is_doubt`, a run would decide."""
    run = (
        "; or leave verify=False out: onnxsmith then runs the model to see whether a runtime accepts it"
        if is_doubt
        else ""
    )
    return problem(
        "build/invalid",
        f"the model is not valid: {what}",
        where=where,
        why=why,
        fix=f"correct the node that the checker names; its operands do not fit together{run}",
    )


def _unread(model: ir.Model) -> list[str]:
    """Returns notes on inputs that nothing reads, and on nodes that no output needs."""
    outputs = set(model.graph.outputs)
    notes = []
    idle = [value.name or "" for value in model.graph.inputs if not value.uses() and value not in outputs]
    if idle:
        notes.append(f"{several(len(idle), 'input')} that no node reads: {first_few(idle, _MOST_NAMED)}")
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


def run_once(path: Path, model: ir.Model, where: str) -> tuple[Outputs, list[str]]:
    """Runs the file on the first runtime that can run it. Returns a summary of its outputs, and notes.

    A model with symbolic dimensions is run a second time, with a different size for each, because size 1 hides errors
    of broadcasting. If the second run fails, this is only a note, because the sizes may be impossible.

    Raises:
        OnnxsmithError: `build/refused` if no runtime runs the model, `build/declared` if an output's shape contradicts
            its declaration.
    """
    interface = signature(model)
    plan = planned(model, interface, {}, 0)
    symbols = dims.symbols(plan.generator.signature)
    distinct = {name: index + 2 for index, name in enumerate(symbols)}

    def on(name: str) -> tuple[Outputs, list[str]]:
        with runtimes.get(name).prepare(path, runtimes.patient(Options())) as session:
            given = plan.generator.feed(dict(plan.start or {}), seed=plan.seed).values
            values, outputs, said = accepted(session, plan, given)
            notes = list(said)
            _compare(interface, values, outputs, where)
            part = summary(str(path.name), name, session, values, outputs)
            if distinct:
                notes += _second(session, planned(model, interface, distinct, 1), interface, where)
        return part, notes

    try:
        (part, notes), choice = runtime_choice.judged(None, [path], on)
    except OnnxsmithError as error:
        if error.problem.id.startswith("build/"):
            raise
        raise _refused(error.problem, model, where) from error
    return part, [*notes, *([choice.clause] if choice.clause else [])]


def _second(session: Session, plan: Plan, interface: Signature, where: str) -> list[str]:
    sizes = ", ".join(f"{name}={size}" for name, size in (plan.start or {}).items())
    values = plan.generator.feed(dict(plan.start or {}), seed=1).values
    try:
        outputs = session.run(values)
    except OnnxsmithError as error:
        return [f"refused at {sizes}: {error.problem.why or error.problem.what}"]
    _compare(interface, values, outputs, where)
    return [f"run at {sizes}, too"]


def _compare(interface: Signature, values: Mapping[str, Any], outputs: Mapping[str, Value], where: str) -> None:
    """Raises if an output's shape contradicts its declaration."""
    found = Declarations(interface)
    found.add(values, outputs)
    for one in found.wrong():
        (_, shape), *_ = one.examples
        dtype = next(port.dtype for port in interface.outputs if port.name == one.name)
        raise problem(
            "build/declared",
            f"the output {one.name!r} is declared as {one.declared}, but its computed shape is {list(shape)}",
            where=where,
            why="operators do not check a declared shape",
            fix=f'declare the computed shape: .declare("{dtype}", {list(shape)}), or None for sizes that change',
        )


def _refused(found: Problem, model: ir.Model, where: str) -> OnnxsmithError:
    text = f"{found.what}: {found.why}" if found.why else found.what
    named = next((node for node in walk.all_nodes(model) if node.name and _names(text, node.name)), None)
    line = named.meta.get(LINE, where) if named is not None else where
    return problem(
        "build/refused",
        f"no runtime runs the model: {found.what}",
        where=line,
        why=found.why,
        fix=f"{found.fix or 'change the node that the message names'}; verify=False writes the model without a run",
    )


def _names(text: str, name: str) -> bool:
    """Whether a message of a runtime names this node."""
    return any(
        f"{a}{name}{b}" in text for a, b in (("'", "'"), ('"', '"'), ("(", ")"), ("Name:", " "), ("Name: ", " "))
    )
