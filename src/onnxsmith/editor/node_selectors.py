"""Finds nodes and tensors by selectors: a name, a name with `*`, or a table of conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from onnxsmith.base import name_patterns
from onnxsmith.base.near_names import near_names
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import first_few, listed, pasted, plural, several
from onnxsmith.editor.handles import NodeHandle, TensorHandle
from onnxsmith.graph.structure import provenance, tensor_paths, walk

CONDITIONS = ("name", "op", "module", "reads", "gives", "attributes")
_SHOWN = 5
"""Limits the matches that an error names. A choice: one line."""


@dataclass(frozen=True)
class Takes:
    """Describes the tensors that a step can take. `what` is their common name, such as "graph output"; `includes` tests
    whether the step can take a tensor. A name with `*` selects among these tensors only."""

    what: str
    includes: Callable[[ir.Value], bool]


class Selecting:
    """Finds nodes and tensors of one model: in the main graph, in branches and bodies, and, for nodes, in functions."""

    def __init__(self, model: ir.Model) -> None:
        self._model = model

    def node(self, selector: Any) -> ir.Node:
        """Returns the one node that a selector means.

        Raises:
            OnnxsmithError: `edit/no-match` with the nearest names, `edit/many-matches` with the matches.
        """
        found = self.nodes(selector)
        if len(found) > 1:
            raise self._many_nodes(selector, found)
        return found[0]

    def _many_nodes(self, selector: Any, found: list[ir.Node]) -> OnnxsmithError:
        names = [walk.node_label(node) for node in found]
        if len(set(names)) == len(names):
            return _many(selector, "node", names)
        matched = [f"{walk.node_label(node)} ({walk.op_name(node)})" for node in found]
        return problem(
            "edit/many-matches",
            f"{shown(selector)} matches {several(len(found), 'node')}, and this step needs exactly one",
            why="it matches " + first_few(matched, _SHOWN),
            fix="name one of them: " + first_few([self._own_selector(node) for node in found], _SHOWN, " or "),
        )

    def _own_selector(self, node: ir.Node) -> str:
        """Returns a selector for this node alone, in the form of a patch file."""
        nodes = list(walk.all_nodes(self._model))
        tables: list[dict[str, Any]] = [{"name": node.name or "", "op": walk.op_name(node)}]
        tables += [{"gives": value.name} for value in node.outputs if value.name]
        for table in tables:
            if [one for one in nodes if is_match(one, table)] == [node]:
                return shown_table(table)
        return shown_table(tables[-1])

    def nodes(self, selector: Any) -> list[ir.Node]:
        """Returns all nodes that a selector means, at least one node. A list of selectors means the nodes of each
        selector.

        Raises:
            OnnxsmithError: `edit/no-match` with the nearest names.
        """
        if isinstance(selector, list | tuple) and selector:
            return list(dict.fromkeys(node for one in selector for node in self.nodes(one)))
        if isinstance(selector, NodeHandle | ir.Node):
            return [self._own(selector if isinstance(selector, ir.Node) else selector.node)]
        found = [node for node in walk.all_nodes(self._model) if is_match(node, _conditions(selector))]
        if not found:
            raise self._no_node(selector)
        return found

    def tensor(self, selector: Any, takes: Takes | None = None) -> ir.Value:
        """Returns the one tensor that a selector means: a name, or `{producer = NODE, output = 0}`.

        Raises:
            OnnxsmithError: `edit/no-match` with the nearest names, `edit/many-matches` with the matches.
        """
        found = self.tensors(selector, takes)
        if len(found) > 1:
            raise _many(
                selector,
                takes.what if takes else "tensor",
                [place.name for place in self._places() if place.value in found],
            )
        return found[0]

    def tensors(self, selector: Any, takes: Takes | None = None) -> list[ir.Value]:
        """Returns all tensors that a selector means, at least one tensor. A list of selectors means the tensors of each
        selector.

        Raises:
            OnnxsmithError: `edit/no-match` with the nearest names; `edit/selector`.
        """
        if isinstance(selector, list | tuple) and selector:
            return list(dict.fromkeys(value for one in selector for value in self.tensors(one, takes)))
        if isinstance(selector, TensorHandle):
            return [selector.value]
        if isinstance(selector, ir.Value):
            return [selector]
        if isinstance(selector, Mapping):
            return [self._result(selector)]
        if not isinstance(selector, str):
            raise problem(
                "edit/selector",
                f"{selector!r} names no tensor",
                fix=f"write the name of the tensor in quotes, or {shown_table({'producer': self._some_node()})}",
            )
        places = self._places()
        exact = [place.value for place in places if selector in (place.name, place.value.name)]
        if exact:
            return exact
        suited = [place for place in places if takes is None or takes.includes(place.value)]
        if _is_pattern(selector):
            found = [place.value for place in suited if name_patterns.fits(place.name, selector)]
            if found:
                return found
        raise self._no_tensor(selector, places, suited, takes.what if takes else "named tensor")

    def _no_tensor(
        self, selector: str, places: list[tensor_paths.Place], suited: list[tensor_paths.Place], what: str
    ) -> OnnxsmithError:
        inside = function_tensor_refusal(self._model, selector) if not _is_pattern(selector) else None
        if inside is not None:
            return inside
        others = [place.name for place in places if name_patterns.fits(place.name, selector)]
        names = [place.name for place in suited]
        of_nodes = self._results_of(selector, suited)
        near = tensor_paths.near(selector.replace("*", ""), names) or (names if len(names) <= _SHOWN else [])
        if of_nodes:
            fix = f"{selector!r} is the name of a node: write the name of its result, {' or '.join(of_nodes)}"
        elif self._is_dimension(selector):
            fix = (
                f"{selector!r} is a dimension: to rename it, `onnxsmith rename MODEL {pasted(selector)} NEW --kind dim`"
                ", with the new name in the place of NEW"
            )
        elif near:
            fix = f"the nearest names: {listed(near)}"
        else:
            fix = "`onnxsmith inspect MODEL --nodes` lists the inputs and results of all nodes"
        return problem(
            "edit/no-match",
            f"{selector!r} matches no {what}" if others else f"no tensor is called {selector!r}",
            why=f"it matches {first_few(others, _SHOWN)}"
            if others
            else f"the model has {several(len(names), what, plural(what))}",
            fix=fix,
        )

    def _is_dimension(self, name: str) -> bool:
        shapes = (value.shape for value in walk.values(self._model) if value.shape is not None)
        return any(isinstance(dim, ir.SymbolicDim) and dim.value == name for shape in shapes for dim in shape)

    def _results_of(self, selector: str, suited: list[tensor_paths.Place]) -> list[str]:
        """Returns the names of the tensors that nodes of this name give."""
        results = {value for node in walk.all_nodes(self._model) if node.name == selector for value in node.outputs}
        return [place.name for place in suited if place.value in results]

    def _result(self, selector: Mapping[str, Any]) -> ir.Value:
        unknown = [key for key in selector if key not in ("producer", "output")]
        if "producer" not in selector or unknown:
            raise problem(
                "edit/selector",
                f"a tensor's table has the keys producer and output, not {', '.join(map(str, selector))}",
                fix=f"write {shown_table({'producer': self._some_node()})}, or the tensor's name",
            )
        node, index = self.node(selector["producer"]), selector.get("output", 0)
        if not isinstance(index, int) or not 0 <= index < len(node.outputs):
            raise problem(
                "edit/no-match",
                f"{walk.node_label(node)} has no output {index!r}",
                why=f"{node.op_type} gives {several(len(node.outputs), 'output')}",
                fix="count the outputs from 0",
            )
        return node.outputs[index]

    def _some_node(self) -> str:
        """Returns the name of a node, as an example."""
        return next((walk.node_label(node) for node in walk.all_nodes(self._model)), "relu_1")

    def _own(self, node: ir.Node) -> ir.Node:
        if node.graph is None:
            raise problem(
                "edit/no-match",
                f"{walk.node_label(node)} was removed by an earlier step",
                fix="select the node before the step that removes it",
            )
        return node

    def _places(self) -> list[tensor_paths.Place]:
        return tensor_paths.places(self._model)

    def _no_node(self, selector: Any) -> OnnxsmithError:
        conditions = _conditions(selector)
        nodes = list(walk.all_nodes(self._model))
        misses = []
        for left_out in conditions if len(conditions) > 1 else ():
            rest = {key: value for key, value in conditions.items() if key != left_out}
            near = [walk.node_label(node) for node in nodes if is_match(node, rest)]
            if near:
                misses.append(f"without {left_out}: {first_few(near, _SHOWN)}")
        if len(conditions) == 1 and not misses:
            key, wanted = next(iter(conditions.items()))
            near = tensor_paths.near(str(wanted), sorted({_said(node, key) for node in nodes} - {""}))
            misses += [f"write {key} = {' or '.join(_quoted(near))}"] if near else []
        return problem(
            "edit/no-match",
            f"no node matches {shown(selector)}",
            why=f"the model has {several(len(nodes), 'node')}",
            fix="; ".join(misses) or "`onnxsmith inspect MODEL --nodes` lists the nodes",
        )


def _quoted(texts: Iterable[str]) -> list[str]:
    """Returns the texts as a patch file has them."""
    return [f'"{one}"' for one in texts]


def _said(node: ir.Node, key: str) -> str:
    """Returns the text of a node that a condition compares."""
    if key == "op":
        return walk.op_name(node)
    return provenance.of(node).module if key == "module" else walk.node_label(node)


def is_match(node: ir.Node, conditions: Mapping[str, Any]) -> bool:
    """Whether a node meets all conditions of a table."""
    return all(_meets(node, key, wanted) for key, wanted in conditions.items())


def shown(selector: Any) -> str:
    """Returns a selector as text."""
    if isinstance(selector, Mapping):
        return "{" + ", ".join(f"{key} = {value!r}" for key, value in selector.items()) + "}"
    return repr(selector)


def shown_table(table: Mapping[str, str]) -> str:
    """Returns a table in the form of a patch file."""
    return "{ " + ", ".join(f'{key} = "{value}"' for key, value in table.items()) + " }"


def _conditions(selector: Any) -> Mapping[str, Any]:
    if isinstance(selector, str):
        return {"name": selector}
    if isinstance(selector, Mapping) and selector and all(key in CONDITIONS for key in selector):
        return selector
    wrong = [str(key) for key in selector if key not in CONDITIONS] if isinstance(selector, Mapping) else []
    raise problem(
        "edit/selector",
        f"{shown(selector)} selects no nodes" + (f": {', '.join(wrong)} is no condition" if wrong else ""),
        why=f"a selector is a name, or a table of {', '.join(CONDITIONS)}",
        fix="; or ".join(_corrected(selector)) or 'write "conv_1", "layer1/*", or { op = "Relu", module = "layer1.*" }',
    )


def _corrected(selector: Any) -> list[str]:
    """Returns the conditions that were probably meant."""
    if not isinstance(selector, Mapping):
        return []
    near = {str(key): near_names(str(key), CONDITIONS, 1, 0.5) for key in selector}
    return [f"write {meant[0]} in place of {key}" for key, meant in near.items() if meant and key not in CONDITIONS]


def _meets(node: ir.Node, key: str, wanted: Any) -> bool:
    match key:
        case "name":
            return fits(node.name or "", wanted) or (not node.name and fits(walk.node_label(node), wanted))
        case "op":
            return fits(walk.op_name(node), wanted)
        case "module":
            return fits(provenance.of(node).module or "", wanted)
        case "reads":
            return any(value is not None and fits(value.name or "", wanted) for value in node.inputs)
        case "gives":
            return any(fits(value.name or "", wanted) for value in node.outputs)
        case _:
            return isinstance(wanted, Mapping) and all(
                name in node.attributes and _equal(node.attributes[name], value) for name, value in wanted.items()
            )


def _equal(attribute: ir.Attr, wanted: Any) -> bool:
    """Whether an attribute has the value that a user wrote. Here 1 equals 1.0; `attribute_keys` distinguishes them."""
    if attribute.is_ref():
        return False
    value = attribute.value
    given: Any = list(value) if isinstance(value, tuple) else value
    return bool(given == (list(wanted) if isinstance(wanted, tuple) else wanted))


def fits(name: str, wanted: Any) -> bool:
    """Whether a name equals the wanted name, or matches it as a pattern with `*`."""
    return name == wanted or (isinstance(wanted, str) and _is_pattern(wanted) and name_patterns.fits(name, wanted))


def _is_pattern(text: str) -> bool:
    return any(character in text for character in "*?[")


def _many(selector: Any, what: str, names: list[str]) -> OnnxsmithError:
    return problem(
        "edit/many-matches",
        f"{shown(selector)} matches {several(len(names), what)}, and this step needs exactly one",
        why=f"it matches {first_few(names, _SHOWN)}",
        fix=f"name one of them: {first_few(list(map(repr, names)), _SHOWN, ' or ')}",
    )


def all_tensors(model: ir.Model) -> Iterator[tensor_paths.Place]:
    """Yields every named tensor outside functions."""
    yield from tensor_paths.places(model)


# Tensors of local functions: selectors find the nodes there, not the tensors. What to do instead.


def function_tensor_refusal(model: ir.Model, name: str) -> OnnxsmithError | None:
    """Returns the error for the name of a tensor inside a local function; None if no function has the name."""
    for (domain, called, _), function in model.functions.items():
        inside = f"{domain}::{called}"
        for graph in (function.graph, *walk.nested(function)):
            if any(value.name == name for value in (*graph.inputs, *(v for node in graph for v in node.outputs))):
                node = next((node for node in graph if any(value.name == name for value in node.outputs)), None)
                return problem(
                    "edit/no-match",
                    f"the tensor {name!r} is inside the local function {inside}",
                    why="each call of a function has its own tensors, so inside a function a selector can find "
                    "only nodes",
                    fix=_instead(node, name, inside),
                )
    return None


def _instead(node: ir.Node | None, name: str, function: str) -> str:
    inline = f'inline the function first: do = "inline", function = "{function}"'
    if node is None:
        return inline
    held = next(iter(node.attributes.values()), None)
    if node.op_type == "Constant" and held is not None and not held.is_ref() and isinstance(held.value, int | float):
        return (
            f'to change the constant in every call: do = "set", node = {{ gives = "{name}" }}, '
            f"attributes = {{ {held.name} = {held.value:.9g} }} with the new number; for one call, {inline}"
        )
    return f'select the node that computes it: {{ gives = "{name}" }}; or {inline}'
