"""Finds the places on a page to which names in a report refer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import quote

import onnx_ir as ir

from onnxsmith.graph.structure.walk import named_subgraphs, node_label
from onnxsmith.viewer.model_scene import Viewed
from onnxsmith.viewer.scene import Scene


class Links:
    """Finds the addresses of nodes, tensors and modules of a scene. With two models the second model is searched first;
    for an `old node`, the first."""

    def __init__(self, whole: Scene, shown: Sequence[Viewed]) -> None:
        self._models = [_Index(model, number) for number, model in reversed(list(enumerate(shown)))]
        self._colours: dict[tuple[int, int], str] = {}
        for overlay in whole.overlays:
            for node in overlay.nodes:
                self._colours.setdefault((overlay.model, node), overlay.title)

    def of(self, kind: str, name: str) -> str | None:
        """Returns the address, after the page's name, of the `node`, `tensor` or `module` of this name; None if the
        page has no such address. A tensor leads to the node that computes it, coloured by its figures if it has
        figures. If no node has the name but a tensor does, a node also leads to this tensor's node, because some
        reports name a node by its result."""
        if not name:
            return None
        models = self._models
        if kind == "old node":
            kind, models = "node", self._models[::-1]
        for index in models:
            if kind == "module":
                if name in index.rooms:
                    return fragment(room=name, model=index.number)
                continue
            node = index.nodes.get(name) if kind == "node" else None
            node = index.makers.get(name) if node is None else node
            if node is not None:
                colour = self._colours.get((index.number, node), "")
                return fragment(at=index.called(node), colour=colour, model=index.number)
            if kind == "tensor" and name in index.values:
                return fragment(at=f"tensor:{name}", model=index.number)
        return None


class _Index:
    """Finds the nodes of a model by name. If several nodes share a name, the name means the first node, as on the page
    (`graph.ts`)."""

    def __init__(self, shown: Viewed, number: int) -> None:
        model = shown.scene
        self.number = number
        self.nodes: dict[str, int] = {}
        for node, name in enumerate(model.nodes.name):
            self.nodes.setdefault(name, node)
        for name, node in nested_names(shown):
            self.nodes.setdefault(name, node)
        self.values = set(model.values.name)
        made = zip(model.values.name, model.values.producer, strict=True)
        self.makers = {name: node for name, node in made if node >= 0}
        self.rooms = {room.path for room in model.rooms if room.path}
        self._names = model.nodes.name

    def called(self, node: int) -> str:
        """Returns the node's name in an address of the page."""
        name = self._names[node]
        return f"node:{name}" if name and self.nodes[name] == node else f"node-number:{node}"


# Writes the address of a place on a page of `view`: what stands after `#`.
# `viewer/src/url.ts` reads and writes the same format for the page. `tests/viewer/addresses.json` holds both to it.

_KEPT = "!~*'()/:"
"""Lists the characters that are not escaped, besides letters, digits, `-`, `_` and `.`: the same as in `url.ts`."""


def fragment(*, room: str = "", opened: Sequence[str] = (), at: str = "", colour: str = "", model: int = 0) -> str:
    """Returns the address of a room by its path. `opened` are paths of opened rooms, `at` is the selection, such as
    `node:Conv_1`, `colour` is the title of the figures, and `model` is 0 or 1."""
    parts = [_encoded(room)]
    for name, value in (
        ("open", ",".join(map(_encoded, opened))),
        ("at", _encoded(at)),
        ("colour", _encoded(colour)),
        ("model", str(model) if model else ""),
    ):
        if value:
            parts.append(f"{name}={value}")
    return "#" + "&".join(parts)


def _encoded(text: str) -> str:
    return quote(text, safe=_KEPT, errors="replace").replace("%20", "+")


def nested_names(model: Viewed) -> Iterator[tuple[str, int]]:
    """Yields names and numbers of the nodes in bodies. `bisect` and `quantize` write `cond/then_branch/relu`, `check`
    writes `cond/relu`."""
    for node in model.source.graph:
        yield from _inside(node, (node_label(node),), model)


def _inside(owner: ir.Node, names: Sequence[str], model: Viewed) -> Iterator[tuple[str, int]]:
    for body, graph in named_subgraphs(owner):
        for node in graph:
            inner = [f"{name}/{step}{node_label(node)}" for name in names for step in (f"{body}/", "")]
            if node in model.nodes:
                yield from ((name, model.nodes[node]) for name in inner)
            yield from _inside(node, inner, model)
