"""Finds calls that open a path outside of the modules through which all files of the user are read and written.

    python tools/opened_paths.py [FOLDER [TABLE]]

These modules, and the few others that may open paths, are listed with their reasons in `opened_paths.toml`. Everywhere
else, an opened path has to be one that onnxsmith made or that belongs to its package:

- a path in a folder of `folders.temporary`, `beside`, `aside` or `replacing`, or of `tempfile`,
- a file of the package (`importlib.resources.files`, `__file__`) or of the system (`/proc`, `os.devnull`),
- a parameter or a result of the type `folders.OwnPath`, which mypy checks at each call,
- a file that `user_files.opened` opened.

Prints a line for each other call, and for each entry of the table that is not needed, and exits with 1 where there is
one.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from imported_names import dotted_name, imported_names

SOURCES = Path(__file__).parent.parent / "src" / "onnxsmith"
TABLE = Path(__file__).with_suffix(".toml")
ADVICE = (
    "read a file of the user with base/user_files.py, write it with base/folders.py (`replacing`), or pass a path of "
    "your own as folders.OwnPath; a module that has to open other paths is listed in tools/opened_paths.toml"
)

_ONE = """
    open io.open codecs.open os.open os.mkfifo os.truncate gzip.open bz2.open lzma.open tarfile.open zipfile.ZipFile
    sqlite3.connect shutil.make_archive shutil.unpack_archive PIL.Image.open numpy.load numpy.save numpy.savez
    numpy.savez_compressed numpy.savetxt numpy.loadtxt numpy.genfromtxt numpy.fromfile numpy.memmap
    numpy.lib.format.open_memmap onnx.load onnx.load_model onnx.save_model onnx.save onnx_ir.load onnx_ir.save
    torch.load torch.save torch.jit.load torch.jit.save torch.export.load torch.export.save safetensors.safe_open
    safetensors.torch.load_file safetensors.torch.save_file safetensors.numpy.load_file safetensors.numpy.save_file
"""
_TWO = "shutil.copy shutil.copy2 shutil.copyfile shutil.copytree shutil.move os.replace os.rename os.link os.symlink"
_SECOND = "onnx.save onnx.save_model onnx_ir.save torch.save torch.jit.save torch.export.save"
_SECOND += " safetensors.numpy.save_file safetensors.torch.save_file"
PATHS = {name: (int(name in _SECOND.split()),) for name in _ONE.split()} | dict.fromkeys(_TWO.split(), (0, 1))
"""Maps each function to the positions of the paths among its arguments."""
METHODS = {"read_text", "read_bytes", "write_text", "write_bytes", "touch", "symlink_to", "hardlink_to", "open"}
MOVES = {"rename", "replace"}
"""Methods of a path that take one other path. `replace` of a text takes two arguments."""
_WORDS = re.compile(rf"\b({'|'.join({name.rpartition('.')[2] for name in PATHS} | METHODS | MOVES)})\b")
PATH_TYPES = {"Path", "str", "Any", "object"}
"""Annotations of what may be a path."""

ORIGINS = {
    *(f"onnxsmith.base.folders.{name}" for name in ("temporary", "beside", "aside", "replacing", "cache")),
    *(f"tempfile.{name}" for name in ("mkdtemp", "mkstemp", "TemporaryDirectory", "NamedTemporaryFile")),
    "onnxsmith.base.user_files.opened", "importlib.resources.files", "io.BytesIO", "io.StringIO",
}  # fmt: skip
SAME = {"pathlib.Path", "str", "sorted", "list", "tuple", "reversed", "onnxsmith.base.folders.OwnPath"}
"""Functions whose result is as own as their first argument."""
INSIDE = {
    "joinpath", "with_name", "with_suffix", "with_stem", "iterdir", "glob", "rglob", "resolve", "absolute", "as_uri",
}  # fmt: skip
"""Methods whose result is as own as the path."""
SYSTEM = ("/proc", "/sys", "/dev/null")
OWN = "OwnPath"
COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module | COMPREHENSIONS


def main() -> int:
    """Looks through the folder, or all of the package."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCES
    table = Path(sys.argv[2]) if len(sys.argv) > 2 else TABLE if root == SOURCES else None
    listed = tomllib.loads(table.read_text(encoding="utf-8")) if table else {}
    allowed = {name for reasons in listed.values() for name, reason in reasons.items() if reason}
    needed: set[str] = set()
    found = []
    for path in sorted(root.rglob("*.py")):
        calls = list(opened_paths(path))
        name = path.relative_to(root).as_posix()
        if calls and name in allowed:
            needed.add(name)
        else:
            found += calls
    found += [f"{table}: {name}: opens no path, or does not exist" for name in sorted(allowed - needed)]
    print("\n".join([*found, ADVICE]) if found else f"no path is opened outside of the {len(allowed)} listed modules")
    return bool(found)


