"""torch.export, then the current exporter of torch.onnx: with and without translations of this package, and with
TorchDynamo."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch.export import ExportedProgram

from onnxsmith.base.problem import Problem, problem
from onnxsmith.base.words import several
from onnxsmith.exporter.strategies.base import Captured, Example, Strategy
from onnxsmith.exporter.tracing.flat_module import own_name, restore_names
from onnxsmith.exporter.tracing.free_signs import free_signs
from onnxsmith.exporter.tracing.size_guards import compared_with
from onnxsmith.exporter.tracing.trace import tracing
from onnxsmith.exporter.translating import written_opset
from onnxsmith.exporter.translating.export_folding import fold
from onnxsmith.exporter.translations.base import asked_for
from onnxsmith.runtimes.torch_eager import TorchProgram

if TYPE_CHECKING:
    from onnxsmith.exporter.tracing.data_branches import Decisions

STOPPED: tuple[str, ...] = ("forward/", "export/frozen-axis", "export/capture-failed")
"""Begins the ids of problems of a trace that stopped at a line."""


class TorchExport(Strategy):
    """`torch.export.export` traces the module into an exported program; `torch.onnx` translates its operators."""

    title = "torch.export + torch.onnx"
    rank = 10
    follows_sizes = True
    own: ClassVar[bool] = True
    """Whether translations of this package take precedence over those of PyTorch."""
    strict: ClassVar[bool] = False
    """Whether TorchDynamo interprets the bytecode. Otherwise Python runs forward on fake tensors."""

    def capture(self, program: TorchProgram, example: Example, opset: int | None) -> Captured:
        return self.traced(program, example, opset)

    def traced(
        self, program: TorchProgram, example: Example, opset: int | None, decisions: Decisions | None = None
    ) -> Captured:
        """Traces the program once, with these answers to its branches on data. The conditions become the graph's last
        outputs."""
        if isinstance(program.module, torch.jit.ScriptModule):
            raise problem(
                "export/capture-failed",
                "torch.export does not trace a scripted module",
                where=type(program.module).__qualname__,
                why="torch.export follows Python source, which a scripted module no longer has",
                fix="pass the module from before torch.jit.script or torch.jit.trace",
            )
        with tracing(program, example, own=self.own, decisions=decisions) as trace:
            try:
                exported = trace.exported(strict=self.strict)
            except Exception as error:
                from onnxsmith.exporter.strategies import _failures

                raise _failures.of_trace(error, program, trace) from error
            numbers = compared_with(exported)
            emitted = written_opset.chosen(exported, opset, own=self.own)
            try:
                with asked_for(opset):
                    translated = _translated(exported, emitted, folds=program.folds)
                    newer = written_opset.for_operators(translated.model)
                    newer = max(newer, written_opset.for_dtypes(translated.model) if opset is None else 0)
                    if newer:
                        emitted = newer
                        translated = _translated(exported, emitted, folds=program.folds)
                trace.uses.attach(translated.model, emitted)
            except Exception as error:
                from onnxsmith.exporter.strategies import _failures

                raise _failures.of_translation(error, exported) from error
        assert translated.exported_program is not None
        bounds = {str(symbol): _bounds(value) for symbol, value in exported.range_constraints.items()}
        how = f"{self.title}, torch {torch.__version__}, {several(len(exported.graph.nodes), 'node')} captured"
        restore_names(translated.model, program)
        notes = (*trace.notes, *trace.uses.composed, *_mutations(translated.exported_program, program))
        branches = tuple(trace.questions.found.values())
        counted = tuple(dict.fromkeys(filter(None, trace.watch.counted)))
        return Captured(translated.model, how, bounds, notes, numbers=numbers, branches=branches, counted=counted,
                        free=free_signs(exported), registered=tuple(trace.uses.applied.values()))  # fmt: skip


class TorchPlain(TorchExport):
    """Captures like `torch-export`, but translates by PyTorch only, in case a translation of this package is wrong."""

    title = "torch.export + torch.onnx, without translations of onnxsmith"
    rank = 20
    own = False

    def is_worth_it(self, before: Sequence[Problem]) -> bool:
        """Whether the module could be traced, because this strategy traces it in the same way."""
        failed = [one.id for one in before if one.id.startswith(("export/", "forward/"))]
        return all(one in _TRACED for one in failed)


_TRACED = ("export/no-translation", "export/translation-failed", "forward/size-compared")
"""Names problems of modules that could be traced."""


class TorchStrict(TorchExport):
    """TorchDynamo interprets the bytecode of forward instead of running it, so that numpy calls on a tensor become
    operators. It supports fewer modules than `torch-export`."""

    title = "torch.export, strict + torch.onnx"
    rank = 40
    tried_after = STOPPED
    strict = True


def _translated(exported: ExportedProgram, emitted: int | None, *, folds: bool) -> torch.onnx.ONNXProgram:
    """Translates the program with constant folding; without folding if the folding itself raises an error."""

    def translated() -> torch.onnx.ONNXProgram:
        found = torch.onnx.export(exported, opset_version=emitted, verbose=False, optimize=False)
        assert found is not None
        return found

    found = translated()
    if folds:
        try:
            fold(found.model)
        except Exception:  # noqa: BLE001 — it evaluates operators of the model, and leaves a graph that is half folded
            found = translated()
    return found


def _bounds(value: Any) -> tuple[int, int | None]:
    lower, upper = (int(limit) if limit.is_Integer else None for limit in (value.lower, value.upper))
    return lower or 0, upper


def _mutations(exported: ExportedProgram, program: TorchProgram) -> Iterator[str]:
    """Yields sentences on tensors that forward writes to and that no output returns; a state that is also returned is
    not lost."""
    signature: Any = exported.graph_signature
    returned = set(signature.user_outputs)
    for output, buffer in signature.buffers_to_mutate.items():
        if output in returned:
            continue
        name = own_name(buffer)
        yield (
            f"forward writes to the buffer {name!r} (now the output {output}), but an ONNX model has no state: the "
            "next run does not see the new value"
        )
    inputs = dict(zip(signature.user_inputs, (port.name for port in program.signature.inputs), strict=False))
    for output, name in signature.user_inputs_to_mutate.items():
        if output in returned:
            continue
        own = inputs.get(name, name)
        yield (
            f"forward writes to its input {own!r} (now the output {output}), but an ONNX model cannot write to an input"
        )
