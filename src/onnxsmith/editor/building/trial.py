"""Runs a new model once on generated inputs, and compares its outputs with the declared dtypes and shapes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.report.parts.verification import Outputs
from onnxsmith.graph.operators.operator_methods import LINE
from onnxsmith.graph.shapes import dims
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.signature import Signature, signature
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Options, Session, Value
from onnxsmith.verification import runtime_choice
from onnxsmith.verification.input_search import Plan
from onnxsmith.verification.output_declarations import Declarations
from onnxsmith.verification.run import accepted, planned, summary


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
            f"the output {one.name!r} is declared as {one.declared}, and has the shape {list(shape)}",
            where=where,
            why="a declared shape is not checked by the operator",
            fix=f'declare what it is: .declare("{dtype}", {list(shape)}), or None for sizes that change',
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
