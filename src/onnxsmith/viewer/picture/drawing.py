"""Draws a room of a scene: items as boxes in rows, edges as lines with the types of their tensors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from onnxsmith.base.words import several
from onnxsmith.viewer.picture.picture_elements import Box, Line, Picture, Point, Text, cut, width
from onnxsmith.viewer.scene import CONSTANT, INPUT, NODE, OUTPUT, ROOM, STUB, Figure, Model, Overlay, Room

_BOX, _GAP, _MARGIN = 44.0, 40.0, 20.0
"""Sets the height of a box, of the space between rows, and of the margin. A choice: two lines of text fit into a box,
and one line along an edge."""
_LARGE, _SMALL, _TINY = 13.0, 10.5, 9.5
_ROW = 18.0
"""Sets the height of a row of the legend. A choice: one line of text."""
_PORT = 16.0
"""Sets the distance of neighbouring ends of lines at a box. A choice: a little more than the width of an arrow."""
_NARROWEST, _WIDEST = 84.0, 260.0
"""Bounds the width of a box, in pixels. A choice: `RMSNormalization` and a path of two steps fit."""
_INK, _GREY, _LINE = "#1b1b1b", "#5a5a5a", "#6b7280"
_FILLS = {
    "product": ("#dbe7fb", "#3d6fb8"),
    "activation": ("#fbe3d6", "#c2602b"),
    "normalization": ("#e2f1dc", "#4f8a3c"),
    "shape": ("#ececec", "#808080"),
    "elementwise": ("#fdf3cf", "#a8861c"),
    "reduction": ("#ece1f6", "#7a51a8"),
    "quantizer": ("#fadde8", "#b33f74"),
    "control": ("#d9f0ef", "#2c8782"),
    "constant": ("#f5f5f5", "#9a9a9a"),
    "other": ("#ffffff", "#5f6b7a"),
}
"""Maps each family to a fill and an outline. Fills are light enough for black text, and outlines differ even without
colour."""
_TELLING = ("kernel_shape", "strides", "axis", "axes", "perm", "to", "equation", "mode", "num_heads", "hidden_size")
"""Lists the attributes that a box shows, if they are in the file. A choice: these attributes distinguish neighbouring
nodes."""


@dataclass(frozen=True)
class _Labels:
    """Makes the lines of an item's text, and its colours."""

    title: str
    under: str
    fill: str
    line: str


def draw(model: Model, room: Room, overlay: Overlay | None = None) -> Picture:
    """Draws one room. With an `overlay`, nodes have the colours of its figures, and a legend stands below."""
    picture = _Drawing(model, room, fills(overlay) if overlay is not None else {}).run()
    if overlay is not None:
        _add_legend(picture, legend(overlay))
    return picture


def _add_legend(picture: Picture, rows: list[tuple[str, str]]) -> None:
    for fill, text in rows:
        y = picture.height
        picture.height += _ROW
        if fill:
            picture.boxes.append(Box(_MARGIN, y - 10.0, 22.0, 13.0, 2.0, fill, _GREY))
        left = _MARGIN + 30.0 if fill else _MARGIN
        picture.texts.append(Text(left, y, text, _SMALL, _INK, anchor="start", bold=not fill))
        picture.width = max(picture.width, left + 1.1 * width(text, _SMALL) + _MARGIN)


