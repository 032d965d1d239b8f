"""Defines the scene, which is all data of the page. `viewer/src/scene.ts` describes the same data for the page.

Nodes, values and items are held in columns, lists of equal length, and indices point into them. So a scene of 20,000
nodes stays a few megabytes. A field that ends in `_` is written without it, because `from` is a keyword of Python.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from onnxsmith.base.printable import VERBATIM, cut
from onnxsmith.viewer.inline_elements import as_json

Figure = float | int | str
NODE, ROOM, INPUT, OUTPUT, STUB = range(5)
"""Numbers the kinds of items in a room."""
COMPUTED, GRAPH_INPUT, GRAPH_OUTPUT, CONSTANT = range(4)
"""Numbers the kinds of values."""


@dataclass(eq=False)
class Nodes:
    """Holds the nodes of all graphs, without `Constant` nodes: their tensors are constants."""

    name: list[str] = field(default_factory=list)
    op: list[int] = field(default_factory=list)
    room: list[int] = field(default_factory=list)
    module: list[int] = field(default_factory=list)
    source: list[int] = field(default_factory=list)
    inputs: list[list[int]] = field(default_factory=list)
    outputs: list[list[int]] = field(default_factory=list)
    attributes: list[list[tuple[str, str, int]]] = field(default_factory=list)
    bodies: list[list[tuple[str, int]]] = field(default_factory=list)


@dataclass(eq=False)
class Values:
    """Holds the values of all graphs. `type` is an index into the types, `producer` a node or -1."""

    name: list[str] = field(default_factory=list)
    type: list[int] = field(default_factory=list)
    producer: list[int] = field(default_factory=list)
    kind: list[int] = field(default_factory=list)


@dataclass(eq=False)
class Constant:
    """Describes a stored tensor. `figures` is None if the values were not read. `aliases` are the names of the torch
    parameters from which an exporter computed the tensor."""

    bytes: int
    file: str
    figures: dict[str, Figure] | None
    histogram: list[int]
    text: str
    aliases: list[str] = field(default_factory=list)
    form: str = ""
    """Says how the tensor is stored, if not value by value: `sparse, 3 of 12 values`. In this case `bytes` is the
    stored size."""


@dataclass(eq=False)
class Items:
    """Holds the items of a room, in rows from the top. `x` is the middle of an item, in units of the widest item."""

    kind: list[int] = field(default_factory=list)
    ref: list[int] = field(default_factory=list)
    row: list[int] = field(default_factory=list)
    x: list[float] = field(default_factory=list)


@dataclass(eq=False)
class Edges:
    """Holds edges between items. `bends` has the x of an edge in each row between its ends."""

    from_: list[int] = field(default_factory=list)
    to: list[int] = field(default_factory=list)
    value: list[int] = field(default_factory=list)
    bends: list[list[float]] = field(default_factory=list)


@dataclass(eq=False)
class Room:
    """Describes one level of a model: a graph, a function, a branch, a torch module or scope, or a repeated block."""

    title: str
    kind: str
    path: str
    parent: int
    count: int = 0
    repeats: int = 1
    items: Items = field(default_factory=Items)
    edges: Edges = field(default_factory=Edges)


@dataclass(eq=False)
class Model:
    """Describes one model. `constants` is by index of the value. `captured` is by index of the node and holds the outer
    values that the node's bodies read. `docs` are doc strings by index of the node. An op may have `inputs` and
    `outputs`, its formal names."""

    name: str
    path: str
    hash: str
    facts: list[tuple[str, str]] = field(default_factory=list)
    ops: list[dict[str, Any]] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    modules: list[dict[str, str]] = field(default_factory=list)
    sources: list[dict[str, Any]] = field(default_factory=list)
    nodes: Nodes = field(default_factory=Nodes)
    values: Values = field(default_factory=Values)
    constants: dict[int, Constant] = field(default_factory=dict)
    captured: dict[int, list[int]] = field(default_factory=dict)
    docs: dict[int, str] = field(default_factory=dict)
    rooms: list[Room] = field(default_factory=list)


@dataclass(eq=False)
class Overlay:
    """Holds figures from a report, for some of the nodes."""

    title: str
    model: int
    unit: str
    scale: str
    classes: list[str]
    worst: str
    nodes: list[int]
    figures: list[Figure]
    texts: list[str]
    from_: str


@dataclass(eq=False)
class Difference:
    """Describes the differences between two models. `pairs` are node, node, state; `changes` are lines by index of the
    pair. `regions` are removed nodes and added nodes that compute the same; if one model has no such nodes, the region
    has that model's nodes of pairs. `rounded` are the indices of the pairs that are equal up to the rounding of their
    weights. `stored` are the removed and the added nodes that compute only from stored tensors."""

    pairs: list[tuple[int, int, int]]
    removed: list[int]
    added: list[int]
    changes: dict[int, list[str]]
    regions: list[tuple[list[int], list[int]]] = field(default_factory=list)
    rounded: list[int] = field(default_factory=list)
    stored: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))

    def otherwise(self) -> tuple[int, int]:
        """Counts the removed and the added nodes in regions."""
        own = set(self.removed), set(self.added)
        removed, added = (
            len({node for region in self.regions for node in region[side]} & own[side]) for side in (0, 1)
        )
        return removed, added


@dataclass(eq=False)
class Program:
    """Holds the captured program: a line for each operation, with the nodes that came from it."""

    from_: str
    lines: list[dict[str, Any]]


@dataclass(eq=False)
class Scene:
    """Holds all data of the page."""

    headline: str
    notes: list[str]
    models: list[Model]
    overlays: list[Overlay] = field(default_factory=list)
    difference: Difference | None = None
    program: Program | None = None
    warnings: list[str] = field(default_factory=list)
    """Lists lines above the picture, for example that a report is about another model."""
    start: str = ""
    """Is the address at which the page opens, `#` included, unless its URL has an address."""
    format: int = 1


def figure(value: float | int) -> Figure:
    """Returns a number in the form of the scene, because JSON has no NaN and no infinities."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def to_json(scene: Scene) -> str:
    """Writes the scene as text that is safe inside a `<script>` element. Texts that are too long to look at are cut."""
    text = as_json(scene, _fields)
    return as_json(_limited(scene)) if max(map(len, text.split('"'))) > VERBATIM else text


def _fields(one: Any) -> dict[str, Any]:
    return {name.rstrip("_"): value for name, value in vars(one).items()}


def _limited(data: Any) -> Any:
    """Returns the scene, or a part of it, as plain data with shortened texts."""
    if isinstance(data, str):
        return cut(data, VERBATIM)
    if isinstance(data, dict):
        return {cut(str(key), VERBATIM): _limited(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_limited(one) for one in data]
    return data if data is None or isinstance(data, bool | int | float) else _limited(_fields(data))
