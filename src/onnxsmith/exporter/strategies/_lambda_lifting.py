"""Rewrites methods so that TorchScript compiles them: TorchScript has neither lambdas nor inner functions, and takes
each parameter without an annotation for a tensor.

`f = lambda t: t * scale` becomes a method with the parameters `t` and `scale`, and a call `f(x)` becomes
`self.f_lifted(x, scale)`. A variable of the surrounding method is passed at each call, because Python reads it then. A
run of the module shows the type of each parameter.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import torch

from onnxsmith.exporter.factory import is_installed

Types = dict[tuple[str, int], dict[str, str]]
"""Maps the file and first line of a function to the type of each of its parameters and outer variables."""

_PLAIN = {bool: "bool", int: "int", float: "float", str: "str"}


def lift(module: torch.nn.Module, run: Callable[[], object]) -> None:
    """Rewrites the methods of the user's classes in place; `run` calls the module once. A method that cannot be
    rewritten stays unchanged, and TorchScript reports its own error."""
    kinds = {type(part) for part in module.modules() if not isinstance(part, torch.jit.ScriptModule)}
    methods = [(kind, name, method) for kind in kinds for name, method in _methods(kind)]
    if not methods:
        return
    types = _observed(run)
    for kind, name, method in methods:
        _rewrite(kind, name, method, types)


def _methods(kind: type) -> Iterator[tuple[str, Any]]:
    """Yields the methods of a class that the user's code defines."""
    for name, method in inspect.getmembers(kind, inspect.isfunction):
        if not is_installed(method.__code__.co_filename):
            yield name, method


def _observed(run: Callable[[], object]) -> Types:
    """Records the types that parameters and outer variables of functions have in a run."""
    types: Types = {}

    def profile(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and not is_installed(code.co_filename):
            found = {name: _type(value) for name, value in frame.f_locals.items()}
            types.setdefault((code.co_filename, code.co_firstlineno), {}).update(found)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(before)
    return types


def _type(value: Any) -> str:
    """Returns the type of a value as TorchScript writes it; empty if TorchScript has no such type."""
    if isinstance(value, torch.Tensor):
        return "torch.Tensor"
    if type(value) in _PLAIN:
        return _PLAIN[type(value)]
    if isinstance(value, tuple) and value and all(map(_type, value)):
        return f"tuple[{', '.join(map(_type, value))}]"
    if isinstance(value, list) and value and len({_type(item) for item in value}) == 1 and _type(value[0]):
        return f"list[{_type(value[0])}]"
    return ""


@dataclass(frozen=True)
class _Inner:
    """A function inside a method. `outer` are the method's variables that the function reads."""

    name: str
    node: ast.Lambda | ast.FunctionDef
    outer: tuple[str, ...]
    types: Mapping[str, str]

    @property
    def method(self) -> str:
        return f"{self.name}_lifted"


def _rewrite(kind: type, name: str, method: Any, types: Types) -> None:
    file, first = method.__code__.co_filename, method.__code__.co_firstlineno
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(method)))
    except (OSError, SyntaxError):
        return
    (function,) = tree.body
    if not isinstance(function, ast.FunctionDef) or not function.args.args:
        return
    ast.increment_lineno(tree, first - 1)
    own = function.args.args[0].arg
    inner = list(_inner(function, own, file, types))
    if not _annotate(function, types.get((file, first), {})) and not inner:
        return
    named = _with_callees({one.name: one for one in inner})
    inner = list(named.values())
    methods = [_as_method(one, own, named) for one in inner]
    body = _Calls(own, named).visit(function)
    body.decorator_list = []
    made = ast.fix_missing_locations(ast.Module([*methods, body], []))
    lines = ast.unparse(made) + "\n"
    invented = f"<lifted {kind.__qualname__}.{name}>"
    linecache.cache[invented] = (len(lines), None, lines.splitlines(keepends=True), invented)
    scope: dict[str, Any] = {}
    exec(compile(lines, invented, "exec"), method.__globals__, scope)  # the user's own code, rearranged
    for made_name, made_method in scope.items():
        setattr(kind, made_name, made_method)


