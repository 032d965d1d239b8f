"""The colours that a report gives to the nodes of a picture, and the legend under it."""

from __future__ import annotations

import math

from onnxsmith.viewer.scene import Figure, Overlay

_LIGHT, _STRONG = (255, 247, 230), (240, 120, 60)
"""The ends of the ramp. A choice: black text is legible on both, and they differ in print without colour."""
_CLASSES = ("#cfe3f7", "#f8cfc0", "#d5ecc8", "#e6d5f3", "#fbeab0", "#c9ecea", "#f7cfe0", "#dcdcdc")
_ODD = "#c08fd8"
"""The colour of NaN and infinity."""


def fills(overlay: Overlay) -> dict[int, str]:
    """Returns the colour of each node that has a figure."""
    if overlay.scale == "classes":
        return {node: _of_class(value) for node, value in zip(overlay.nodes, overlay.figures, strict=True)}
    low, high = _range(overlay)
    return {node: _shade(overlay, value, low, high) for node, value in zip(overlay.nodes, overlay.figures, strict=True)}


def legend(overlay: Overlay) -> list[tuple[str, str]]:
    """Returns colours with what they stand for; the first row is the title, without a colour."""
    rows = [("", f"{overlay.title}{f', {overlay.unit}' if overlay.unit else ''} ({overlay.from_})")]
    if overlay.scale == "classes":
        used = {value for value in overlay.figures if isinstance(value, int)}
        return [*rows, *((_of_class(at), name) for at, name in enumerate(overlay.classes) if at in used)]
    low, high = _range(overlay)
    known = [value for value in overlay.figures if not isinstance(value, str)]
    ends = dict.fromkeys((low, high) if known else ())
    rows += [(_shade(overlay, value, low, high), f"{value:.4g}") for value in ends]
    odd = sorted({value for value in overlay.figures if isinstance(value, str)})
    return [*rows, *([(_ODD, ", ".join(odd))] if odd else [])]


def _of_class(value: Figure) -> str:
    return _CLASSES[int(value) % len(_CLASSES)] if not isinstance(value, str) else _ODD


def _range(overlay: Overlay) -> tuple[float, float]:
    known = [float(value) for value in overlay.figures if not isinstance(value, str)]
    return min(known, default=0.0), max(known, default=0.0)


def _shade(overlay: Overlay, value: Figure, low: float, high: float) -> str:
    if isinstance(value, str):
        return _ODD
    place = _place(float(value), low, high, is_log=overlay.scale == "log" and low > 0)
    place = 1 - place if overlay.worst == "low" else place
    mixed = (round(one + (other - one) * place) for one, other in zip(_LIGHT, _STRONG, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _place(value: float, low: float, high: float, *, is_log: bool) -> float:
    if high <= low:
        return 1.0
    if is_log:
        return (math.log(value) - math.log(low)) / (math.log(high) - math.log(low))
    return (value - low) / (high - low)
