"""Finds the names that statements bind, and those that they may read before they bind them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence


def names(nodes: Sequence[ast.AST]) -> list[ast.Name]:
    """Returns the names in these nodes, without those that a patch made."""
    found = (node for one in nodes for node in ast.walk(one) if isinstance(node, ast.Name))
    return [node for node in found if hasattr(node, "ctx")]


def stored(body: Sequence[ast.stmt]) -> Iterator[str]:
    """Yields the names that the statements bind, without the variables of comprehensions."""
    inner = {
        id(name)
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.comprehension)
        for name in ast.walk(node.target)
    }
    for one in names(body):
        if isinstance(one.ctx, ast.Store) and id(one) not in inner:
            yield one.id


def following(body: Sequence[ast.stmt], first: Iterable[str]) -> frozenset[str]:
    """Returns the `first` names, and those that the statements compute from them."""
    found = set(first)
    parts = [node for statement in body for node in ast.walk(statement)]
    # repeats until no name is added; each round but the last adds a name
    for _ in parts:
        before = len(found)
        for node in parts:
            match node:
                case ast.Assign(targets=targets, value=value):
                    held: list[ast.AST] = [*targets]
                case ast.AugAssign(target=target, value=value) | ast.For(target=target, iter=value):
                    held = [target]
                case _:
                    continue
            if any(one.id in found for one in names([value])):
                found |= {one.id for one in names(held) if isinstance(one.ctx, ast.Store)}
        if len(found) == before:
            break
    return frozenset(found)


def roots(nodes: Iterable[ast.expr]) -> Iterator[str]:
    """Yields the names at the start of `name[…]`, `name.narrow(…)`, `name.T[…]`."""
    for node in nodes:
        one = node
        while not isinstance(one, ast.Name):
            match one:
                case ast.Subscript(value=inner) | ast.Attribute(value=inner) | ast.Call(func=inner):
                    one = inner
                case _:
                    break
        if isinstance(one, ast.Name):
            yield one.id


def reads_first(body: Sequence[ast.stmt], name: str) -> bool:
    """Whether the statements may read the name before they bind it."""
    return _reads(body, name)[0]


def _reads(body: Sequence[ast.stmt], name: str) -> tuple[bool, bool]:
    """Returns whether the name may be read before it is bound, and whether it is certainly bound afterwards."""
    for statement in body:
        match statement:
            case ast.If(test=test, body=yes, orelse=no):
                if _loads([test], name):
                    return True, False
                sides = [_reads(yes, name), _reads(no, name)]
                if any(reads for reads, _ in sides):
                    return True, False
                if all(binds for _, binds in sides):
                    return False, True
            case ast.For() | ast.While():
                # a loop may run no turn, so it binds no name for certain
                header = [statement.iter] if isinstance(statement, ast.For) else [statement.test]
                is_target = isinstance(statement, ast.For) and any(one.id == name for one in names([statement.target]))
                if _loads(header, name) or (not is_target and _reads(statement.body, name)[0]):
                    return True, False
                if _reads(statement.orelse, name)[0]:
                    return True, False
            case ast.AugAssign(target=target) if name in roots([target]):
                return True, False
            case _:
                if _loads([statement], name):
                    return True, False
                if name in stored([statement]) and isinstance(statement, ast.Assign | ast.AnnAssign | ast.With):
                    return False, True
    return False, False


def _loads(nodes: Sequence[ast.AST], name: str) -> bool:
    inner = {
        id(one)
        for node in nodes
        for part in ast.walk(node)
        if isinstance(part, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp)
        and name in {held.id for gen in part.generators for held in ast.walk(gen.target) if isinstance(held, ast.Name)}
        for one in ast.walk(part)
    }
    return any(one.id == name and isinstance(one.ctx, ast.Load) and id(one) not in inner for one in names(nodes))
