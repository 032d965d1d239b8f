"""The operations in which a torch program is looked at: those that pair with what an exporter wrote into a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram

from onnxsmith.exporter.tracing.recurrent import is_stacked, unstacked
from onnxsmith.exporter.tracing.torch_logging import quiet
from onnxsmith.layers.outline import Outline
from onnxsmith.layers.reshaping import is_reshaping
from onnxsmith.runtimes.torch_eager import TorchProgram
from onnxsmith.seams.torch import translator


@dataclass(frozen=True)
class Operations:
    """What a tap runs. `renumbered` are views of a program that is not decomposed: what is called `view_3` in the file
    is another one here, because decomposing makes some more."""

    program: ExportedProgram
    renumbered: frozenset[str] = frozenset()


def traced(program: TorchProgram, example: Mapping[str, Any], other: Outline | None) -> Operations:
    """The program in operations that PyTorch itself computes: without the translations of this package, which are ONNX
    already, and with its rewrites only where the module cannot be traced as it is. `other` as for `suited`. Raises what
    torch.export raises."""
    from onnxsmith.exporter.tracing.trace import tracing

    try:
        with tracing(program, example, own=False, rewrites=False) as trace:
            return suited(trace.exported(), other)
    except Exception:  # noqa: BLE001 — torch.export raises whatever it likes; what the second way says counts
        with tracing(program, example, own=False) as trace:
            made = suited(trace.exported(), other)
    foreign = {str(node.target) for node in made.program.graph.nodes if str(node.target).startswith("onnx")}
    if foreign:
        raise RuntimeError(f"the trace holds operators of ONNX, which PyTorch does not compute: {', '.join(foreign)}")
    return made


def suited(exported: ExportedProgram, other: Outline | None) -> Operations:
    """The program as the exporter of torch decomposes it before it translates it. Where `other`, which is held to it,
    comes from operations of every kind that is in the program, that would change nothing but views, and is left out."""
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
    """The program itself where torch no longer has that step under this name."""
    with quiet():
        made = translator.prepared(exported)
    if made is not exported:
        unstacked(made.graph_module)
    return made
