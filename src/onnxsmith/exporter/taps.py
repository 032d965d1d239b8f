"""A side of a comparison as one whose tensors can be looked at."""

from __future__ import annotations

from onnxsmith.exporter.sides import SideSource
from onnxsmith.layers.onnx_tap import OnnxTap
from onnxsmith.layers.replay import Recording, ReplayTap
from onnxsmith.layers.tap import Tap
from onnxsmith.runtimes.base import Feeds, Program


def tap(side: SideSource, feeds: Feeds) -> Tap:
    """A torch module is traced as for an export; where it cannot be, it is listened to module by module, once on
    `feeds` to learn what it calls.

    Raises:
        OnnxsmithError: what the runtime raises.
    """
    if isinstance(side.source, Recording):
        return ReplayTap(side.source, side.label)
    if not isinstance(side.source, Program):
        return OnnxTap(side.source, side.runtime, side.options, side.label, feeds)
    from onnxsmith.exporter.capture import grown
    from onnxsmith.exporter.fx_tap import FxTap, decomposed, traced
    from onnxsmith.exporter.module_tap import ModuleTap
    from onnxsmith.runtimes.torch_eager import TorchProgram

    assert isinstance(side.source, TorchProgram)
    program = side.source
    if side.exported is not None:
        return FxTap(decomposed(side.exported), program.signature, side.label)
    try:
        exported = traced(program, grown(program, side.example)[0])
    except Exception as error:  # noqa: BLE001 — torch.export raises whatever it likes; modules are looked at then
        made = ModuleTap(program, side.label)
        made.listen(feeds)
        made.notes = (f"{side.label} cannot be traced, so modules are looked at, not operations: {error}"[:300],)
        return made
    return FxTap(exported, program.signature, side.label)
