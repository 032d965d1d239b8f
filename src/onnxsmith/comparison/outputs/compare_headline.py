"""Writes the headline of a comparison: one verdict, from the outputs, the steps and the layers together."""

from __future__ import annotations

from collections.abc import Sequence

from onnxsmith.base.report.base import Part
from onnxsmith.base.report.parts.verification import Steps, Verification
from onnxsmith.base.words import several
from onnxsmith.comparison.outputs.sides import SideSource


def headline(a: SideSource, b: SideSource, part: Verification, parts: Sequence[Part]) -> str:
    """Returns the headline: the verdict with where it was reached, and the first error."""
    layers = by_input = None
    where = also = ""
    steps = next((one for one in parts if isinstance(one, Steps)), None)
    if len(parts) > 1:
        from onnxsmith.base.report.parts.layers import Layers, LayersByInput

        layers = next((one for one in parts if isinstance(one, Layers)), None)
        by_input = next((one for one in parts if isinstance(one, LayersByInput)), None)
    begins = f"on {by_input.first}" if by_input is not None and by_input.first else ""
    begins = f"at {steps.first}" if steps is not None and steps.first else begins
    if layers is not None:
        explained = layers.cause is not None and layers.cause.agrees
        cause = layers.cause.said() if layers.cause is not None and explained else ""
        if layers.culprits:
            inside = f", in its body {layers.inside.step}" if layers.inside is not None else ""
            agree = "" if part.differs else ", but only inside: the outputs agree"
            more = f" and {len(layers.culprits) - 1} more" if len(layers.culprits) > 1 else ""
            where = f"{agree}; first error: {layers.culprits[0]}{inside}" + (f" ({cause})" if cause else "") + more
        elif cause:
            also = f"; the graphs differ in {cause}, and rounding there explains the outputs"
        elif layers.exposed and part.differs:
            also = f"; {layers.exposed}"
    where = f"; first {begins}{where}" if begins else where
    gaps = "".join(f"; {gap}" for gap in part.untried)
    if part.unsure and not where:
        return f"{a.label} and {b.label}: CANNOT TELL on {several(len(part.runs), 'input')}: {part.unsure[0]}{gaps}"
    said = "equal" if part.equal and not where else "DIFFERENT"
    on = f"on {layers.input}" if layers is not None and where and not part.runs else part.where_compared
    return f"{a.label} and {b.label}: {said} {on}{where}{also}{gaps}"
