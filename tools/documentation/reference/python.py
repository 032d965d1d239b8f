"""Writes the page of the functions and classes of Python, from their source: torch need not be installed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import onnxsmith
from tools.documentation.markdown import code, escaped, fenced, from_docstring, table
from tools.documentation.reference.problems import linked

_SOURCE = Path(onnxsmith.__file__).parent
_FACES = {
    "onnxsmith": "__init__.py",
    "onnxsmith.baseline": "baseline.py",
    "onnxsmith.testing": "testing/__init__.py",
    "onnxsmith.compat": "compat/__init__.py",
}
"""Lists the modules that users import from."""
_HEAD = """\
# Python

This page lists the public functions and classes of onnxsmith, with their arguments.
[What is public](../stability.md) says how they may change.
"""
_LONGEST = 88
"""Limits the characters of a signature on node line."""

Definition = ast.FunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Name:
    """A public name: the module that users import it from, its definition, and the file of that."""

    face: str
    name: str
    definition: Definition
    file: Path


def pages() -> dict[str, str]:
    """Returns the page by its path on the site."""
    parts = [_HEAD.strip()]
    for face in _FACES:
        parts.append(f"## {face}")
        parts += [_entry(name) for name in names(face)]
    return {"reference/python.md": linked("\n\n".join(parts), "problems/") + "\n"}


def names(face: str) -> Iterator[Name]:
    """Yields the public names of a module, in the order of the alphabet, but constants such as the version."""
    tree = _tree(_SOURCE / _FACES[face])
    homes = {
        alias.name: node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    defined = _defined(tree)
    for name in sorted(_listed(tree) or _inside(tree), key=str.lower):
        if name in defined:
            yield Name(face, name, defined[name], _SOURCE / _FACES[face])
        elif homes.get(name, "_version").rpartition(".")[2] != "_version":
            file = _file(str(homes[name]))
            yield Name(face, name, _defined(_tree(file))[name], file)


def _file(module: str) -> Path:
    return _SOURCE / f"{module.removeprefix('onnxsmith.').replace('.', '/')}.py"


def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def _defined(tree: ast.Module) -> dict[str, Definition]:
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def _listed(tree: ast.Module) -> list[str]:
    """Returns the names in `__all__`."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def _inside(tree: ast.Module) -> list[str]:
    """Returns the names that a module without `__all__` imports again under their own name."""
    imports = [alias for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names]
    return [alias.name for alias in imports if alias.asname == alias.name]


def _entry(name: Name) -> str:
    definition = name.definition
    anchor = name.name if name.face == "onnxsmith" else f"{name.face.rpartition('.')[2]}-{name.name}"
    parts = [f"### {escaped(f'{name.face}.{name.name}')} {{ #{anchor} }}"]
    if isinstance(definition, ast.FunctionDef):
        written = _WithNumbers(name.file).visit(definition)
        parts.append(fenced(_signature(name.name, written), "python"))
    parts.append(from_docstring(ast.get_docstring(definition) or "", "python"))
    if isinstance(definition, ast.ClassDef):
        parts += _members(definition)
    return "\n\n".join(part for part in parts if part)


class _WithNumbers(ast.NodeTransformer):
    """Puts the number in place of each constant of a module that is the default of an argument."""

    def __init__(self, file: Path) -> None:
        self.tree = _tree(file)

    def visit_arguments(self, node: ast.arguments) -> ast.arguments:
        node.defaults = [self._number(default) for default in node.defaults]
        node.kw_defaults = [default and self._number(default) for default in node.kw_defaults]
        return node

    def _number(self, default: ast.expr) -> ast.expr:
        if not isinstance(default, ast.Name):
            return default
        homes = [node for node in self.tree.body if isinstance(node, ast.ImportFrom)]
        home = next((node for node in homes if default.id in [alias.name for alias in node.names]), None)
        tree = _tree(_file(str(home.module))) if home else self.tree
        values = {ast.unparse(node.targets[0]): node.value for node in tree.body if isinstance(node, ast.Assign)}
        return values.get(default.id, default)


def _signature(name: str, function: ast.FunctionDef, *, is_method: bool = False) -> str:
    args = function.args
    plain = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(plain) - len(args.defaults)) + list(args.defaults)
    pairs = list(zip(plain, defaults, strict=True))[1 if is_method else 0 :]
    shown = [_argument(argument, default) for argument, default in pairs]
    if args.vararg:
        shown.append("*" + _argument(args.vararg, None))
    elif args.kwonlyargs:
        shown.append("*")
    shown += [_argument(argument, default) for argument, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)]
    if args.kwarg:
        shown.append("**" + _argument(args.kwarg, None))
    result = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    line = f"{name}({', '.join(shown)}){result}"
    return line if len(line) <= _LONGEST else f"{name}(\n    " + ",\n    ".join(shown) + f",\n){result}"


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    shown = argument.arg + (f": {ast.unparse(argument.annotation)}" if argument.annotation else "")
    if default is None:
        return shown
    return f"{shown}{' = ' if argument.annotation else '='}{ast.unparse(default)}"


def _members(class_: ast.ClassDef) -> Iterator[str]:
    """Yields the fields, the values and the methods of a class."""
    fields = [node for node in class_.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)]
    rows = [
        (code(ast.unparse(node.target)), code(ast.unparse(node.annotation)), *_field(node.value)) for node in fields
    ]
    if rows:
        width = 4 if any(row[3] for row in rows) else 3
        yield table(("field", "type", "default", "what it is")[:width], [row[:width] for row in rows])
    values = [node for node in class_.body if isinstance(node, ast.Assign)]
    if values:
        yield table(
            ("name", "value"), [(code(ast.unparse(node.targets[0])), code(ast.unparse(node.value))) for node in values]
        )
    for node in class_.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and ast.get_docstring(node):
            kinds = {ast.unparse(mark) for mark in node.decorator_list}
            yield f"#### {escaped(f'{class_.name}.{node.name}')}"
            if "property" not in kinds:
                yield fenced(_signature(node.name, node, is_method="staticmethod" not in kinds), "python")
            yield from_docstring(ast.get_docstring(node) or "", "python")


def _field(value: ast.expr | None) -> tuple[str, str]:
    """Returns the default of a field, and what its declaration as an option says about it."""
    if not isinstance(value, ast.Call):
        return code(ast.unparse(value)) if value else "", ""
    called = ast.unparse(value.func)
    default = next((keyword.value for keyword in value.keywords if keyword.arg == "default"), None)
    if called not in ("option", "flag"):
        return code(ast.unparse(default)) if default else "", ""
    usual = "False" if called == "flag" else "None"
    return code(ast.unparse(default) if default else usual), escaped(ast.literal_eval(value.args[0]))
