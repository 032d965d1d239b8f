"""Chooses the operations of a torch program for a comparison by layer, so that they match the nodes of a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram

from onnxsmith.base.seams.torch import translator
from onnxsmith.exporter.tracing.recurrent_layers import is_stacked, unstacked
from onnxsmith.exporter.tracing.torch_logging import quiet
from onnxsmith.runtimes.torch_eager import TorchProgram
from onnxsmith.verification.by_layer.side_outline import Outline
from onnxsmith.verification.by_layer.tensor_pairs import is_reshaping


@dataclass(frozen=True)
class Operations:
    """The program that a comparison by layer runs. `renumbered` names the views of a program that is not decomposed:
    decomposing adds views, so `view_3` in the file may be another view than `view_3` here."""

    program: ExportedProgram
    renumbered: frozenset[str] = frozenset()


def traced(program: TorchProgram, example: Mapping[str, Any], other: Outline | None) -> Operations:
    """Traces the program into operations that PyTorch itself computes: without the translations of this package, which
    may hold ONNX operators, and with its rewrites only if the unchanged module cannot be traced. `other` is as for
    `suited`. Raises the errors of torch.export."""
    from onnxsmith.exporter.tracing.trace import tracing

    try:
        with tracing(program, example, own=False, rewrites=False) as trace:
            return suited(trace.exported(), other)
    except Exception:  # noqa: BLE001 — torch.export raises any error; the error of the second trace is reported
        with tracing(program, example, own=False) as trace:
            made = suited(trace.exported(), other)
    foreign = {str(node.target) for node in made.program.graph.nodes if str(node.target).startswith("onnx")}
    if foreign:
        raise RuntimeError(f"the trace contains ONNX operators, which PyTorch cannot compute: {', '.join(foreign)}")
    return made


def suited(exported: ExportedProgram, other: Outline | None) -> Operations:
    """Decomposes the program as torch's exporter does before it translates. `other` is the outline of the other model:
    if it holds every kind of operation in the program, decomposing would change views only and is skipped."""
    kinds = {step.kind for step in other.steps} if other is not None else set()
    calls = [node for node in exported.graph.nodes if node.op == "call_function"]
    if kinds and all(_stays(node, kinds) for node in calls):
        return Operations(exported, frozenset(node.name for node in calls if is_reshaping(str(node.target))))
    return Operations(_decomposed(exported))


def _stays(node: torch.fx.Node, kinds: set[str]) -> bool:
    schema = getattr(node.target, "_schema", None)
    if is_stacked(node):
        return False
    if schema is None:
        return getattr(node.target, "__name__", "") == "getitem"
    return not schema.is_mutable and (str(node.target) in kinds or is_reshaping(str(node.target)))


def _decomposed(exported: ExportedProgram) -> ExportedProgram:
    """Decomposes the program; returns it unchanged if this torch has no such step under the known name."""
    with quiet():
        made = translator.prepared(exported)
    if made is not exported:
        unstacked(made.graph_module)
    return made
