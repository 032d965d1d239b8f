"""Replaces matches of a pattern one by one. The cost of a match does not grow with the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.editor.edited_model import Work, depending, graph_of
from onnxsmith.editor.node_placement import OTHER_OPSET
from onnxsmith.graph.operators.operator_methods import Operators
from onnxsmith.graph.operators.tensor import Tensor
from onnxsmith.graph.patterns.match import Match
from onnxsmith.graph.patterns.pattern import (
    Absent,
    AttributeVariable,
    Exact,
    Number,
    Numbers,
    Operand,
    Pattern,
    Result,
    Variable,
    Wanted,
)
from onnxsmith.graph.structure import captures, walk
from onnxsmith.graph.surgery.node_insertion import release


def replace_all(work: Work, matches: Sequence[Match], by: Pattern) -> list[ir.Value]:
    """Replaces the results of all matches, and removes the nodes that no output needs any more. Returns the new
    results.

    Raises:
        OnnxsmithError: `edit/replacement`, `edit/cycle`, `build/…`.
    """
    work.infer()  # once: new nodes are typed as they are made
    replacing = _Replacing(work, by)
    for match in matches:
        replacing.replace(match)
    return list(dict.fromkeys(replacing.replaced.values()))


class _Replacing:
    """Holds the state between two matches. `replaced` maps old results to new results. `_places` are the positions of
    nodes. A new node gets the position of the last result that it replaces, so that no node depends on a node with a
    higher position."""

    def __init__(self, work: Work, by: Pattern) -> None:
        self._work, self._by = work, by
        self.replaced: dict[ir.Value, ir.Value] = {}
        self._told = "a match"
        self._make = Operators(work.model, blame=lambda: f"the replacement of {self._told}", other_opset=OTHER_OPSET)
        self._names = work.names
        several = len(by.outputs) > 1
        self._places = {node: at for at, node in enumerate(walk.all_nodes(work.model))} if several else {}

    def replace(self, match: Match) -> None:
        """Replaces the results of one match."""
        self._told = ", ".join(walk.node_label(node) for node in match.removable[:2])
        read = {*match.bindings, *(one.name for one in self._by.variables)}
        known = {name: value for name, value in match.values.items() if name in read and value not in match.outputs}
        bound = {name: self._newest(value) for name, value in known.items()}
        self._refuse_untaken(match, bound)
        if len(match.outputs) > 1:
            self._refuse_dependent(match, bound)
        self._make.at(graph_of(match.node), match.node)
        begun = len(self._make.made)
        new = instantiated(self._by, self._make, bound, match.attributes)
        last = max(self._place(value) for value in match.outputs)
        for old, value in zip(match.outputs, new, strict=True):
            if value in bound.values():  # a variable is no new value, and an output needs its own name
                if old.is_graph_output():
                    value = self._make.Identity(value).value
            else:
                value.type = value.type or old.type
                if value.shape is None:  # the operator has no schema; a graph output has to declare its shape
                    value.shape = old.shape
            self._take_place(old, value, is_new=value not in bound.values())
            self.replaced[old] = value
            if value.producer() is not None:
                self._places.setdefault(value.producer(), last)  # type: ignore[arg-type]
        makers = [(old.producer(), value.producer()) for old, value in zip(match.outputs, new, strict=True)]
        for node in reversed(match.removable):
            if not any(one.uses() or one.is_graph_output() for one in node.outputs) and node.graph is not None:
                operands = captures.reads(node)
                captures.release(node)
                node.graph.remove(node, safe=True)
                for one in operands:
                    release(one)
        made = self._make.made[begun:]
        for before, after in makers:
            if before is not None and before.graph is None and before.name and after is not None and after in made:
                after.name = before.name

    def _take_place(self, old: ir.Value, new: ir.Value, *, is_new: bool) -> None:
        """Lets all readers read the new value. A graph output keeps its name, and a new value takes over the name."""
        was_output, name = old.is_graph_output(), old.name
        old.replace_all_uses_with(new, replace_graph_outputs=True)
        if name and (was_output or is_new):
            old.name = self._names.free(f"{name}_replaced")
            new.name = name

    def _newest(self, value: ir.Value) -> ir.Value:
        while value in self.replaced:
            value = self.replaced[value]
        return value

    def _place(self, value: ir.Value) -> int:
        node = value.producer()
        return self._places.get(node, 0) if node is not None else -1

    def _refuse_untaken(self, match: Match, bound: Mapping[str, ir.Value]) -> None:
        read = {one.name for one in self._by.variables}
        missing = [one.name for one in match.pattern.variables if one.name in read and one.name not in bound]
        if missing:
            raise problem(
                "edit/replacement",
                f"the replacement `by` reads {', '.join(missing)}, which this match does not have",
                where=walk.node_label(match.node),
                why="the variable belongs to an alternative of `find` that this match does not use",
                fix="write one replacement for each alternative",
            )

    def _refuse_dependent(self, match: Match, bound: Mapping[str, ir.Value]) -> None:
        first = min(self._place(value) for value in match.outputs)
        if all(self._place(value) < first for value in bound.values()):
            return
        later = depending(self._work.model, set(match.outputs))
        wrong = [name for name, value in bound.items() if value in later]
        if wrong:
            raise problem(
                "edit/cycle",
                f"{', '.join(wrong)} is computed from a result of the pattern",
                where=walk.node_label(match.node),
                why="the replacement would read its own result",
                fix="extend the pattern to the nodes between the result and this tensor",
            )


# Makes the nodes that a pattern describes.


def instantiated(
    pattern: Pattern, make: Operators, bound: Mapping[str, ir.Value], attributes: Mapping[str, ir.Attr | None]
) -> list[ir.Value]:
    """Makes the nodes of a pattern with values in place of its variables, and returns its results.

    Raises:
        OnnxsmithError: `edit/replacement` for a variable without a value, or for a part with several possible meanings;
            `build/…` for operands that do not fit.
    """
    made: list[tuple[Any, ...]] = []

    def operand(one: Operand) -> Any:
        match one:
            case None:
                return None
            case Variable(name=name):
                if name not in bound:
                    raise _unknown(name, bound)
                return make.tensor(bound[name])
            case Number(value=value):
                return value
            case Numbers(values=values):
                return list(values)
            case Exact():
                return one.array
            case Result(node=index, output=output):
                return made[index][output]
            case _:
                raise _open(type(one).__name__)

    def attribute(name: str, wanted: Wanted) -> Any:
        match wanted:
            case AttributeVariable(name=variable):
                if variable not in attributes:
                    raise _unknown(f"?{variable}", attributes)
                held = attributes[variable]
                if held is not None and held.is_ref():  # it refers to an attribute of the function around the match
                    return ir.RefAttr(name, held.ref_attr_name or "", held.type)
                return held.value if held is not None else None
            case Absent():
                return None
            case Number(value=value):
                return value
            case Exact():
                return wanted.array
            case tuple():
                return list(wanted)
            case _:
                return wanted

    for node in pattern.nodes:
        if not node.op_type:
            raise _open("any")
        given = {name: attribute(name, wanted) for name, wanted in node.attributes}
        title = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
        results = make.node(title, *[operand(one) for one in node.inputs], outputs=len(node.outputs), **given)
        made.append(results if isinstance(results, tuple) else (results,))
    return [_value(operand(one)) for one in pattern.outputs]


def _value(given: Any) -> ir.Value:
    if isinstance(given, Tensor):
        return given.value
    raise _open("a constant as a result")


def _unknown(name: str, known: Mapping[str, Any]) -> OnnxsmithError:
    return problem(
        "edit/replacement",
        f"the replacement `by` reads {name}, which `find` does not define",
        why=f"`find` defines {', '.join(known) or 'no variables'}",
        fix=(f"write {' or '.join(known)} in place of {name}; or " if known else "")
        + "write a number, such as 0.0; or name the tensor in `find`",
    )


def _open(what: str) -> OnnxsmithError:
    return problem(
        "edit/replacement",
        f"the replacement `by` cannot have {what}",
        why="the replacement has to say exactly which nodes to make",
        fix="write operators, variables of find and constants",
    )
