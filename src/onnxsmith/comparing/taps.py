"""A side of a comparison as one whose tensors can be looked at."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from onnxsmith.comparing.sides import SideSource
from onnxsmith.layers.onnx_tap import OnnxTap
from onnxsmith.layers.outline import Outline
from onnxsmith.layers.replay import Recording, ReplayTap
from onnxsmith.layers.tap import Tap
from onnxsmith.model.graph.signature import Signature
from onnxsmith.runtimes.base import Feeds, Program
from onnxsmith.runtimes.torch_eager import TorchProgram


def taps(a: SideSource, b: SideSource, feeds: tuple[Feeds, Feeds], stack: ExitStack) -> tuple[Tap, Tap]:
    """Both sides, closed with `stack`. What a torch side is looked at in depends on the side that it is held to.

    Raises:
        OnnxsmithError: what the runtimes raise.
    """
    if isinstance(a.source, Program):
        second = stack.enter_context(tap(b, feeds[1]))
        return stack.enter_context(tap(a, feeds[0], second.outline)), second
    first = stack.enter_context(tap(a, feeds[0]))
    return first, stack.enter_context(tap(b, feeds[1], first.outline))


def tap(side: SideSource, feeds: Feeds, other: Outline | None = None) -> Tap:
    """A torch module is traced as for an export; where it cannot be, it is run once on `feeds`, with every operation on
    tape.

    Raises:
        OnnxsmithError: what the runtime raises.
    """
    if isinstance(side.source, Recording):
        return ReplayTap(side.source, side.label)
    if side.inferred is not None:
        return OnnxTap(side.inferred, side.preparer, side.options, side.label, feeds, is_inferred=True)
    from onnxsmith.comparing.fx_tap import FxTap
    from onnxsmith.comparing.tape_tap import TapeTap
    from onnxsmith.exporter.graph.capture import grown
    from onnxsmith.exporter.tracing.operations import suited, traced

    assert isinstance(side.source, TorchProgram)
    program = side.source
    if side.exported is not None:
        return FxTap(suited(side.exported, other), program.signature, side.label)
    # with the axes that the other side leaves open, as it was exported; else at the sizes of this input
    tries = (program, lambda: grown(program, side.example)[0]), (_fixed(program, feeds), lambda: feeds)
    why = ""
    for asked, example in tries:
        try:
            return FxTap(traced(asked, example(), other), program.signature, side.label)
        except Exception as error:  # noqa: BLE001 — torch.export raises whatever it likes; the tape is looked at then
            why = " ".join(str(error).split())[:200]
    made = TapeTap(program, side.label, feeds)
    made.notes += (f"{side.label} cannot be traced; looked at is what it computes on this input: {why}",)
    return made


def _fixed(program: TorchProgram, feeds: Feeds) -> TorchProgram:
    """The program with every axis of the size that this input has."""
    inputs = tuple(
        replace(port, shape=tuple(np.shape(np.asarray(feeds[port.name])))) if port.name in feeds else port
        for port in program.signature.inputs
    )
    return replace(program, signature=Signature(inputs, program.signature.outputs))
