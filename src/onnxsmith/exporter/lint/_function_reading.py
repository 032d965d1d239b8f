"""Finds and reads the user's functions of a module: forward of every submodule whose class is the user's, and the
functions it calls."""

from __future__ import annotations

import ast
import inspect
import linecache
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import torch

from onnxsmith.base.seams.torch import trees as pytree
from onnxsmith.exporter.factory import is_installed
from onnxsmith.exporter.lint._flow import Flow
from onnxsmith.exporter.lint._values import OTHER, TENSOR, Kind, Value, of_live
from onnxsmith.exporter.lint.base import Code

IsUsers = Callable[[str], bool]
_DEPTH = 12
"""Limits the depth of nested calls that are followed. A choice: deeper than the models that we saw; it bounds the
time."""


@cache
def _functions(file: str) -> dict[int, ast.FunctionDef]:
    """Returns the functions of a file by the first line of their decorators or `def`."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return {}
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return {min([n.lineno, *(d.lineno for d in n.decorator_list)]): n for n in found}


def forget() -> None:
    """Forgets the parsed files, because they may have changed."""
    linecache.checkcache()
    _functions.cache_clear()


@dataclass
class Call:
    """The call of a submodule when the model ran: its arguments and its result."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    result: Any = None


@dataclass
class Reader:
    """Reads the user's functions. `calls` are the calls of submodules by `id`. `sizes` are the example's sizes on the
    dynamic axes, by argument of the module's forward."""

    module: torch.nn.Module
    calls: Mapping[int, Call]
    sizes: Mapping[str, Mapping[int, int]]
    is_users: IsUsers = lambda file: not is_installed(file)
    _codes: list[Code] = field(default_factory=list)
    _running: list[Any] = field(default_factory=list)

    def read(self) -> list[Code]:
        """Reads every function that forward reaches."""
        forget()
        for part in self.module.modules():
            call = self.calls.get(id(part))
            if call is not None and not isinstance(part, torch.jit.ScriptModule):
                self._forward(part, call)
        flows: dict[types.FunctionType, list[Flow]] = {}
        for code in self._codes:
            flows.setdefault(code.function, []).append(code.flow)
        return [replace(code, flows=tuple(flows[code.function])) for code in self._codes]

    def _forward(self, part: torch.nn.Module, call: Call) -> None:
        is_root = part is self.module
        try:
            bound = inspect.signature(part.forward).bind(*call.args, **call.kwargs)
        except (TypeError, ValueError):
            return
        bound.apply_defaults()
        given = {name: _argument(name, value, is_root) for name, value in bound.arguments.items()}
        self._function(part.forward, given, is_root)

    def _function(self, function: Any, given: Mapping[str, Value], is_root: bool = False) -> Value | None:
        own = inspect.unwrap(getattr(function, "__func__", function))
        code = getattr(own, "__code__", None)
        if not isinstance(own, types.FunctionType) or code is None or not self.is_users(code.co_filename):
            return None
        node = _functions(code.co_filename).get(code.co_firstlineno)
        # recursive calls are not followed
        if node is None or own in self._running or len(self._running) > _DEPTH:
            return None
        names = [*node.args.posonlyargs, *node.args.args]
        env: dict[str, Value] = {a.arg: given.get(a.arg, OTHER) for a in (*names, *node.args.kwonlyargs)}
        for variadic in filter(None, (node.args.vararg, node.args.kwarg)):
            env[variadic.arg] = given.get(variadic.arg, OTHER)
        if hasattr(function, "__self__") and names:
            env[names[0].arg] = Value(live=function.__self__)
        flow = Flow(node, _scope(own), env, self._called)
        self._running.append(own)
        try:
            result = flow.read()
        finally:
            self._running.pop()
        parents = {child: above for above in ast.walk(node) for child in ast.iter_child_nodes(above)}
        arguments = {name: dict(self.sizes.get(name, {})) for name, v in given.items() if is_root and v.direct}
        self._codes.append(Code(own, code.co_filename, flow, parents, arguments, is_root))
        return result

    def _called(self, live: Any, args: list[Value], named: dict[str, Value]) -> Value | None:
        if isinstance(live, torch.nn.Module):
            call = self.calls.get(id(live))
            if call is None:
                return TENSOR if any(v.kind in (Kind.TENSOR, Kind.MANY) for v in args) else OTHER
            result = of_live(call.result)
            return Value(result.kind) if result.kind in (Kind.TENSOR, Kind.MANY) else OTHER
        owner = getattr(live, "__self__", None)
        if isinstance(owner, type) and issubclass(owner, torch.autograd.Function):
            forward = owner.__dict__.get("forward")
            inner = getattr(forward, "__func__", forward)
            if inner is None:
                return TENSOR
            names = list(inspect.signature(inner).parameters)
            # forward has a first parameter `ctx` that apply is called without
            names = names[len(names) - len(args) :] if len(names) >= len(args) else names
            return self._function(inner, dict(zip(names, args, strict=False))) or TENSOR
        if not isinstance(live, types.FunctionType | types.MethodType):
            return None
        try:
            bound = inspect.signature(live).bind(*args, **named)
        except (TypeError, ValueError):
            return None
        given = {name: value for name, value in bound.arguments.items() if isinstance(value, Value)}
        for name, parameter in inspect.signature(live).parameters.items():
            if name not in bound.arguments and parameter.default is not parameter.empty:
                given[name] = of_live(parameter.default)
        return self._function(live, given)


def _argument(name: str, value: Any, is_root: bool) -> Value:
    own = frozenset({name}) if is_root else frozenset[str]()
    if isinstance(value, torch.Tensor):
        return Value(Kind.TENSOR, own, direct=name if is_root else "")
    if any(isinstance(leaf, torch.Tensor) for leaf in pytree.tree_leaves(value)):
        return Value(Kind.MANY, own)
    return of_live(value)


def _scope(function: types.FunctionType) -> dict[str, Any]:
    held = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            held[name] = cell.cell_contents
        except ValueError:  # the closure variable has no value yet
            continue
    return {**function.__globals__, **held}


def nodes(code: Code) -> Iterator[ast.AST]:
    """Yields the nodes of the function that were reached, statements before their expressions."""
    for node in ast.walk(code.flow.function):
        if node in code.flow.reached or node in code.flow.values:
            yield node
