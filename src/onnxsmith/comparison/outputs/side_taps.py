"""Makes a side of a comparison a tap, whose tensors can be compared."""

from __future__ import annotations

from contextlib import ExitStack

from onnxsmith.comparison.outputs.exported_side import as_graph, says_origins
from onnxsmith.comparison.outputs.sides import SideSource
from onnxsmith.runtimes.base import Feeds, Program
from onnxsmith.runtimes.torch_eager import TorchProgram
from onnxsmith.verification.by_layer.onnx_tap import OnnxTap
from onnxsmith.verification.by_layer.replay import Recording, ReplayTap
from onnxsmith.verification.by_layer.tap import Tap


def taps(a: SideSource, b: SideSource, feeds: tuple[Feeds, Feeds], stack: ExitStack) -> tuple[Tap, Tap]:
    """Both sides as taps, closed with `stack`. The decomposition of a torch side depends on the side that it is
    compared with.

    Raises:
        OnnxsmithError: the errors of the runtimes.
    """
    if isinstance(a.source, Program):
        second = stack.enter_context(tap(b, feeds[1]))
        return stack.enter_context(tap(a, feeds[0], second)), second
    first = stack.enter_context(tap(a, feeds[0]))
    return first, stack.enter_context(tap(b, feeds[1], first))


def tap(side: SideSource, feeds: Feeds, other: Tap | None = None) -> Tap:
    """The tap of a side. A torch module is traced as in an export; if that is impossible, it is run once on `feeds`,
    with every operation recorded. If the `other` side is a graph that does not say where its nodes come from, the
    module is exported to a graph, too.

    Raises:
        OnnxsmithError: the error of the runtime.
    """
    if isinstance(side.source, Recording):
        return ReplayTap(side.source, side.label)
    if side.inferred is not None:
        return OnnxTap(side.inferred, side.preparer, side.options, side.label, feeds, is_inferred=True)
    said: tuple[str, ...] = ()
    if isinstance(other, OnnxTap) and side.exported is None and not says_origins(other.outline):
        graph = as_graph(side, feeds)
        if isinstance(graph, OnnxTap):
            return graph
        said = (graph,)
    assert isinstance(side.source, TorchProgram)
    program = side.source
    outline = None if other is None else other.outline
    if side.exported is not None:
        from onnxsmith.exporter.taps.fx_tap import FxTap
        from onnxsmith.exporter.tracing.program_operations import suited

        return FxTap(suited(side.exported, outline), program.signature, side.label)
    from onnxsmith.exporter.taps.module_tap import module_tap

    made = module_tap(program, side.example, feeds, side.label, outline)
    made.notes += said
    return made
