"""Finds the code that fixed a dynamic axis, and the code to write instead, for both `export` and `diagnose`.

New code is offered only after a trial: with it, the module gives the same results on the example, also with other
signs. In an export, the module must also run with it at other sizes, and a trace must no longer fix an axis at that
line. If the trace then stops at another line that has new code, both are offered together.
"""

from __future__ import annotations

import ast
import linecache
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.parts.capture import Finding
from onnxsmith.base.words import first_few
from onnxsmith.exporter.causes._message_text import sentence
from onnxsmith.exporter.causes.base import recognise
from onnxsmith.exporter.factory import TorchModel, place
from onnxsmith.exporter.inputs.module_program import Built
from onnxsmith.exporter.module import source_linting
from onnxsmith.exporter.module.run_observation import Seen, observe
from onnxsmith.exporter.module.source_linting import Suspicion
from onnxsmith.exporter.tracing import trace_diagnosis
from onnxsmith.exporter.tracing.code_trials import applied, equal, larger, results
from onnxsmith.exporter.tracing.fixed_literals import needed, without_code
from onnxsmith.exporter.tracing.frozen_axes import Frozen, FrozenAxisError, also_fixed
from onnxsmith.exporter.tracing.unrolled_loops import Lines, unrolled


def suspicions(model: TorchModel, built: Built | None, seen: Seen) -> list[Suspicion]:
    """Returns the linter's findings in the module's source, with the example's sizes of the dynamic axes. Leaves out
    their new code if it computes other results on the example."""
    sizes: dict[str, dict[int, int]] = {}
    for port in built.program.signature.inputs if built is not None else ():
        shape = np.shape(built.example[port.name])  # type: ignore[union-attr]
        sizes[port.name] = {axis: shape[axis] for axis, dim in enumerate(port.shape or ()) if isinstance(dim, str)}
    found = source_linting.read(model.module, seen.calls, sizes)
    if built is None or not any(one.finding.code for one in found):
        return found
    found = needed(found, built)
    inputs = list(_variants(built.example))
    wanted = [results(built.program, one) for one in inputs]
    right = _right(found, lambda group: _keeps(group, built, inputs, wanted))
    return [one if id(one) in right else without_code(one) for one in found]


def _right(found: Sequence[Suspicion], keeps: Callable[[Sequence[Suspicion]], bool]) -> set[int]:
    """Returns the ids of the suspicions whose code stays. The new code for one problem is tried together, because the
    lines that read a numpy array have to change with the line that makes it: first in the whole module, then for each
    function, then line by line."""
    right = {id(one) for one in found if not _can_be_tried(one)}
    for group_of in (_problem_id, _problem_and_function, id):
        groups: dict[Any, list[Suspicion]] = {}
        for one in found:
            if id(one) not in right:
                groups.setdefault(group_of(one), []).append(one)
        right |= {id(one) for group in groups.values() if keeps(group) for one in group}
    return right


def _problem_id(suspicion: Suspicion) -> Any:
    return suspicion.finding.problem.id


def _problem_and_function(suspicion: Suspicion) -> Any:
    return suspicion.finding.problem.id, suspicion.code.function if suspicion.code is not None else None


def located(error: FrozenAxisError, model: TorchModel, built: Built, spent: float = math.inf) -> FrozenAxisError:
    """Adds to the error the linter's finding at the line that fixed the axis, with new code if a trace with it fixes no
    axis there. Prefers a finding about an axis of the error. A finding about another axis counts if a trace with only
    that axis dynamic fixes it too; the error then names both axes. Returns the error itself if the linter finds nothing
    there. `spent` are the seconds of the failed export: after as long, the trial begins no further trace."""
    try:
        found = [one for one in suspicions(model, built, observe(model)) if one.freezes]
    except Exception:  # noqa: BLE001 — reading the source is a help; the error stands without it
        return error
    here = [one for one in found if at_line(one, error.lines)] or [one for one in found if one.anywhere]
    chosen, more = next((one for one in here if _is_about(one, error)), None), []
    if chosen is None:
        tried = ((one, _fixed_too(one, built)) for one in here)
        chosen, more = next(((one, axes) for one, axes in tried if axes), (None, []))
    if chosen is None:
        return _with_turns(error, built)
    first = chosen.finding
    trial = _trial(chosen, found, built, spent)
    fixed = dict.fromkeys((*error.axes, *((one.port, one.axis) for one in more)))
    axes = ", ".join(f"{name}:{axis}" for name, axis in fixed)
    untried = "" if first.code else " (not tried)"
    fix, code = f"{first.problem.fix}{untried}; or leave {axes} out of --dynamic", ""
    if trial is not None:
        fix, code = _pasted(trial, axes)
    said = replace(
        error.problem,
        what=error.problem.what + also_fixed(more, built.program.signature),
        where=first.problem.where,
        why=f"{first.problem.what}: {first.source}; {first.problem.why}{_unexplained(error) if more else ''}",
        fix=fix,
        tried=(code,) if trial is not None and trial.helped else (),
    )
    return FrozenAxisError(said, tuple(fixed), error.lines)


