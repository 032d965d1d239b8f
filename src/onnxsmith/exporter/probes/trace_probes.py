"""Examines traces and graphs: branches, fixed axes, missing translations, constants, problems of strategies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.parts.capture import Finding, Weight
from onnxsmith.base.seams.torch import operators
from onnxsmith.exporter.causes._message_text import sentence
from onnxsmith.exporter.causes.base import recognise
from onnxsmith.exporter.factory import place
from onnxsmith.exporter.graph import baked_inputs
from onnxsmith.exporter.module import body_trial, operator_calls
from onnxsmith.exporter.probes.base import Case, Probe
from onnxsmith.exporter.tracing import trace_diagnosis
from onnxsmith.exporter.tracing.frozen_axes import fixed_by_the_model
from onnxsmith.exporter.translating import custom_operators, missing_operators
from onnxsmith.runtimes import base as runtimes
from onnxsmith.verification import runtime_choice


class Data(Probe):
    """Reports all branches on the values of tensors that stop a trace, not only the first.

    torch.export stops at the first such line; a draft export continues. Lines that the linter has reported are skipped.
    """

    rank = 40

    def look(self, case: Case) -> Iterator[Finding]:
        if case.built is None or case.traced.error is None:
            return
        reported = {one.problem.where for one in case.found if one.weight is Weight.STOPS}
        said = sentence(str(case.traced.error), 200)
        for problem in case.traced.stops:
            if problem.where in reported or not problem.where:
                continue
            reported.add(problem.where)
            yield Finding(problem, Weight.NOTE if case.good else Weight.STOPS, "recompose", said=said)


class Axes(Probe):
    """Reports axes requested as dynamic that the trace fixed, with the line that torch names for each axis.

    A line that the linter has reported is skipped.
    """

    rank = 50

    def look(self, case: Case) -> Iterator[Finding]:
        if case.built is None or not case.symbols:
            return
        reported = [one for one in case.found if one.first]
        dims = {port.name: port.shape or () for port in case.built.program.signature.inputs}
        for one in case.traced.frozen:
            file, _, number = one.line.rpartition(":")
            if any(f.problem.where.startswith(f"{file}:") and f.first <= int(number or 0) <= f.last for f in reported):
                continue
            name = dims[one.port][one.axis]
            yield Finding(
                fixed_by_the_model(one, case.built.program),
                Weight.NOTE if case.dynamic else Weight.STOPS,
                "recompose",
                said=f"{name} was inferred to be a constant ({one.value})",
            )
        # `Source` has raised the line that fixes such an axis to WRONG: it is reported already
        if any(one.weight is Weight.WRONG for one in reported):
            return
        for port, axes in dims.items():
            for axis, dim in enumerate(axes):
                if dim in case.stuck:
                    yield self._stuck(case, port, axis, str(dim))

    def _stuck(self, case: Case, port: str, axis: int, name: str) -> Finding:
        size = case.example[port].shape[axis]  # type: ignore[attr-defined]
        return Finding(
            Problem(
                "export/frozen-axis",
                f"axis {axis} of input {port!r} ({name}) was tested at size {size} only",
                where=type(case.model.module).__qualname__,
                why="the module rejects every other size that was tried, so the axis could not be verified as dynamic",
                fix=f"look for the number {size} in forward and in the shapes of parameters, or leave {port}:{axis} "
                "out of --dynamic",
            ),
            Weight.NOTE,
            "recompose",
        )


class Translations(Probe):
    """Reports all operators without a translation to ONNX at once, with their lines.

    Looks up the translation of every operator in the program. An operator without a fake implementation stops the
    trace, so it is reported alone.
    """

    rank = 60

    def look(self, case: Case) -> Iterator[Finding]:
        if case.built is None or case.good:
            return
        traced = case.traced
        if traced.exported is not None:
            found = trace_diagnosis.untranslated(traced.exported)
        elif traced.frozen:
            found = trace_diagnosis.untranslated_at_fixed_sizes(case.built.program, case.example)
        else:
            found = missing_operators.shapeless(traced.error, traced.where)
        refused = self._refused(case, [one.target for one in found])
        for one in found:
            file, _ = place(one.where)
            here = [other.target for other in found if place(other.where)[0] == file]
            first, last = missing_operators.end_of(one.where)
            code = missing_operators.registrations(here, file, refused)
            yield Finding(one.problem, Weight.STOPS, "register", said=one.said, code=code, first=first, last=last)

    def _refused(self, case: Case, targets: list[str]) -> dict[str, str]:
        """Says of the operators with a Python function why a trace cannot follow it, on a call of the module."""
        functions = {name: function for name in targets if (function := operators.source(name)) is not None}
        if case.built is None or not functions:
            return {}
        calls = operator_calls.calls(case.built.program, case.example, list(functions))
        tried = {
            name: body_trial.refusal(function, next(iter(calls.get(name, ())), None))
            for name, function in functions.items()
        }
        return {name: why for name, why in tried.items() if why}


_LEAVE = ("forward/numpy", "forward/data-attribute", "forward/copied-tensor", "forward/python-value")
"""Names the problems of lines at which the values of a tensor leave the trace."""


class Constants(Probe):
    """Reports inputs that became constants: the module's results depend on them, the graph's do not.

    Examines the graph that agrees with the module, or the first graph if none agrees.
    """

    rank = 65

    def look(self, case: Case) -> Iterator[Finding]:
        graph = next((way.made.graph for way in sorted(case.ways, key=lambda way: not way.agrees) if way.made), None)
        if case.built is None or graph is None:
            return
        lines = [one.problem.where for one in case.found if one.problem.id in _LEAVE]
        where = lines[0] if lines else type(case.model.module).__qualname__
        for problem in baked_inputs.constant_inputs(case.built, graph.model, where):
            yield Finding(problem, Weight.WRONG, "recompose")


# After another finding that stops an export, the first two groups would only repeat it.
_GENERAL = ("export/capture-failed", "export/translation-failed", "export/fixed-by-the-example", "verify/different")
_MISTAKEN = ("export/object-input", "export/frozen-axis", "verify/nondeterministic")
_VAGUE = ("runtime/failed", "export/capture-failed", "export/translation-failed")
_RUNGS = {"export/opset": "opset", "runtime/no-kernel": "recompose", "export/quantized-module": "edit"}


class Ways(Probe):
    """Reports the problem of the first strategy, or the differences of its graph, unless another probe has reported
    them.

    If a graph agrees, but was verified with another runtime because the usual one cannot run it, notes why.
    """

    rank = 70

    def look(self, case: Case) -> Iterator[Finding]:
        if case.good:
            yield from self._lacking(case)
            return
        stops = [one for one in case.found if one.weight is not Weight.NOTE]
        for way in case.ways[:1]:
            found = [way.error.problem] if way.error else list(way.made.problems()) if way.made else []
            for problem in found:
                reported = any(one.problem.where == problem.where or one.problem.id == problem.id for one in stops)
                if (stops and problem.id in (*_GENERAL, *_MISTAKEN)) or reported:
                    continue
                known = recognise(problem.why) if problem.id in _VAGUE else None
                problem = known or problem
                weight = Weight.WRONG if problem.id.startswith("verify/") else Weight.STOPS
                plain = replace(problem, why=problem.why.partition(" (tried as well")[0])
                yield Finding(plain, weight, _RUNGS.get(problem.id, "recompose"), said=problem.why)

    def _lacking(self, case: Case) -> Iterator[Finding]:
        made = next(way.made for way in case.ways if way.agrees)
        if made is None:
            return
        refusal = runtime_choice.refusal_of(runtimes.default(), [custom_operators.runnable(made.model)])
        if refusal is not None and refusal.id in runtime_choice.LACKS:
            yield Finding(refusal, Weight.NOTE, _RUNGS.get(refusal.id, "recompose"), said=refusal.why)
