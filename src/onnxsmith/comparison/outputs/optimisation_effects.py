"""Says whether the optimisations of a runtime explain why outputs differ, if the layers do not.

An optimised runtime fuses nodes, fewer of them if the tensors between are outputs. A comparison by layer runs without
optimisations, so a difference that only a fused kernel makes shows in the plain outputs alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.layers import Layers
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.comparison.outputs.candidate_state import Met
from onnxsmith.comparison.outputs.comparison_setup import Compared
from onnxsmith.comparison.outputs.sides import SideSource, renamed
from onnxsmith.comparison.outputs.single_input_layers import without_optimisations
from onnxsmith.verification.by_layer.error_effects import farthest
from onnxsmith.verification.by_layer.pair_difference import value_difference
from onnxsmith.verification.inputs.generate import Feed
from onnxsmith.verification.rounding import Rounding

_LEVELS = ("basic", "extended", "all")
"""Lists the levels of optimisation after `disable`, each with the rewrites of those before it."""


@dataclass(frozen=True)
class _Moved:
    """An output of one side that its runtime's optimisations move from `level` on. `size` is the difference of the
    worst element, relative to scale."""

    label: str
    output: str
    level: str
    size: float

    def said(self) -> str:
        return (
            f"the likely cause is an optimisation that the runtime applies to {self.label} from level {self.level} on: "
            f"it changes {self.output} by {self.size:.2g} of its scale"
        )


def changed_outputs(layers: Layers, part: Verification, feed: Feed, met: Met | None) -> dict[str, bool]:
    """Returns the outputs that agree in the plain run and differ in the run by layer, or the reverse. The value says
    whether the output differs by layer. `met` are the differences of the plain run on `feed`, if they are known."""
    ports = {layer.reference: layer.differs for layer in layers.layers if layer.paired_by == "port"}
    if met is not None:
        plain = {name: bool(one.reason) for name, one in met.items()}
    else:
        plain = {output.name: not output.equal and output.where == feed.label for output in part.outputs}
    return {name: differs for name, differs in ports.items() if name in plain and differs != plain[name]}


def explained(read: Compared, feed: Feed, changed: Mapping[str, bool]) -> str:
    """Returns sentences on outputs that change with the optimisations of the runtime; "" if there are none."""
    if not changed:
        return ""
    listed = ", ".join(f"{name} {'differs' if differs else 'agrees'}" for name, differs in changed.items())
    if without_optimisations(read.a, read.b) is None:
        return f"if every tensor is read, the runtime fuses no kernels and outputs change: now {listed}"
    said = f"without the runtime's optimisations, outputs change: then {listed}"
    moved = [one for side in (read.a, read.b) if (one := _moved(side, read, feed, changed)) is not None]
    return "; ".join((said, *(one.said() for one in moved)))


def _moved(side: SideSource, read: Compared, feed: Feed, changed: Mapping[str, bool]) -> _Moved | None:
    """Returns the output that the runtime's optimisations of a side move most, beyond rounding."""
    if side.model is None:
        return None
    names = renamed(side.interface, read.a.interface)
    values = {names[name]: value for name, value in feed.values.items() if name in names}
    found: list[_Moved] = []
    try:
        with side.prepare() as session:
            plain = session.at("disable").run(values)
            runs = {level: session.at(level).run(values) for level in _LEVELS}
    except OnnxsmithError:
        return None
    for name in changed:
        own, allowed = names[name], read.tolerances.get(name)
        first = next((level for level in _LEVELS if _differs(plain[own], runs[level][own], allowed)), None)
        if first is not None:
            found.append(_Moved(side.label, name, first, float(farthest(plain[own], runs[first][own]))))
    return max(found, key=lambda one: one.size, default=None)


def _differs(plain: object, optimised: object, allowed: Rounding | None) -> bool:
    return allowed is not None and bool(value_difference(plain, optimised, allowed).reason)  # type: ignore[arg-type]