def _is_about(suspicion: Suspicion, error: FrozenAxisError) -> bool:
    """Whether the finding may be about an axis of the error."""
    return not suspicion.axes or any(axis in error.axes for axis in suspicion.axes)


def _fixed_too(suspicion: Suspicion, built: Built) -> list[Frozen]:
    """Returns those axes of the finding that a trace with only these axes dynamic fixes where the finding counts."""
    dims = {port.name: port.shape or () for port in built.program.signature.inputs}
    symbols = frozenset(dim for name, axis in suspicion.axes if isinstance(dim := dims[name][axis], str))
    frozen = trace_diagnosis.trace(built.program, built.example, symbols).frozen
    return [
        one
        for one in frozen
        if (one.port, one.axis) in suspicion.axes and (suspicion.anywhere or at_line(suspicion, [one.line]))
    ]


def _unexplained(error: FrozenAxisError) -> str:
    axes = ", ".join(f"{name}:{axis}" for name, axis in dict.fromkeys(error.axes))
    at = f" at {error.problem.where}" if error.problem.where else ""
    return f"; {axes} is also fixed{at}; onnxsmith did not find the reason"


_MOST_LOOPS = 3
"""Limits the loops that a message names. A choice."""


def of_turns(built: Built) -> Problem | None:
    """Returns the problem of the first loop whose number of turns follows from the sizes of the dynamic axes; None if
    there is no such loop, or if the module runs at no other size."""
    example = Lines.of(partial(results, built.program, built.example))
    tries = (Lines.of(partial(results, built.program, larger(built, twice=twice))) for twice in (True, False))
    longer = next(filter(None, tries), None)
    loops = unrolled(example, longer) if example is not None and longer is not None else []
    if not loops:
        return None
    first = loops[0]
    others = first_few([str(place(loop.where)[1]) for loop in loops[1:]], _MOST_LOOPS)
    return Problem(
        "forward/loop-over-blocks",
        "the number of iterations of a Python loop depends on a size",
        where=first.where,
        why=f"{first.source} has {first.turns[0]} iterations with the example, and {first.turns[1]} with a larger one"
        f"{f'; so do the loops at {others}' if others else ''}; torch unrolls a loop with the example's number of "
        "iterations",
        fix="compute all iterations at once: a reshape or x.unfold(dim, size, step) puts the blocks on an axis",
    )


def _with_turns(error: FrozenAxisError, built: Built) -> FrozenAxisError:
    found = of_turns(built)
    if found is None:
        return error
    axes = ", ".join(f"{name}:{axis}" for name, axis in dict.fromkeys(error.axes))
    fix = f"{found.fix}; or leave {axes} out of --dynamic"
    said = replace(error.problem, where=found.where, why=f"{found.what}: {found.why}", fix=fix)
    return FrozenAxisError(said, error.axes, (*error.lines, found.where))


@dataclass(frozen=True)
class Trial:
    """The new code of `suspicions`, in the order of their lines, and what came of it: `tried: …` or `not tried: …`."""

    suspicions: tuple[Suspicion, ...]
    outcome: str
    helped: bool = True


_MOST_PLACES = 4
"""Limits the statements that are replaced together in a trial. A choice: each costs a trace."""


_LEAST_SECONDS = 10.0
"""Allows a trial these seconds, even if the export took less. A choice: a module that is traced so fast is small."""


def _trial(first: Suspicion, found: Sequence[Suspicion], built: Built, spent: float) -> Trial | None:
    """Tries the new code of `first`: replaces the statement in the running module, runs it at other sizes, and traces
    it by torch.export. If the trace fixes an axis at another line with new code, goes on with both. Returns None if
    there is no new code, or if it does not help."""
    if not first.finding.code:
        return None
    taken, until = [first], time.monotonic() + max(spent, _LEAST_SECONDS)
    while True:
        with applied(taken) as is_applied:
            if not is_applied:
                return Trial((first,), _untried(first), helped=False) if len(taken) == 1 else None
            symbols = frozenset(built.program.signature.symbols())
            traced = trace_diagnosis.trace(built.program, built.example, symbols)
            runs = results(built.program, larger(built)) is not None
        lines = [one.line for one in traced.frozen]
        if any(at_line(one, lines) for one in taken):
            return None
        more = next((one for one in found if at_line(one, lines) and one.finding.code and _beside(one, first)), None)
        if more is not None:
            taken.append(more)
            if len(taken) <= _MOST_PLACES and time.monotonic() < until:
                continue
        ordered = tuple(sorted(taken, key=lambda one: one.finding.first))
        if more is not None:
            return Trial(ordered, "not tried: a trial would take longer than the export", helped=False)
        return Trial(ordered, _outcome(traced)) if runs else None


