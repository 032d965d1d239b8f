"""Traces a module by torch.export; exports, diagnoses and comparisons by layer all use this function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.export import Dim, ExportedProgram

from onnxsmith.base.garbage_collection import no_collection
from onnxsmith.base.seams.base import alone
from onnxsmith.base.seams.torch import flex_attention
from onnxsmith.base.seams.torch.flags import exporting_to_onnx, without_contraction_paths, without_kernels
from onnxsmith.base.seams.torch.memo import memoised
from onnxsmith.base.seams.torch.tensors import FakeTensor, forgetting, known_constants
from onnxsmith.base.seams.torch.views import cheap_views
from onnxsmith.exporter.tracing.flat_module import Flat
from onnxsmith.exporter.tracing.frozen_axes import Watch, watching
from onnxsmith.exporter.tracing.rewriting import rewriting
from onnxsmith.exporter.tracing.size_branches import Questions, branches
from onnxsmith.exporter.tracing.torch_logging import quiet
from onnxsmith.exporter.translating.custom_operators import Uses
from onnxsmith.exporter.translating.exporter_hooks import functions, translating
from onnxsmith.exporter.translating.function_substitution import InPlaceOf
from onnxsmith.exporter.translating.quantized_tensors import QuantizedTensors
from onnxsmith.runtimes.torch_eager import Memory, TorchProgram, to_tensor

if TYPE_CHECKING:
    from onnxsmith.exporter.tracing.data_branches import Decisions


@dataclass(frozen=True)
class Tracing:
    """A module that is ready to be traced, inside the block of `tracing`.

    `watch` collects the axes that become constants, `uses` the calls of operators that the user registered. `notes`
    name the rewrites that were applied. `questions` collects the module's branches on sizes.
    """

    watch: Watch
    questions: Questions
    uses: Uses
    notes: tuple[str, ...]
    _flat: Flat
    _example: tuple[Any, ...]
    _axes: tuple[Mapping[int, Any], ...]
    _in_place: Mapping[Any, Callable[..., Any]]

    def exported(self, *, strict: bool = False) -> ExportedProgram:
        """Traces the program. Raises the errors of torch.export.

        Raises RuntimeError if a constant of the program is a fake tensor, which `.data` in forward causes: a strict
        trace reports nothing, and reading such a constant crashes the process.
        """
        found = self._by(torch.export.export, strict=strict)
        if any(isinstance(constant, FakeTensor) for constant in found.constants.values()):
            raise RuntimeError("We found a fake tensor in the exported program constant's list")
        return found

    def drafted(self) -> ExportedProgram:
        """Traces by draft_export, which continues with the example's values where a trace stops. The program's
        `_report` says where."""
        return self._by(torch.export.draft_export)

    def _by(self, export: Callable[..., ExportedProgram], **options: Any) -> ExportedProgram:
        tensors = tuple(to_tensor(array) for array in self._example)  # new tensors: a module may write to its inputs
        with InPlaceOf(self._in_place), QuantizedTensors():
            axes = {"tensors": self._axes} if tensors else None
            return export(self._flat, tensors, dynamic_shapes=axes, **options)


@contextmanager
def tracing(
    program: TorchProgram,
    example: Mapping[str, Any],
    *,
    own: bool = True,
    rewrites: bool = True,
    dynamic: Sequence[str] | None = None,
    decisions: Decisions | None = None,
) -> Iterator[Tracing]:
    """Prepares the program for a trace on the example, and for the translation of the traced program, in the block.

    `dynamic` names the dimensions that are dynamic; default: all symbolic ones. With `own=False` the translations of
    this package are not used, only the user's. With `rewrites=False` the module is traced unchanged. `decisions` answer
    questions about the data; their conditions become outputs after those of the module.
    """
    ports = program.signature.inputs
    with ExitStack() as stack:
        stack.enter_context(alone())  # one trace at a time: all threads see the functions that are replaced below
        stack.callback(Memory(program.module).restore)
        stack.enter_context(quiet())
        stack.enter_context(no_collection())
        stack.enter_context(forgetting())
        stack.enter_context(memoised())
        stack.enter_context(cheap_views())
        uses = stack.enter_context(translating(own=own))
        notes = stack.enter_context(rewriting(program.module)) if rewrites else ()
        stack.enter_context(torch.no_grad())  # branches on gradients go the same way as in a call of the module
        stack.enter_context(without_kernels())
        stack.enter_context(without_contraction_paths())
        stack.enter_context(flex_attention.by_formula())
        stack.enter_context(exporting_to_onnx(True))
        stack.enter_context(known_constants(program.module))
        watch = stack.enter_context(watching([port.name for port in ports]))
        if decisions is not None:
            stack.enter_context(decisions.answering())
        yield Tracing(
            watch=watch,
            questions=stack.enter_context(branches(watch)),
            uses=uses,
            notes=notes,
            _flat=Flat(program, decisions),
            _example=tuple(example[port.name] for port in ports),
            _axes=tuple(_dynamic(port.shape or (), dynamic, program.limits) for port in ports),
            _in_place=functions() if own else {},
        )


def _dynamic(
    shape: Sequence[int | str], dynamic: Sequence[str] | None, limits: Mapping[str, tuple[int, int | None]]
) -> dict[int, Any]:
    return {
        axis: Dim.DYNAMIC(*limits[dim]) if dim in limits else Dim.DYNAMIC
        for axis, dim in enumerate(shape)
        if isinstance(dim, str) and (dynamic is None or dim in dynamic)
    }
