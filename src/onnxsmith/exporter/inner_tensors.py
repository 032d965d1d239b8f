"""Compares the intermediate tensors of a module with those of its file, if the outputs show too little."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith.base import folders
from onnxsmith.base.clock import stage
from onnxsmith.exporter.taps.eager_values import EagerValues
from onnxsmith.exporter.taps.module_tap import module_tap
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.sharing import share_weights
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.signature import signature
from onnxsmith.runtimes.base import Options, Runtime
from onnxsmith.runtimes.torch_eager import TorchProgram
from onnxsmith.verification.by_layer import alignment
from onnxsmith.verification.by_layer.alignment import with_operands
from onnxsmith.verification.by_layer.chunks import chunks
from onnxsmith.verification.by_layer.onnx_tap import OnnxTap
from onnxsmith.verification.by_layer.part_comparison import Parts, usable
from onnxsmith.verification.by_layer.part_verification import Inside, compared_inside
from onnxsmith.verification.by_layer.tap import Tap
from onnxsmith.verification.explore import Run
from onnxsmith.verification.input_search import has_finite_output

_SURE = ("origin", "name", "structure")
"""Names the ways of pairing that use the origin of tensors, not their values."""
_KEPT = 3
"""Limits the sessions that one process keeps: a part of the model, a probe of it, and one to spare."""


def inside(
    program: TorchProgram,
    example: Mapping[str, Any],
    candidate: Path | ir.Model,
    runtime: tuple[Runtime, Options],
    runs: Sequence[Run],
    seed: int = 0,
) -> Inside | None:
    """Compares the intermediate tensors; None if there are none to compare. `runs` are those of the comparison of the
    outputs, `example` is the example input, `runtime` runs the candidate. An operation of the trace may raise any
    exception."""
    runs = _chosen(runs)
    if not runs:
        return None
    chosen, options = runtime
    plain = replace(options, optimization="disable") if "disable" in chosen.levels else options
    model = cloned(load(candidate))
    own = {port.name for port in signature(model).inputs}
    with stage("inside"), ExitStack() as stack:
        share_weights(model, stack.enter_context(folders.temporary()) / "weights")
        side = stack.enter_context(OnnxTap(model, chosen.preparer(keep=_KEPT), plain, "the exported model"))
        feeds = [run.feed.values for run in runs]
        tap = stack.enter_context(module_tap(program, example, feeds[0], "PyTorch", side.outline))
        pairs, ports = _pairs(tap, side)
        parts = [Parts(tap, side, pairs, ports, (one, {k: v for k, v in one.items() if k in own})) for one in feeds]
        for one in parts:
            fitting = usable(replace(one, pairs=pairs))
            pairs = _computed(fitting, EagerValues(program, one.feeds[0]))
        if not pairs:
            return None
        preparer = stack.enter_context(chosen.preparer(keep=_KEPT))
        return compared_inside(
            [replace(one, pairs=pairs) for one in parts], lambda made: preparer.prepare(made, plain), seed
        )


def _chosen(runs: Sequence[Run]) -> list[Run]:
    """Returns the run of the example, and the first other run with the same sizes."""
    usable = [run for run in runs if not run.is_empty and not run.left_out and has_finite_output(run.outputs)]
    return usable[:1] + [run for run in usable[1:] if run.feed.sizes == usable[0].feed.sizes][:1]


def _pairs(tap: Tap, side: OnnxTap) -> tuple[tuple[alignment.Pair, ...], tuple[alignment.Pair, ...]]:
    """Returns the pairs of intermediate float tensors, and the pairs of outputs."""
    names = {name: name for name in (*tap.outline.inputs, *tap.outline.outputs)}
    found = alignment.align(tap.outline, side.outline, names).pairs
    sure = [pair for pair in found if pair.how in (*_SURE, "port")]
    inner = with_operands(tap.outline, side.outline, sure)
    floats = tuple(pair for pair in inner if pair.how != "port" and side.outline.is_number(pair.candidate))
    return floats, tuple(pair for pair in found if pair.how == "port")


def _computed(parts: Parts, eager: EagerValues) -> tuple[alignment.Pair, ...]:
    """Returns the pairs whose tensors the module computes in eager mode, not only in its trace."""
    kept: list[alignment.Pair] = []
    for chunk in chunks(parts.pairs, parts.candidate.nbytes(parts.feeds[1]), parts.budget):
        values = parts.values(pair.candidate for pair in chunk)
        kept += [pair for pair in chunk if eager.has(values[pair.candidate])]
    return tuple(kept)