def _beside(one: Suspicion, other: Suspicion) -> bool:
    """Whether the statements belong to one function, so that they can be pasted as one block."""
    return one.code is not None and other.code is not None and one.code.function is other.code.function


def _untried(suspicion: Suspicion) -> str:
    if any(isinstance(new, ast.arguments) for new in suspicion.swaps.values()):
        return "not tried: the fix changes the arguments of the function"
    return "not tried: the function was changed after Python read its source"


def _outcome(traced: trace_diagnosis.Traced) -> str:
    """Says what torch.export did with the new code."""
    if traced.exported is not None:
        return "tried: torch.export then captures the module"
    if traced.frozen:
        return f"tried: this line then uses the input's size, but {traced.frozen[0].line} still fixes the axis"
    text = str(traced.error)
    known = recognise(text, traced.where)
    said = known.what if known is not None else sentence(text, 200)
    return f"tried: the axis is then dynamic, but torch.export stops at {traced.where or 'another line'}: {said}"


def _pasted(trial: Trial, axes: str) -> tuple[str, str]:
    """Returns the fix, whose lines after the first are the new code, indented as in the file, and the code."""
    found = [one.finding for one in trial.suspicions]
    file, first, last = place(found[0].problem.where)[0], found[0].first, found[-1].last
    lines: list[str] = []
    at = first
    for one in found:  # the lines between two new statements stay as they are
        if one.first < at:  # overlapping statements share their code
            continue
        lines += [linecache.getline(file, number).rstrip("\n") for number in range(at, one.first)]
        lines += one.code.splitlines()
        at = one.last + 1
    code = "\n".join(lines)
    return (
        f"write {_lines(first, last)} of {file} as below ({trial.outcome}), or leave {axes} out of --dynamic:\n{code}",
        code,
    )


def with_code(finding: Finding) -> Finding:
    """Returns the finding with its new code in the fix. A fix that offers an option stays, because code would hide
    it."""
    said = finding.problem
    is_new = not finding.first or finding.first > finding.last
    if not finding.code or is_new or any(one.kind != "words" for one in said.remedies):
        return finding
    file = place(said.where)[0]
    fix = f"write {_lines(finding.first, finding.last)} of {file} as below ({said.fix}):\n{finding.code}"
    return replace(finding, problem=replace(said, fix=fix))


def _lines(first: int, last: int) -> str:
    return f"line {first}" if first == last else f"lines {first} to {last}"


def at_line(suspicion: Suspicion, lines: Sequence[str]) -> bool:
    """Whether one of the lines (`file:line`) is in the statement of the suspicion."""
    first, last = suspicion.span
    file = place(suspicion.finding.problem.where)[0]
    return any(own == file and first <= number <= last for own, number in map(place, lines))


def _variants(example: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the example, then the example with its floats negated and with zeros, which may take other branches."""
    for factor in (1, -1, 0):
        floats = {name: value for name, value in example.items() if np.asarray(value).dtype.kind == "f"}
        yield {**example, **{name: (value * factor).astype(value.dtype) for name, value in floats.items()}}


def _can_be_tried(suspicion: Suspicion) -> bool:
    """Whether the suspicion has new code that should compute the same results."""
    return bool(suspicion.finding.code) and (suspicion.same or suspicion.freezes)


def _keeps(group: Sequence[Suspicion], built: Built, inputs: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Whether the new code gives the same results on all inputs that the old code accepts. Code that does not fit its
    function, such as code that changes forward's arguments, cannot be tried; a single suspicion with such code is
    kept."""
    with applied(group) as is_applied:
        if not is_applied:
            return len(group) == 1
        return all(map(_same, [results(built.program, one) for one in inputs], wanted))


def _same(found: Mapping[str, Any] | None, wanted: Mapping[str, Any] | None) -> bool:
    if wanted is None or found is None:
        return wanted is None
    return found.keys() == wanted.keys() and all(equal(found[name], wanted[name]) for name in wanted)
