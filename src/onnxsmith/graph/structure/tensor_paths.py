"""Finds the tensors of a model by name, in the main graph and in branches and bodies at any depth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal

import onnx_ir as ir

from onnxsmith.base.near_names import near_names
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.base.words import abbreviated, listed, several
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.walk import named_subgraphs

Kind = Literal["input", "constant", "node", "body input"]
_SUGGESTED = 5
"""Limits the names in a suggestion. A choice: one line."""


@dataclass(frozen=True, eq=False)
class Body:
    """A branch or body: the node that owns it, and the attribute's name."""

    node: ir.Node
    attribute: str
    graph: ir.Graph

    def __str__(self) -> str:
        return f"{walk.node_label(self.node).removeprefix('-> ')}/{self.attribute}"


@dataclass(frozen=True, eq=False)
class Place:
    """One tensor of a model.

    `name` is the value's own name if it is unique, otherwise `body/…/name`. `bodies` are the bodies around the value,
    the outermost first. `kind` is `input` (of the main graph), `constant` (an initializer, or the result of a Constant
    node of the main graph), `body input` (a loop's state or counter, a scanned element), or `node` (the result of any
    other node)."""

    name: str
    value: ir.Value
    bodies: tuple[Body, ...]
    kind: Kind

    @property
    def path(self) -> tuple[str, ...]:
        """The bodies as text: `loop_3/body`."""
        return tuple(str(body) for body in self.bodies)

    def constant(self) -> ir.TensorProtocol | None:
        """Returns the tensor of a `constant`, None if it has no values."""
        return const_tensor(self.value)


def places(model: ir.Model) -> list[Place]:
    """Returns every named tensor, in the order of the graphs, without those inside functions."""
    found = list(_places(model.graph, ()))
    count = Counter(value.name for value, _, _ in found)
    taken = {name for name, number in count.items() if number == 1}
    return [Place(_name(value, bodies, count, taken), value, bodies, kind) for value, bodies, kind in found]


def _name(value: ir.Value, bodies: tuple[Body, ...], count: Counter[str | None], taken: set[str | None]) -> str:
    name = value.name or ""
    if count[name] == 1:
        return name
    whole = wish = "/".join((*map(str, bodies), name))
    number = 1
    while whole in taken:
        number += 1
        whole = f"{wish}#{number}"
    taken.add(whole)
    return whole


def find(known: Collection[Place], names: Collection[str]) -> list[Place]:
    """Returns the places of these names. A bare name that stands in several bodies means all these tensors.

    Raises:
        OnnxsmithError: `model/unknown-tensor` for a name that no tensor has.
    """
    by_name: dict[str, list[Place]] = {}
    for place in known:
        if place.value.name:
            by_name.setdefault(place.value.name, []).append(place)
    exact = {place.name: place for place in known}
    found: dict[Place, None] = {}
    for name in names:
        if name in exact:
            found[exact[name]] = None
        elif name in by_name:
            found.update(dict.fromkeys(by_name[name]))
        else:
            raise unknown(name, known)
    return list(found)


def unknown(name: str, known: Collection[Place]) -> OnnxsmithError:
    """Returns the error for a name, or a pattern, that matches no tensor."""
    names = [place.name for place in known]
    found = near(name, names)
    return problem(
        "model/unknown-tensor",
        f"no tensor of the model is called {name!r}",
        why="" if found else f"it has {several(len(names), 'named tensor')}, none with a similar name",
        fix=f"the nearest names: {listed(found)}" if found else "`onnxsmith inspect MODEL --nodes` lists the names",
    )


def near(name: str, names: Collection[str]) -> list[str]:
    """Returns a few names that contain `name`, the shortest first; otherwise names that it abbreviates, or names with a
    similar spelling."""
    ordered = sorted(set(names))
    containing = sorted((text for text in ordered if name and name.lower() in text.lower()), key=len)
    return (containing or abbreviated(name, ordered))[:_SUGGESTED] or near_names(name, ordered, _SUGGESTED)


def _places(graph: ir.Graph, bodies: tuple[Body, ...]) -> Iterator[tuple[ir.Value, tuple[Body, ...], Kind]]:
    inputs = set(graph.inputs)
    for value in graph.inputs:
        yield value, bodies, "body input" if bodies else "input"
    for value in graph.initializers.values():
        if value not in inputs:
            yield value, bodies, "constant"
    for node in graph:
        kind: Kind = "constant" if node.op_type == "Constant" and not node.domain and not bodies else "node"
        for value in node.outputs:
            if value.name:
                yield value, bodies, kind if kind == "node" or value.const_value is not None else _constant(value)
        for name, inner in named_subgraphs(node) if node.attributes else ():
            yield from _places(inner, (*bodies, Body(node, name, inner)))


def _constant(value: ir.Value) -> Kind:
    """Treats a Constant without a dense tensor (a sparse one, for example) as a computed value."""
    return "constant" if const_tensor(value) is not None else "node"