def opened_paths(path: Path) -> Iterator[str]:
    """`file:line: call` for each call that opens a path of unknown origin."""
    text = path.read_text(encoding="utf-8")
    if _WORDS.search(text):
        for line, name in Module(ast.parse(text)).openings():
            yield f"{path}:{line}: {name}"


class Module:
    """What the names of a module are bound to, by function."""

    def __init__(self, tree: ast.Module) -> None:
        self._imports = imported_names(tree)
        self._scopes: dict[ast.AST, list[Scope]] = {}
        self._bound: dict[tuple[Scope, str], list[ast.expr | bool]] = {}
        self._annotated: dict[tuple[Scope, str], ast.expr] = {}
        self._returned: dict[str, list[ast.expr | bool]] = {}
        self._fields: set[str] = set()
        self._visit(tree, [tree])
        self._own = set(self._bound)
        self._makers = {name for name, values in self._returned.items() if values}
        self._settle()

    def openings(self) -> Iterator[tuple[int, str]]:
        """Yields the line and the function of each opening."""
        called = {id(node.func) for node in self._scopes if isinstance(node, ast.Call)}
        for node in self._scopes:
            if isinstance(node, ast.Call):
                name, paths = self._paths(node)
                if not all(self._is_own(path) for path in paths):
                    yield node.lineno, name
            elif isinstance(node, ast.Name | ast.Attribute) and id(node) not in called:
                name = self._full(node)
                owner, _, method = name.rpartition(".")
                if (name in PATHS and method.islower()) or (owner == "pathlib.Path" and method in METHODS | MOVES):
                    yield node.lineno, name

    def _paths(self, call: ast.Call) -> tuple[str, list[ast.expr]]:
        """Returns the name of the function, and the paths that a call opens."""
        name = self._full(call.func)
        if name in PATHS:
            names = {one.arg: one.value for one in call.keywords}
            given = [call.args[at] for at in PATHS[name] if at < len(call.args)]
            return name, given or list(names.values())
        if not isinstance(call.func, ast.Attribute):
            return "", []
        receiver, method = call.func.value, call.func.attr
        if self._is_other(receiver):
            return "", []
        if method in METHODS and (method != "open" or _is_mode(call)):
            return f".{method}", [receiver]
        if method in MOVES and len(call.args) == 1 and not call.keywords:
            return f".{method}", [receiver, call.args[0]]
        return "", []

    def _is_own(self, node: ast.expr | bool) -> bool:
        match node:
            case bool():
                return node
            case ast.Name():
                place = self._place(node, node.id)
                kind = self._annotated.get(place) if place is not None else None
                return node.id == "__file__" or place in self._own or (kind is not None and _is_own_type(kind))
            case ast.Constant():
                return isinstance(node.value, int | None) or str(node.value).startswith(SYSTEM)
            case ast.JoinedStr(values=[first, *_]) | ast.FormattedValue(value=first):
                return self._is_own(first)
            case (
                ast.BinOp(left=inner, op=ast.Div())
                | ast.Starred(inner)
                | ast.Subscript(inner)
                | ast.NamedExpr(value=inner)
            ):
                return self._is_own(inner)
            case ast.IfExp(body=one, orelse=other):
                return self._is_own(one) and self._is_own(other)
            case ast.List(inner) | ast.Tuple(inner):
                return bool(inner) and all(self._is_own(one) for one in inner)
            case ast.ListComp(elt=inner) | ast.GeneratorExp(elt=inner):
                return self._is_own(inner)
            case ast.Attribute(value=inner, attr="parent"):
                return any(dotted_name(one).endswith("__file__") for one in ast.walk(inner))
            case ast.Attribute():
                return self._full(node) == "os.devnull" or node.attr in {"__file__", *self._fields}
            case ast.Call():
                return self._is_own_result(node)
        return False

    def _is_own_result(self, call: ast.Call) -> bool:
        name = self._full(call.func)
        if name in ORIGINS or name in self._makers:
            return True
        if name in SAME:
            return bool(call.args) and self._is_own(call.args[0])
        if not isinstance(call.func, ast.Attribute):
            return False
        if call.func.attr == "enter_context":
            return self._is_own(call.args[0])
        return call.func.attr in INSIDE and self._is_own(call.func.value)

    def _settle(self) -> None:
        """Keeps the names and the functions all of whose values are own paths."""
        before = None
        while before != (len(self._own), len(self._makers)):
            before = len(self._own), len(self._makers)
            self._own = {place for place in self._own if all(map(self._is_own, self._bound[place]))}
            self._makers = {name for name in self._makers if all(map(self._is_own, self._returned[name]))}

    def _visit(self, node: ast.AST, scopes: list[Scope]) -> None:
        self._scopes[node] = scopes
        self._bind(node, scopes[-1])
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                if one.annotation is not None:
                    self._annotated[node, one.arg] = one.annotation
                self._add(node, one.arg, False)
            if not isinstance(node, ast.Lambda):
                self._returned.setdefault(node.name, [])
            scopes = [*scopes, node]
        elif isinstance(node, COMPREHENSIONS):
            scopes = [*scopes, node]
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr_context | ast.operator | ast.cmpop):
                self._visit(child, scopes)

    def _bind(self, node: ast.AST, scope: Scope) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind_target(target, value, scope)
            case ast.AnnAssign(target=target, annotation=annotation, value=value):
                self._bind_target(target, value, scope)
                if isinstance(target, ast.Name):
                    self._annotated[scope, target.id] = annotation
                if _is_own_type(annotation):
                    self._fields.add(dotted_name(target).rpartition(".")[2])
            case ast.NamedExpr(target=target, value=value):
                self._bind_target(target, value, scope)
            case ast.AugAssign(target=target):
                self._bind_target(target, None, scope)
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                self._bind_target(target, value, scope)
            case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
                self._bind_target(target, value, scope)
            case ast.Return(value=ast.expr() as value) | ast.Yield(value=ast.expr() as value):
                if isinstance(scope, ast.FunctionDef):
                    self._returned[scope.name].append(value)

    def _bind_target(self, target: ast.expr, value: ast.expr | None, scope: Scope) -> None:
        if isinstance(target, ast.Name):
            self._add(scope, target.id, value if value is not None else False)
        elif isinstance(target, ast.Tuple):
            values = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts) else ()
            for at, one in enumerate(target.elts):
                self._bind_target(one, values[at] if values else None, scope)

    def _add(self, scope: Scope, name: str, value: ast.expr | bool) -> None:
        self._bound.setdefault((scope, name), []).append(value)

    def _place(self, node: ast.AST, name: str) -> tuple[Scope, str] | None:
        """Returns where a name of the node is bound: in the innermost function that binds it."""
        places = ((scope, name) for scope in reversed(self._scopes[node]))
        return next((place for place in places if place in self._bound), None)

    def _is_other(self, node: ast.expr) -> bool:
        """Whether a value is no path: a module, or by its annotation or its class."""
        name = dotted_name(node)
        place = self._place(node, node.id) if isinstance(node, ast.Name) else None
        if place is None:
            return name in self._imports and name.islower()
        if place in self._annotated:
            return not _is_path_type(self._annotated[place])
        return all(isinstance(one, ast.Call) and _is_class(one.func) for one in self._bound[place])

    def _full(self, node: ast.AST) -> str:
        """Returns the full name of a function; "" if it is a name of this module."""
        first, dot, rest = dotted_name(node).partition(".")
        if first not in self._imports and self._place(node, first) is not None:
            return ""
        return f"{self._imports.get(first, first)}{dot}{rest}"


def _is_own_type(annotation: ast.expr) -> bool:
    if isinstance(annotation, ast.BinOp):  # `OwnPath | IO[bytes]`
        sides = (annotation.left, annotation.right)
        return any(map(_is_own_type, sides)) and not any(map(_is_path_type, sides))
    return dotted_name(annotation).rpartition(".")[2] == OWN


def _is_path_type(annotation: ast.expr) -> bool:
    return any(dotted_name(one).rpartition(".")[2] in PATH_TYPES for one in ast.walk(annotation))


def _is_class(called: ast.expr) -> bool:
    name = dotted_name(called).rpartition(".")[2].lstrip("_")
    return name[:1].isupper() and name not in PATH_TYPES | {OWN}


def _is_mode(call: ast.Call) -> bool:
    """Whether the arguments may be those of `Path.open`, and not a name in an archive."""
    first = call.args[0] if call.args else None
    return first is None or (isinstance(first, ast.Constant) and set(str(first.value)) <= set("rwxabt+"))


if __name__ == "__main__":
    raise SystemExit(main())
