"""The one way in which torch.export traces a module, whoever asks: an export, and a diagnosis of why there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import Dim, ExportedProgram

from onnxsmith.exporter.tracing.flat import Flat
from onnxsmith.exporter.tracing.freezing import Watch, watching
from onnxsmith.exporter.tracing.rewriting import rewriting
from onnxsmith.exporter.tracing.torch_logging import quiet
from onnxsmith.exporter.translating.custom_operators import Uses
from onnxsmith.exporter.translating.exporter_hooks import functions, translating
from onnxsmith.exporter.translating.function_substitution import InPlaceOf
from onnxsmith.memory import no_collection
from onnxsmith.runtimes.torch_eager import Memory, TorchProgram, to_tensor
from onnxsmith.seams.base import alone
from onnxsmith.seams.torch.flags import without_kernels
from onnxsmith.seams.torch.memo import memoised
from onnxsmith.seams.torch.tensors import FakeTensor, known_constants
from onnxsmith.seams.torch.views import cheap_views


@dataclass(frozen=True)
class Tracing:
    """A module that is ready to be traced, for as long as `tracing` holds.

    `watch` sees which axes become constants, `uses` the calls of operators that the user registered; `notes` are of the
    rewrites that the module needed.
    """

    watch: Watch
    uses: Uses
    notes: tuple[str, ...]
    _flat: Flat
    _example: tuple[Any, ...]
    _axes: tuple[Mapping[int, Any], ...]
    _in_place: Mapping[Any, Callable[..., Any]]

    def exported(self, *, strict: bool = False) -> ExportedProgram:
        """The program. Raises what torch.export raises; also where a tensor was lost (by .data), of which a strict
        trace says nothing: the program has a constant without values then, and reading it ends the process.
        """
        found = self._by(torch.export.export, strict=strict)
        if any(isinstance(constant, FakeTensor) for constant in found.constants.values()):
            raise RuntimeError("We found a fake tensor in the exported program constant's list")
        return found

    def drafted(self) -> ExportedProgram:
        """The program that goes on with the example's values where a trace stops; its `_report` says where."""
        return self._by(torch.export.draft_export)

    def _by(self, export: Callable[..., ExportedProgram], **options: Any) -> ExportedProgram:
        tensors = tuple(to_tensor(array) for array in self._example)  # anew: a module may write to them
        with InPlaceOf(self._in_place):
            return export(self._flat, tensors, dynamic_shapes={"tensors": self._axes}, **options)


@contextmanager
def tracing(
    program: TorchProgram,
    example: Mapping[str, Any],
    *,
    own: bool = True,
    rewrites: bool = True,
    open_: Sequence[str] | None = None,
) -> Iterator[Tracing]:
    """Inside, the program can be traced on the example, with the axes of the names in `open_` dynamic (all of them by
    default), and what was traced can be translated: with the translations of this package, unless `own` is False, and
    with the user's. Without `rewrites` the module is traced as it is."""
    ports = program.signature.inputs
    with ExitStack() as stack:
        stack.enter_context(alone())  # one trace at a time: what it replaces, all threads see
        stack.callback(Memory(program.module).restore)
        stack.enter_context(quiet())
        stack.enter_context(no_collection())
        stack.enter_context(memoised())
        stack.enter_context(cheap_views())
        uses = stack.enter_context(translating(own=own))
        notes = stack.enter_context(rewriting(program.module)) if rewrites else ()
        stack.enter_context(torch.no_grad())  # a branch on gradients goes as it does when the module is called
        stack.enter_context(without_kernels())
        stack.enter_context(known_constants(program.module))
        watch = stack.enter_context(watching([port.name for port in ports]))
        yield Tracing(
            watch=watch,
            uses=uses,
            notes=notes,
            _flat=Flat(program),
            _example=tuple(example[port.name] for port in ports),
            _axes=tuple(_dynamic(port.shape or (), open_) for port in ports),
            _in_place=functions() if own else {},
        )


def _dynamic(shape: Sequence[int | str], open_: Sequence[str] | None) -> dict[int, Any]:
    return {
        axis: Dim.DYNAMIC for axis, dim in enumerate(shape) if isinstance(dim, str) and (open_ is None or dim in open_)
    }