class _Drawing:
    def __init__(self, model: Model, room: Room, fills: Mapping[int, str]) -> None:
        self._model, self._room, self._fills = model, room, fills
        self._picture = Picture(room.title if room.kind == "graph" else room.path)
        self._labels = [self._label(kind, ref) for kind, ref in zip(room.items.kind, room.items.ref, strict=True)]
        widths = [max(width(one.title, _LARGE), width(one.under, _SMALL)) + 22 for one in self._labels]
        self._unit = min(max([_NARROWEST, *widths]), _WIDEST)
        self._widths = [min(max(one, _NARROWEST), self._unit) for one in widths]
        self._ports = _Ports(room, self._widths)
        self._told: set[int] = set()

    def run(self) -> Picture:
        room, picture = self._room, self._picture
        for at in range(len(room.edges.to)):
            self._edge(at)
        for at, label in enumerate(self._labels):
            self._item(at, label)
        bends = [x for own in room.edges.bends for x in own]
        picture.width = (max([*room.items.x, *bends], default=0.0) + 1) * self._unit + 2 * _MARGIN
        widest = max(
            (text.x + width(text.text, text.size) for text in picture.texts if text.anchor == "start"), default=0
        )
        picture.width = max(picture.width, widest + _MARGIN)
        rows = max(room.items.row, default=-1) + 1
        picture.height = max(rows * (_BOX + _GAP) - _GAP, 0.0) + 2 * _MARGIN
        if not rows:
            picture.width, picture.height = 240.0, 60.0
            picture.texts.append(Text(120.0, 34.0, "no nodes", _LARGE, _GREY))
        return picture

    def _middle(self, item: int) -> Point:
        return self._x(self._room.items.x[item]), _MARGIN + self._room.items.row[item] * (_BOX + _GAP) + _BOX / 2

    def _x(self, place: float) -> float:
        return _MARGIN + (place + 0.5) * self._unit

    def _label(self, kind: int, ref: int) -> _Labels:
        model = self._model
        if kind == NODE:
            op = model.ops[model.nodes.op[ref]]
            title = f"{op['domain']}::{op['type']}" if op["domain"] not in ("", "ai.onnx") else op["type"]
            fill, line = _FILLS.get(op["family"], _FILLS["other"])
            fill = self._fills.get(ref, "#ffffff") if self._fills else fill
            return _Labels(*self._texts(title, self._telling(ref)), fill, line)
        if kind == ROOM:
            inner = model.rooms[ref]
            return _Labels(*self._texts(inner.title, several(inner.count, "node")), "#eef1f6", "#41506b")
        name, type_ = model.values.name[ref], self._type(ref)
        return _Labels(*self._texts(name, "" if kind == STUB else type_), "#ffffff", "#1b1b1b")

    def _texts(self, title: str, under: str) -> tuple[str, str]:
        return cut(title, _LARGE, _WIDEST - 22), cut(under, _SMALL, _WIDEST - 22)

    def _type(self, value: int) -> str:
        type_ = self._model.values.type[value]
        return self._model.types[type_] if type_ >= 0 else ""

    def _telling(self, node: int) -> str:
        """Returns the shape of the weight that the node reads, then the node's attributes from `_TELLING`."""
        nodes, values = self._model.nodes, self._model.values
        stored = [value for value in nodes.inputs[node] if value >= 0 and values.kind[value] == CONSTANT]
        shapes = [self._type(value).partition("[")[2].rstrip("]") for value in stored]
        said = [f"[{shape}]" for shape in shapes[:1] if "," in shape]
        given = {name: text for name, text, is_default in nodes.attributes[node] if not is_default}
        said += [f"{name} {given[name]}" for name in _TELLING if name in given][:2]
        return "  ".join(said)

    def _item(self, at: int, label: _Labels) -> None:
        kind, (x, y), wide = self._room.items.kind[at], self._middle(at), self._widths[at]
        picture = self._picture
        if kind == STUB:
            picture.texts.append(Text(x, y + _BOX / 2 - 4, label.title, _SMALL, _GREY))
            return
        radius = _BOX / 2 if kind in (INPUT, OUTPUT) else 7.0
        picture.boxes.append(Box(x - wide / 2, y - _BOX / 2, wide, _BOX, radius, label.fill, label.line, kind == ROOM))
        if label.under:
            picture.texts.append(Text(x, y - 2, label.title, _LARGE, _INK, bold=True))
            picture.texts.append(Text(x, y + 14, label.under, _SMALL, _GREY))
        else:
            picture.texts.append(Text(x, y + 4.5, label.title, _LARGE, _INK, bold=True))

    def _edge(self, at: int) -> None:
        edges, items = self._room.edges, self._room.items
        one, other, value = edges.from_[at], edges.to[at], edges.value[at]
        (x, y), (end, last) = self._middle(one), self._middle(other)
        start = x + self._ports.leaving[at]
        points: list[Point] = [(start, y + (_BOX - 2 if items.kind[one] == STUB else _BOX) / 2)]
        for step, bend in enumerate(edges.bends[at], 1):
            level = _MARGIN + (items.row[one] + step) * (_BOX + _GAP)
            points += [(self._x(bend), level), (self._x(bend), level + _BOX)]
        points.append((end + self._ports.reaching[at], last - _BOX / 2))
        self._picture.lines.append(Line(tuple(points), _LINE, dashed=items.kind[one] == STUB))
        if items.kind[one] in (NODE, ROOM) and one not in self._told:  # texts of several types would overlap
            self._told.add(one)
            type_ = cut(self._type(value), _TINY, 1.1 * self._unit)
            self._picture.texts.append(Text(start + 6, y + _BOX / 2 + 13, type_, _TINY, _GREY, anchor="start"))


