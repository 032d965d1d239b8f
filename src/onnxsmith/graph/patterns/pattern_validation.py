"""Checks a new pattern. Raises at once for errors because of which the pattern would never match."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from onnxsmith.base.near_names import near_names
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.graph.patterns.pattern import (
    Either,
    Number,
    Numbers,
    Operand,
    Pattern,
    PatternNode,
    Rest,
    Result,
    Variable,
)
from onnxsmith.graph.structure import schema

DEEPEST = 100
"""Limits the operators between a result of a pattern and its variables. A choice: far above any pattern that a person
writes."""

RESERVED = frozenset({"_", "true", "false", "inf", "nan"})
"""Lists words of pattern text that cannot be names of variables."""


def checked(pattern: Pattern, where: str, *, is_replacement: bool = False) -> Pattern:
    """Checks and returns the pattern. A replacement may have variables as results, and unread variables.

    Raises:
        OnnxsmithError: `pattern/invalid`, `pattern/unconnected` or `pattern/attribute`.
    """
    if not pattern.outputs or not (pattern.nodes or is_replacement):
        raise invalid("the pattern has no operator", where, "call an operator, and return its result: op.Relu(x)")
    for output in pattern.outputs:
        for choice in choices(output):
            if not isinstance(choice, Result) and not (is_replacement and isinstance(choice, Variable)):
                raise invalid(
                    "a result of the pattern is not the result of an operator",
                    where,
                    "return what op.NAME(…) gives; a variable alone matches every value",
                )
    _check_names(pattern, where, is_replacement)
    for node in pattern.nodes:
        _check_node(node, where)
    if _depth(pattern) > DEEPEST:
        raise invalid(f"the pattern is more than {DEEPEST} operators deep", where, "search for a part of the pattern")
    if not is_replacement:
        _check_connected(pattern, where)
    return pattern


def invalid(what: str, where: str, fix: str) -> OnnxsmithError:
    """Makes the error for an invalid pattern."""
    return problem("pattern/invalid", what, where=where, fix=fix)


def choices(operand: Operand) -> Iterator[Operand]:
    """Yields the operand, or the alternatives if it is a choice, at any depth."""
    if isinstance(operand, Either):
        for one in operand.choices:
            yield from choices(one)
    else:
        yield operand


def items(pattern: Pattern, operand: Operand) -> set[str | int]:
    """Returns the names of the variables and the indices of the nodes that an operand depends on."""
    found: set[str | int] = set()
    queue = [operand]
    while queue:
        for one in choices(queue.pop()):
            if isinstance(one, Variable):
                found.add(one.name)
            elif isinstance(one, Result) and one.node not in found:
                found.add(one.node)
                queue += pattern.nodes[one.node].inputs
    return found


def _check_names(pattern: Pattern, where: str, is_replacement: bool) -> None:
    used: set[str | int] = set().union(*(items(pattern, output) for output in pattern.outputs))
    names: set[str] = set()
    for variable in pattern.variables:
        if variable.name in RESERVED or not variable.name.isidentifier():
            raise invalid(f"{variable.name!r} cannot name a variable", where, "give it another name")
        if variable.name in names:
            raise invalid(f"{variable.name} is declared as two kinds of variable", where, "give one another name")
        if variable.name not in used and not is_replacement:
            raise invalid(f"the variable {variable.name} is not used", where, f"leave {variable.name} out")
        names.add(variable.name)
    for index, node in enumerate(pattern.nodes):
        if index not in used:
            raise invalid(f"the result of {node.title} is neither read nor returned", where, "return it, too")


def _check_node(node: PatternNode, where: str) -> None:
    for index, operand in enumerate(node.inputs):
        if isinstance(operand, Rest) and index != len(node.inputs) - 1:
            raise invalid(f"`...` of {node.title} is not its last operand", where, "write `...` last")
        if isinstance(operand, Either) and any(isinstance(one, Rest) for one in choices(operand)):
            raise invalid(f"`...` of {node.title} is in a choice", where, "write `...` as the last operand")
        for one in choices(operand):
            if isinstance(one, Number) and not 0 <= one.rel < 1:
                raise invalid(f"rel={one.rel} of near() is not a share", where, "write a number such as rel=1e-6")
            if isinstance(one, Numbers) and not one.values:
                raise invalid(
                    f"{node.title} reads an empty list without a dtype", where, "write np.array([], np.int64)"
                )
    for name, _ in node.attributes:
        known = _known(node.op_type, node.domain)
        if known and name not in known:
            near = near_names(name, known, 1)
            raise problem(
                "pattern/attribute",
                f"{node.title} has no attribute {name!r} in any version",
                where=where,
                why=f"it has {', '.join(sorted(known))}",
                fix=f"write {near[0]}" if near else f"leave {name} out",
            )


@cache
def _known(op_type: str, domain: str) -> frozenset[str]:
    """Returns the names of all attributes and operands that the operator has in any version; empty without a schema."""
    found: set[str] = set()
    for version in schema.versions(op_type, domain):
        one = schema.find(op_type, domain, version)
        if one is not None:
            found |= {*one.attributes, *(formal.name for formal in one.inputs)}
    return frozenset(found)


def _depth(pattern: Pattern) -> int:
    depths: list[int] = []
    for node in pattern.nodes:
        inner = [depths[one.node] for operand in node.inputs for one in choices(operand) if isinstance(one, Result)]
        depths.append(1 + max(inner, default=0))
    return max(depths, default=0)


def _check_connected(pattern: Pattern, where: str) -> None:
    seen = items(pattern, pattern.outputs[0])
    for output in pattern.outputs[1:]:
        for choice in choices(output):
            if not items(pattern, choice) & seen:
                raise problem(
                    "pattern/unconnected",
                    "two results of the pattern share no variable and no operator",
                    where=where,
                    why="then any place that matches one result would match with any place that matches the other",
                    fix="use one variable in both results, or search for two patterns",
                )
        seen |= items(pattern, output)
