"""Turns replacements of single nodes into text that can be pasted over the user's lines."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onnxsmith.exporter.lint.base import Code, New, Remark


@dataclass
class Patch:
    """A replacement of the lines `first` to `last` of the file (from 1, both included) by `text`."""

    statements: list[ast.stmt]
    swaps: dict[ast.AST, New] = field(default_factory=dict)

    @property
    def first(self) -> int:
        """The first line that is replaced. The decorators of a function stay."""
        return self.statements[0].lineno

    @property
    def last(self) -> int:
        """The last line that is replaced."""
        return max(statement.end_lineno or statement.lineno for statement in self.statements)

    @property
    def text(self) -> str:
        """The new lines, indented as the old ones."""
        fresh: list[ast.stmt] = []
        for statement in self.statements:
            made = rebuilt(statement, self.swaps)
            fresh += made if isinstance(made, list) else [made]  # type: ignore[list-item]  # a statement stays one
        # the replaced lines begin at `def`, so the decorators are still in the file
        if isinstance(fresh[0] if fresh else None, ast.FunctionDef):
            fresh[0].decorator_list = []  # type: ignore[attr-defined]
        margin = " " * self.statements[0].col_offset
        lines = "\n".join(ast.unparse(ast.fix_missing_locations(one)) for one in fresh or [ast.Pass()]).splitlines()
        return "\n".join(f"{margin}{line}" if line else line for line in lines)

    def holds(self, other: Patch) -> bool:
        """Whether the lines of the other patch lie within the lines of this patch."""
        return self.first <= other.first and other.last <= self.last


def patches(remarks: Sequence[Remark], code: Code) -> dict[int, Patch]:
    """Returns the patches of remarks with `swaps`, by the remark's id(). Remarks with overlapping lines share a
    patch."""
    own = {id(r): Patch(_statements(r, code), dict(r.swaps)) for r in remarks if r.swaps}
    ordered = sorted(own.values(), key=lambda patch: (patch.first, -patch.last))
    kept: list[Patch] = []
    for patch in ordered:
        outer = next((one for one in kept if one.holds(patch)), None)
        if outer is None:
            kept.append(patch)
        else:
            outer.swaps = {**patch.swaps, **outer.swaps, **_both(patch.swaps, outer.swaps)}
    return {id(r): next(one for one in kept if one.holds(own[id(r)])) for r in remarks if id(r) in own}


def _both(one: Mapping[ast.AST, New], other: Mapping[ast.AST, New]) -> dict[ast.AST, New]:
    """Merges the parameters that both patches add to a function."""
    found: dict[ast.AST, New] = {}
    for node in one.keys() & other.keys():
        a, b = one[node], other[node]
        if isinstance(a, ast.arguments) and isinstance(b, ast.arguments):
            made = copy.copy(a)
            known = {arg.arg for arg in (*a.args, *a.kwonlyargs)}
            made.args = [*a.args, *(arg for arg in b.args if arg.arg not in known)]
            more = [arg for arg in b.kwonlyargs if arg.arg not in known]
            made.kwonlyargs, made.kw_defaults = [*a.kwonlyargs, *more], [*a.kw_defaults, *[None for _ in more]]
            found[node] = made
    return found


def _statements(remark: Remark, code: Code) -> list[ast.stmt]:
    found = {id(s): s for s in (code.statement(node) for node in remark.swaps)}
    statements = sorted(found.values(), key=lambda s: s.lineno)
    top = statements[0]
    last = max(s.end_lineno or 0 for s in statements)
    if (top.end_lineno or 0) >= last:
        return [top]
    block = code.block(top)
    return [s for s in block[block.index(top) :] if s.lineno <= last]


def rebuilt(node: ast.AST, swaps: Mapping[ast.AST, New]) -> ast.AST | list[ast.stmt]:
    """Copies the node with all swaps applied. A new node may contain old nodes, which are swapped too."""
    if node in swaps:
        rest = {old: new for old, new in swaps.items() if old is not node}
        new = swaps[node]
        if isinstance(new, list):
            return _all(new, rest)
        return rebuilt(new, rest)
    made = copy.copy(node)
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            setattr(made, name, rebuilt(value, swaps))
        elif isinstance(value, list):
            setattr(made, name, _all(value, swaps) or ([ast.Pass()] if name == "body" and value else []))
    return made


def _all(nodes: list, swaps: Mapping[ast.AST, New]) -> list:  # type: ignore[type-arg]
    found: list[ast.AST] = []
    for node in nodes:
        made = rebuilt(node, swaps) if isinstance(node, ast.AST) else node
        found += made if isinstance(made, list) else [made]
    return found