def _annotate(function: ast.FunctionDef, known: Mapping[str, str]) -> bool:
    """Annotates the parameters that are no tensors, because TorchScript takes parameters without an annotation for
    tensors. Returns whether there are any."""
    found = [arg for arg in function.args.args[1:] if arg.annotation is None]
    others = [arg for arg in found if known.get(arg.arg, "") not in ("", "torch.Tensor")]
    for arg in others:
        arg.annotation = ast.parse(known[arg.arg], mode="eval").body
    return bool(others)


def _inner(function: ast.FunctionDef, own: str, file: str, types: Types) -> Iterator[_Inner]:
    """Yields the inner functions that are bound once, take plain parameters of known types, and are only called."""
    bound: dict[str, list[ast.Lambda | ast.FunctionDef]] = {}
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda() as held):
                bound.setdefault(name, []).append(held)
            case ast.FunctionDef() as held if held is not function:
                bound.setdefault(held.name, []).append(held)
    calls = {id(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)}
    reads = [node for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    for name, held_nodes in bound.items():
        node, called = held_nodes[0], all(id(read) in calls for read in reads if read.id == name)
        arguments = node.args
        plain = not (arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.posonlyargs)
        changes = any(isinstance(one, ast.Nonlocal | ast.Global | ast.Yield) for one in ast.walk(node))
        known = types.get((file, node.lineno), {})
        if len(held_nodes) > 1 or not called or not plain or arguments.defaults or changes:
            continue
        own_names = {one.arg for one in arguments.args} | {
            one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
        }
        used = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} - own_names - {own}
        outer = tuple(sorted(one for one in used if one in known and one not in bound))
        if all(known.get(one) for one in (*(arg.arg for arg in arguments.args), *outer)):
            yield _Inner(name, node, outer, known)


def _with_callees(named: Mapping[str, _Inner]) -> dict[str, _Inner]:
    """Adds to each function the outer variables of the functions that it calls, because it has to pass them on."""
    found = dict(named)
    for _ in named:  # a chain of calls has at most one step for each function
        for name, one in found.items():
            read = {node.id for node in ast.walk(one.node) if isinstance(node, ast.Name)}
            callees = [found[other] for other in read if other in found and other != name]
            outer = {*one.outer, *(variable for callee in callees for variable in callee.outer)}
            types = {key: value for callee in callees for key, value in callee.types.items()}
            found[name] = replace(one, outer=tuple(sorted(outer)), types={**types, **one.types})
    return found


def _as_method(inner: _Inner, own: str, named: Mapping[str, _Inner]) -> ast.FunctionDef:
    """Returns the inner function as a method with an annotation for each parameter."""
    names = [*(arg.arg for arg in inner.node.args.args), *inner.outer]
    parameters = [ast.arg(own), *(ast.arg(one, ast.parse(inner.types[one], mode="eval").body) for one in names)]
    body = [ast.Return(inner.node.body)] if isinstance(inner.node, ast.Lambda) else inner.node.body
    made = ast.FunctionDef(
        inner.method, ast.arguments([], parameters, None, [], [], None, []), list(body), [], lineno=inner.node.lineno
    )
    visited = _Calls(own, named).visit(made)
    assert isinstance(visited, ast.FunctionDef)
    return visited


class _Calls(ast.NodeTransformer):
    """Replaces calls of the inner functions by calls of the methods, and removes the definitions of the inner
    functions."""

    def __init__(self, own: str, named: Mapping[str, _Inner]) -> None:
        self._own, self._named = own, named

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        inner = self._named.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if inner is None:
            return node
        outer = [ast.keyword(one, ast.Name(one, ast.Load())) for one in inner.outer]
        target = ast.Attribute(ast.Name(self._own, ast.Load()), inner.method, ast.Load())
        return ast.copy_location(ast.Call(target, node.args, [*node.keywords, *outer]), node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        is_inner = any(node.value is one.node for one in self._named.values())
        return None if is_inner else self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | None:
        is_inner = any(node is one.node for one in self._named.values())
        return None if is_inner else self.generic_visit(node)
