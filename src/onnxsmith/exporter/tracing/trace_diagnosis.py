"""Traces a module for a diagnosis: gives the program, or everything that prevents one."""

from __future__ import annotations

import io
import linecache
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch.export import ExportedProgram

from onnxsmith.base import folders
from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.seams.base import alone
from onnxsmith.base.seams.torch.drafting import logging_to, stops
from onnxsmith.base.seams.torch.memo import memoised
from onnxsmith.base.seams.torch.tensors import FakeTensor
from onnxsmith.exporter.causes.base import recognise
from onnxsmith.exporter.factory import is_installed, model_line, place
from onnxsmith.exporter.tracing.frozen_axes import Frozen, Watch
from onnxsmith.exporter.tracing.torch_logging import quiet
from onnxsmith.exporter.tracing.trace import Tracing, tracing
from onnxsmith.exporter.translating import missing_operators
from onnxsmith.exporter.translating.exporter_hooks import translating
from onnxsmith.exporter.translating.missing_operators import Missing
from onnxsmith.runtimes.torch_eager import TorchProgram


@dataclass
class Traced:
    """`exported` is the program, or None. `frozen` are the axes that the trace fixed. `suspected` are those and the
    axes that a draft fixed; a draft continues with the example's values. `error` is the error that stopped the trace,
    `where` is the user's line. `stops` are all places at which a branch on data stops a trace."""

    exported: ExportedProgram | None = None
    frozen: tuple[Frozen, ...] = ()
    suspected: tuple[Frozen, ...] = ()
    error: Exception | None = None
    where: str = ""
    stops: list[Problem] = field(default_factory=list)

    @property
    def reached_end(self) -> bool:
        """Whether the trace ran all of forward. torch compares the axes with the request only after that."""
        return self.error is None or str(self.error).startswith("Constraints violated")


def trace(program: TorchProgram, example: Mapping[str, Any], dynamic: frozenset[str]) -> Traced:
    """Traces with the axes named in `dynamic` dynamic. If a branch on data stops the trace, finds the other such
    branches by a draft."""
    found = Traced()
    try:
        with _silent(), tracing(program, example, dynamic=tuple(dynamic)) as trace:
            _trace(found, trace, program, dynamic)
    except OnnxsmithError as error:  # a rewrite refused the module before the trace, for example its packed weights
        found.error, found.where = error, error.problem.where
    return found


def _trace(found: Traced, trace: Tracing, program: TorchProgram, dynamic: frozenset[str]) -> None:
    try:
        found.exported = trace.exported()
    except Exception as error:  # noqa: BLE001 — any error of torch.export is a result of the diagnosis
        found.error, found.where = error, model_line(error)
    found.frozen = tuple(_named(trace.watch, program, dynamic))
    if found.error is not None and "data-dependent" in str(found.error):
        _draft(found, trace)
    found.suspected = tuple(_named(trace.watch, program, dynamic))


@contextmanager
def _silent() -> Iterator[None]:
    """Discards torch's output: it prints the unfinished program with an error. Other threads wait: the streams belong
    to the process, and would not come back if two threads replaced them and ended in another order."""
    with alone(), io.StringIO() as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        yield


def _draft(found: Traced, trace: Tracing) -> None:
    """Traces by torch.export.draft_export, which continues with the example's values where a trace stops."""
    with folders.temporary() as folder, logging_to(folder):
        try:
            drafted = trace.drafted()
        except Exception as error:  # noqa: BLE001 — the trace's own error is reported first
            found.error = found.error or error
            return
    if not any(isinstance(constant, FakeTensor) for constant in drafted.constants.values()):
        found.exported = drafted  # a draft with a fake constant would crash the process when it is read
    for stack, files in stops(drafted):
        where = _line(stack, files)
        if not where:
            continue
        code = linecache.getline(*place(where)).strip()
        shown = f'Could not guard on data-dependent expression\n  File "f", line 1, in forward\n    {code}'
        known = recognise(shown, where)
        if known is not None:
            found.stops.append(known)


def _line(stack: Sequence[Mapping[str, Any]], files: Mapping[int, str]) -> str:
    for frame in reversed(stack):
        file = files.get(frame["filename"], str(frame["filename"]))
        if not is_installed(file) and Path(file).suffix == ".py":
            return f"{file}:{frame['line']}"
    return ""


def _named(watch: Watch, program: TorchProgram, dynamic: frozenset[str]) -> Iterator[Frozen]:
    """Yields the frozen axes among the dynamic ones, each once."""
    seen: set[tuple[str, int]] = set()
    shapes = {port.name: port.shape or () for port in program.signature.inputs}
    for one in watch.frozen:
        if (one.port, one.axis) in seen or shapes[one.port][one.axis] not in dynamic:
            continue
        seen.add((one.port, one.axis))
        yield one


def untranslated_at_fixed_sizes(program: TorchProgram, example: Mapping[str, Any]) -> list[Missing]:
    """Returns the operators without a translation in a trace with all axes fixed; empty if such a trace fails too. It
    answers for a module whose trace with dynamic axes stops before its operators are known."""
    found = trace(program, example, frozenset())
    if found.exported is None:
        return missing_operators.shapeless(found.error, found.where)
    return untranslated(found.exported)


def untranslated(exported: ExportedProgram) -> list[Missing]:
    """Returns the operators of the program that have no translation to ONNX; empty if a translation raises."""
    try:
        with quiet(), memoised(), translating():
            return missing_operators.untranslated(exported)
    except Exception:  # noqa: BLE001 — translations run here; a strategy meets the same error, and reports it
        return []
