"""Tells what the names of a Python module stand for. The other tools here that read syntax trees share it."""

from __future__ import annotations

import ast
from collections.abc import Callable


def imported_names(tree: ast.AST, wanted: Callable[[str], bool] = lambda module: True) -> dict[str, str]:
    """Maps each name that an import defines to its full name. `wanted` chooses modules."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                if wanted(one.name):
                    first = one.name.partition(".")[0]
                    found[one.asname or first] = one.name if one.asname else first
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level and wanted(node.module):
            found.update({one.asname or one.name: f"{node.module}.{one.name}" for one in node.names})
    return found


def dotted_name(node: ast.AST) -> str:
    """Returns `a.b.c` for an attribute of a name, and "" for any other expression."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = dotted_name(node.value)
        return f"{before}.{node.attr}" if before else ""
    return ""
