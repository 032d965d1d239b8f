"""Examines the module: its source, its example inputs, its arguments, random draws and state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.parts.capture import Finding, Weight
from onnxsmith.base.words import pasted_words
from onnxsmith.exporter.causes.base import recognise
from onnxsmith.exporter.factory import is_target
from onnxsmith.exporter.graph import baked_inputs
from onnxsmith.exporter.inputs.forward_parameters import signature
from onnxsmith.exporter.lint.random_call import HELD
from onnxsmith.exporter.module.source_linting import Suspicion
from onnxsmith.exporter.probes.base import Case, Probe
from onnxsmith.exporter.tracing.frozen_code import at_line, with_code


class Source(Probe):
    """Reports the linter's findings that a run or a trace confirms.

    A suspected fixed axis counts if the trace fixed an axis at that line, or if the module accepts no other size. A
    finding that would stop a trace is only a note if the module can be exported anyway.
    """

    rank = 10

    def look(self, case: Case) -> Iterator[Finding]:
        for suspicion in case.suspicions:
            finding = suspicion.finding
            if suspicion.freezes and not self._froze(suspicion, case):
                continue
            # The run shows whether forward wrote to an input, drew numbers or changed state. After an error it shows
            # too little.
            if finding.problem.id == "forward/input-written" and case.seen.error is None and not case.seen.written:
                continue
            if finding.problem.id == "forward/random" and case.seen.error is None and not case.seen.drawn:
                continue
            if finding.problem.id == "forward/state" and case.seen.error is None:
                own = {name.rpartition(".")[2] for name in case.seen.state}
                if not any(f"self.{name}," in finding.problem.what for name in own):
                    continue
            if finding.problem.id == "forward/state":
                said = replace(finding.problem, fix=f"{_handed_over(case)}; or {finding.problem.fix}")
                finding = replace(finding, problem=said)
            if finding.weight is Weight.STOPS and (case.dynamic if suspicion.freezes else case.good):
                finding = replace(finding, weight=Weight.NOTE)
            elif finding.weight is Weight.STOPS and suspicion.freezes and case.stuck:
                finding = replace(finding, weight=Weight.WRONG)
            yield with_code(finding)

    def _froze(self, suspicion: Suspicion, case: Case) -> bool:
        if case.built is None or not case.symbols:
            return False
        frozen = case.traced.suspected
        if suspicion.anywhere:
            return bool(frozen or case.stuck)
        return at_line(suspicion, [one.line for one in frozen])


class Example(Probe):
    """Reports the error of a module that does not run on its example inputs, unless the linter has reported the
    line."""

    rank = 20

    def look(self, case: Case) -> Iterator[Finding]:
        problem = case.refused
        if problem is None or any(one.problem.where == problem.where for one in case.found if problem.where):
            return
        known = recognise(problem.why, problem.where) if problem.id == "export/forward-failed" else None
        found = known or problem
        yield Finding(replace(found, where=found.where or problem.where), Weight.STOPS, "recompose", said=problem.why)


class Objects(Probe):
    """Reports arguments of forward that are objects with tensors inside and cannot be unpacked.

    Objects that are registered with torch, or are plain, can be unpacked (`exporter/inputs/object_flattening.py`).
    """

    rank = 30

    def look(self, case: Case) -> Iterator[Finding]:
        if case.built is None:
            return
        for leaf, held in baked_inputs.closed_objects(case.built.program):
            yield self._finding(leaf, held, case)

    def _finding(self, leaf: Any, held: list[str], case: Case) -> Finding:
        kind = type(leaf).__name__
        parameters = list(signature(case.model.module.forward).parameters)
        given = {**dict(zip(parameters, case.model.args, strict=False)), **case.model.kwargs}
        named = next((name for name, value in given.items() if value is leaf), "")
        others = [name for name in given if name != named]
        made = "\n".join(f"        held.{name} = {name}" for name in held)
        passed = ", ".join("held" if name == named else name for name in given)
        code = (
            f"class Flat(torch.nn.Module):\n"
            f"    def __init__(self, net):\n"
            f"        super().__init__()\n"
            f"        self.net = net\n\n"
            f"    def forward(self, {', '.join([*others, *held])}):\n"
            f"        held = {kind}.__new__({kind})\n"
            f"{made}\n"
            f"        return self.net({passed})"
        )
        return Finding(
            Problem(
                "export/object-input",
                f"{named or 'an argument'} of forward is a {kind}, an object that cannot be unpacked",
                where=type(case.model.module).__qualname__,
                why=f"the object's tensors ({', '.join(held)}) become constants of the graph, which torch calls "
                "lifted_tensor_…",
                fix="wrap the module: pass the tensors to forward as separate arguments, and build the object inside",
            ),
            Weight.WRONG,
            "recompose",
            code=code if named else "",
        )


class Randomness(Probe):
    """Reports operators that drew random numbers while the module ran, if the linter did not find the call.

    The linter misses calls in a package, or behind a call that it cannot follow.
    """

    rank = 80

    def look(self, case: Case) -> Iterator[Finding]:
        reported = {one.problem.where for one in case.found if one.problem.id == "forward/random"}
        for operator, where in dict.fromkeys(case.seen.drawn):
            if where not in reported:
                reported.add(where)
                yield Finding(
                    Problem(
                        "forward/random",
                        f"forward draws random numbers: {operator}",
                        where=where,
                        why=HELD,
                        fix="if the graph has to use the same numbers as PyTorch, pass them as an argument of forward",
                    ),
                    Weight.NOTE,
                    "recompose",
                )


def _handed_over(case: Case) -> str:
    """Advises to export with the state as inputs and outputs."""
    target, dynamic = case.job.target, case.job.settings.dynamic
    call = "onnxsmith.export(module, args, state='auto')"
    if is_target(target):
        options = ["--dynamic", dynamic] if isinstance(dynamic, str) and dynamic else []
        call = f"`{pasted_words(['onnxsmith', 'export', target, '-o', 'model.onnx', *options, '--state', 'auto'])}`"
    return f"export this state as an input and an output of the graph: {call}"


class State(Probe):
    """Reports buffers and attributes that one run changed, if the linter did not find the change.

    It is a note, because it is unknown whether a later call reads them.
    """

    rank = 90

    def look(self, case: Case) -> Iterator[Finding]:
        reported = " ".join(one.problem.what for one in case.found if one.problem.id == "forward/state")
        silent = [name for name in case.seen.state if f"self.{name.rpartition('.')[2]}" not in reported]
        if silent:
            yield Finding(
                Problem(
                    "forward/state",
                    f"forward changes {', '.join(silent)} of the module",
                    where=type(case.model.module).__qualname__,
                    why="a graph has no state between calls",
                    fix=f"if the next call reads the changed values, {_handed_over(case)}",
                ),
                Weight.NOTE,
                "recompose",
            )
