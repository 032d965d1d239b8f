"""Finds the code that fixed a dynamic axis, and the code to write instead: `export` and `diagnose` say the same.

New code is offered only after a trial: the module with it gives the same results on the example, also with other signs.
An export offers it only if the module runs with it at other sizes, and a trace no longer fixes an axis at that line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.seams.base import alone
from onnxsmith.exporter.factory import TorchModel, place
from onnxsmith.exporter.inputs.module_program import Built
from onnxsmith.exporter.module import source_linting
from onnxsmith.exporter.module.run_observation import Seen, observe
from onnxsmith.exporter.module.source_linting import Suspicion
from onnxsmith.exporter.tracing import trace_diagnosis
from onnxsmith.exporter.tracing.frozen_axes import FrozenAxisError
from onnxsmith.exporter.tracing.trace_patches import compiled
from onnxsmith.runtimes.torch_eager import TorchEager, TorchProgram


def suspicions(model: TorchModel, built: Built | None, seen: Seen) -> list[Suspicion]:
    """The linter's findings in the module's source, with the example's sizes of the dynamic axes. Code that does not
    compute the same on the example is left out of them."""
    sizes: dict[str, dict[int, int]] = {}
    for port in built.program.signature.inputs if built is not None else ():
        shape = np.shape(built.example[port.name])  # type: ignore[union-attr]
        sizes[port.name] = {axis: shape[axis] for axis, dim in enumerate(port.shape or ()) if isinstance(dim, str)}
    found = source_linting.read(model.module, seen.calls, sizes)
    if built is None or not any(one.finding.code for one in found):
        return found
    inputs = list(_variants(built.example))
    wanted = [_results(built.program, one) for one in inputs]
    return [one if _keeps(one, built, inputs, wanted) else _without_code(one) for one in found]


def located(error: FrozenAxisError, model: TorchModel, built: Built) -> FrozenAxisError:
    """The error with what the linter says about the line that fixed the axis, and code that was traced without fixing
    it; the error itself if the linter finds nothing there."""
    try:
        found = [one for one in suspicions(model, built, observe(model)) if one.freezes]
    except Exception:  # noqa: BLE001 — reading the source is a help; the error stands without it
        return error
    here = [one for one in found if at_line(one, error.lines)] or [one for one in found if one.anywhere]
    if not here:
        return error
    first = here[0].finding
    fix = first.problem.fix
    if first.code and _frees(here[0], built):
        text = " ⏎ ".join(map(str.strip, first.code.splitlines()))
        lines = f"line {first.first}" if first.first == first.last else f"lines {first.first} to {first.last}"
        fix = f"write {lines} as: {text}"
    axes = ", ".join(f"{name}:{axis}" for name, axis in error.axes)
    said = replace(
        error.problem,
        where=first.problem.where,
        why=f"{first.problem.what}: {first.source}; {first.problem.why}",
        fix=f"{fix}; or leave {axes} out of --dynamic",
    )
    return FrozenAxisError(said, error.axes, error.lines)


def at_line(suspicion: Suspicion, lines: Sequence[str]) -> bool:
    """Whether one of the lines (`file:line`) is in the statement of the suspicion."""
    first, last = suspicion.span
    file = place(suspicion.finding.problem.where)[0]
    return any(own == file and first <= number <= last for own, number in map(place, lines))


def _variants(example: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The example, and the example with its floats negated and zero, which may take other branches."""
    for factor in (1, -1, 0):
        floats = {name: value for name, value in example.items() if np.asarray(value).dtype.kind == "f"}
        yield {**example, **{name: (value * factor).astype(value.dtype) for name, value in floats.items()}}


def _keeps(suspicion: Suspicion, built: Built, inputs: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Whether the new code gives the same results wherever the old code gives any; True if it cannot be tried: code
    that changes forward's arguments, or that is meant to compute something else."""
    if not suspicion.finding.code or not (suspicion.same or suspicion.freezes):
        return True
    with _applied(suspicion) as is_applied:
        found = [_results(built.program, one) for one in inputs] if is_applied else wanted
    return all(map(_same, found, wanted))


def _same(found: Mapping[str, Any] | None, wanted: Mapping[str, Any] | None) -> bool:
    if wanted is None or found is None:
        return wanted is None
    return found.keys() == wanted.keys() and all(_equal(found[name], wanted[name]) for name in wanted)


def _frees(suspicion: Suspicion, built: Built) -> bool:
    """Whether the module with the new code runs with other sizes, and a trace of it fixes no axis at that line."""
    with _applied(suspicion) as is_applied:
        if not is_applied or _results(built.program, _larger(built)) is None:
            return False
        traced = trace_diagnosis.trace(built.program, built.example, frozenset(built.program.signature.symbols()))
    return not at_line(suspicion, [one.line for one in traced.frozen])


@contextmanager
def _applied(suspicion: Suspicion) -> Iterator[bool]:
    """Inside, the function runs the new code. Yields False if the code does not fit the function."""
    code, swaps = suspicion.code, suspicion.swaps
    made = compiled(code, swaps) if code is not None and swaps else None
    if code is None or made is None:
        yield False
        return
    with alone():
        old, code.function.__code__ = code.function.__code__, made
        try:
            yield True
        finally:
            code.function.__code__ = old


def _larger(built: Built) -> dict[str, Any]:
    """The example with one place more along each dynamic axis."""
    found = dict(built.example)
    for port in built.program.signature.inputs:
        for axis, dim in enumerate(port.shape or ()):
            if isinstance(dim, str):
                value = np.asarray(found[port.name])
                found[port.name] = np.concatenate([value, value.take([0], axis)], axis)
    return found


def _results(program: TorchProgram, example: Mapping[str, Any]) -> Mapping[str, Any] | None:
    run: Callable[..., Any] = TorchEager().prepare(program).run
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            found: Mapping[str, Any] = run(example)
            return found
    except OnnxsmithError:
        return None


def _equal(one: Any, other: Any) -> bool:
    if np.shape(one) != np.shape(other):
        return False
    return bool(np.allclose(np.asarray(one), np.asarray(other), rtol=1e-4, atol=1e-5, equal_nan=True))


def _without_code(suspicion: Suspicion) -> Suspicion:
    return replace(suspicion, finding=replace(suspicion.finding, code="", first=0, last=0))
