"""Refuses an export whose target or opset cannot exist, before torch and the user's file are imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from onnxsmith.base import user_files
from onnxsmith.exporter import factory
from onnxsmith.graph.structure.opset_range import refuse_unknown


def refuse(target: str, opset: int | None) -> None:
    """Raises what is known from the texts alone.

    Raises:
        OnnxsmithError: `export/opset` for an opset that the installed onnx does not write; `export/target-factory` if
            the Python file of the target defines no such name.
    """
    if opset is not None:
        refuse_unknown(opset)
    place, _, name = target.rpartition(":")
    path = Path(place)
    if not place.endswith(".py") or not path.is_file():
        return
    try:
        tree = ast.parse(user_files.read_bytes(path))
    except (SyntaxError, ValueError, OSError):
        return  # the import says what is wrong, with the line
    names = list(_defined(tree))
    if name.partition(".")[0] in names or _ANY in names:
        return
    own = [one for one in dict.fromkeys(names) if not one.startswith("_")]
    raise factory.undefined(path.stem, name, target, own)


_ANY = "*"
"""Stands for names that the text does not tell: `from module import *`, `globals()`, `exec`, `__getattr__`."""


def _defined(tree: ast.AST) -> Iterator[str]:
    """Yields the names that a module may define, also inside its if, try, with and for statements; functions and
    classes first."""
    nodes = list(_of_module(tree))
    yield from (node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef))
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and node.name == "__getattr__":
            yield _ANY
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (one.asname or one.name.partition(".")[0] for one in node.names)
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                yield node.id
            elif node.id in ("globals", "locals", "vars", "exec", "setattr"):
                yield _ANY


def _of_module(tree: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes of a module that do not belong to a function or a class in it."""
    for node in ast.iter_child_nodes(tree):
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from _of_module(node)