class _Ports:
    """Holds the positions at which the edges of a room leave and reach their items, in pixels from the middle. Edges
    that met in one point could not be told apart."""

    def __init__(self, room: Room, widths: list[float]) -> None:
        edges, items = room.edges, room.items
        count = len(edges.to)
        first = [own[0] if own else items.x[edges.to[at]] for at, own in enumerate(edges.bends)]
        last = [own[-1] if own else items.x[edges.from_[at]] for at, own in enumerate(edges.bends)]
        keys = [(edges.from_[at], edges.value[at]) for at in range(count)]
        self.leaving = self._spread(edges.from_, first, keys, widths)
        self.reaching = self._spread(edges.to, last, [(edges.to[at], at) for at in range(count)], widths)

    @staticmethod
    def _spread(ends: list[int], towards: list[float], keys: list[tuple[int, int]], widths: list[float]) -> list[float]:
        """Returns the position of each edge at an item, sorted by where the edges go. Edges with equal keys share a
        position."""
        groups: dict[int, dict[tuple[int, int], list[float]]] = {}
        for at, end in enumerate(ends):
            groups.setdefault(end, {}).setdefault(keys[at], []).append(towards[at])
        places: dict[tuple[int, int], float] = {}
        for end, own in groups.items():
            ordered = sorted(own, key=lambda key: (sum(own[key]) / len(own[key]), key))
            step = min(_PORT, 0.6 * widths[end] / len(ordered))
            for place, key in enumerate(ordered):
                places[key] = step * (place - (len(ordered) - 1) / 2)
        return [places[key] for key in keys]


# The colours that a report gives to the nodes of a picture, and the legend under it.

_LIGHT, _STRONG = (255, 247, 230), (240, 120, 60)
"""Holds the ends of the colour ramp. A choice: black text is legible on both, and they differ in print without
colour."""
_CLASSES = ("#cfe3f7", "#f8cfc0", "#d5ecc8", "#e6d5f3", "#fbeab0", "#c9ecea", "#f7cfe0", "#dcdcdc")
_ODD = "#c08fd8"
"""Is the colour of NaN and infinity."""


def fills(overlay: Overlay) -> dict[int, str]:
    """Returns the colour of each node that has a figure."""
    if overlay.scale == "classes":
        return {node: _of_class(value) for node, value in zip(overlay.nodes, overlay.figures, strict=True)}
    low, high = _range(overlay)
    return {node: _shade(overlay, value, low, high) for node, value in zip(overlay.nodes, overlay.figures, strict=True)}


def legend(overlay: Overlay) -> list[tuple[str, str]]:
    """Returns the rows of the legend: colours and their meanings. The first row is the title, without a colour."""
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
