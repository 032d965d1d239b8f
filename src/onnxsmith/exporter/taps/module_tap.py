"""Makes a torch module a tap: traced as in an export, or, if that is impossible, recorded while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from onnxsmith.exporter.graph.program_capture import grown
from onnxsmith.exporter.taps.fx_tap import FxTap
from onnxsmith.exporter.taps.tape_tap import TapeTap
from onnxsmith.exporter.tracing.program_operations import traced
from onnxsmith.graph.structure.signature import Signature
from onnxsmith.runtimes.base import Feeds
from onnxsmith.runtimes.torch_eager import TorchProgram
from onnxsmith.verification.by_layer.side_outline import Outline
from onnxsmith.verification.by_layer.tap import Tap


def module_tap(
    program: TorchProgram, example: Mapping[str, Any], feeds: Feeds, label: str, other: Outline | None = None
) -> Tap:
    """Makes the tap of a torch module. Traces the module with the dynamic axes of `program` on `example`, or else at
    the sizes of `feeds`. If neither is possible, runs it once on `feeds` and records every operation. `other` is the
    outline of the other model, on which the decomposition depends.

    Raises:
        OnnxsmithError: the error of the module.
    """
    tries = (program, lambda: grown(program, example)[0]), (fixed(program, feeds), lambda: feeds)
    why = ""
    for asked, inputs in tries:
        try:
            return FxTap(traced(asked, inputs(), other), program.signature, label)
        except Exception as error:  # noqa: BLE001 — torch.export may raise anything; the tape is used then
            why = " ".join(str(error).split())[:200]
    made = TapeTap(program, label, feeds)
    made.notes += (f"{label} cannot be traced, so the operations that it runs on this input are compared: {why}",)
    return made


def fixed(program: TorchProgram, feeds: Feeds) -> TorchProgram:
    """Returns the program with every axis fixed to its size in this input."""
    inputs = tuple(
        replace(port, shape=tuple(np.shape(np.asarray(feeds[port.name])))) if port.name in feeds else port
        for port in program.signature.inputs
    )
    return replace(program, signature=Signature(inputs, program.signature.outputs))
