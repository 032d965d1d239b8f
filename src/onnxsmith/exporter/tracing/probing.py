"""What torch has to say of a module when it traces it: the program, or everything that stands in its way."""

from __future__ import annotations

import io
import linecache
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch.export import ExportedProgram

from onnxsmith.causes.base import recognise
from onnxsmith.exporter.tracing.freezing import Frozen, Watch
from onnxsmith.exporter.tracing.torch_logging import quiet
from onnxsmith.exporter.tracing.trace import Tracing, tracing
from onnxsmith.exporter.translating import missing_operators
from onnxsmith.exporter.translating.exporter_hooks import translating
from onnxsmith.exporter.translating.missing_operators import Missing
from onnxsmith.problem import Problem
from onnxsmith.runtimes.torch_eager import TorchProgram
from onnxsmith.seams.base import replaced
from onnxsmith.seams.torch.drafting import closed_logs, stops
from onnxsmith.seams.torch.memo import memoised
from onnxsmith.seams.torch.tensors import FakeTensor
from onnxsmith.sources.factory import is_installed, place, user_line


@dataclass
class Traced:
    """`exported` is the program, None when there is none. `frozen` are the axes that became constants, by the names of
    the user; `suspected` those and what a draft, which goes on with the example's values, fixes. `error` is what
    stopped the trace, `where` the user's line of it; `stops` everything on data that would have stopped it."""

    exported: ExportedProgram | None = None
    frozen: tuple[Frozen, ...] = ()
    suspected: tuple[Frozen, ...] = ()
    error: Exception | None = None
    where: str = ""
    stops: list[Problem] = field(default_factory=list)


def trace(program: TorchProgram, example: Mapping[str, Any], open_: frozenset[str]) -> Traced:
    """torch.export with the axes of these names dynamic; where values of tensors stop it, what else would."""
    found = Traced()
    with _silent(), tracing(program, example, open_=tuple(open_)) as trace:
        try:
            found.exported = trace.exported()
        except Exception as error:  # noqa: BLE001 — whatever it raises is the answer
            found.error, found.where = error, user_line(error)
        found.frozen = tuple(_named(trace.watch, program, open_))
        if found.error is not None and "data-dependent" in str(found.error):
            _go_on(found, trace)
        found.suspected = tuple(_named(trace.watch, program, open_))
    return found


@contextmanager
def _silent() -> Iterator[None]:
    """torch prints the program so far beside an error that it raises."""
    with io.StringIO() as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        yield


def _go_on(found: Traced, trace: Tracing) -> None:
    """torch.export.draft_export goes on with the example's values where a trace stops."""
    with (
        tempfile.TemporaryDirectory(prefix="onnxsmith-") as folder,
        replaced(tempfile, "tempdir", folder),
        closed_logs(),
    ):
        try:
            drafted = trace.drafted()
        except Exception as error:  # noqa: BLE001 — the trace's own error is told
            found.error = found.error or error
            return
    if not any(isinstance(constant, FakeTensor) for constant in drafted.constants.values()):
        found.exported = drafted  # else a draft that has lost a tensor: what reads it ends the process
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


def _named(watch: Watch, program: TorchProgram, open_: frozenset[str]) -> Iterator[Frozen]:
    """The user's names for inputs; an axis that was fixed twice is told once."""
    seen: set[tuple[str, int]] = set()
    shapes = {port.name: port.shape or () for port in program.signature.inputs}
    for one in watch.frozen:
        if (one.port, one.axis) in seen or shapes[one.port][one.axis] not in open_:
            continue
        seen.add((one.port, one.axis))
        yield one


def untranslated(exported: ExportedProgram) -> list[Missing]:
    """What of the program has no ONNX form."""
    with quiet(), memoised(), translating():
        return missing_operators.untranslated(exported)
