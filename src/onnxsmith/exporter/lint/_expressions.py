"""Computes the value of each expression of a function, in execution order.

The module itself is known, so `self.scale` is looked up, not guessed.
"""

from __future__ import annotations

import ast
import builtins
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from onnxsmith.exporter.lint import _calls
from onnxsmith.exporter.lint._values import OTHER, Kind, Value, element, join, of_live

Call = Callable[[Any, list[Value], dict[str, Value]], Value | None]
"""Is called with each function or module that the code calls. Returns the value of the result, or None if it is
unknown."""

UNDECIDED = object()
"""`decide` returns this for a test whose outcome the source does not determine."""


@dataclass
class Expressions:
    """The expressions of a function. `scope` are its globals, `env` the current values of its local names. `values` has
    the value of every expression that was reached."""

    function: ast.FunctionDef
    scope: Mapping[str, Any]
    env: dict[str, Value]
    called: Call
    values: dict[ast.AST, Value] = field(default_factory=dict)

    def kind(self, node: ast.AST) -> Kind:
        """Returns the kind of the expression's value; OTHER if the expression was not reached."""
        return self.values.get(node, OTHER).kind

    def live(self, node: ast.AST) -> Any:
        """Returns the object that the expression gives; ABSENT if it is unknown."""
        return self.values.get(node, OTHER).live

    def value(self, node: ast.expr) -> Value:
        """Reads an expression and stores its value."""
        found = self._value(node)
        self.values[node] = found
        return found

    def _value(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant():
                return Value(live=node.value)
            case ast.Name():
                return self._name(node.id)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript():
                return self._subscript(node)
            case ast.Call():
                return self._call(node)
            case ast.BoolOp():
                return Value(join(*map(self.value, node.values)).kind)
            case ast.BinOp():
                return _computed(self.value(node.left), self.value(node.right))
            case ast.UnaryOp():
                return _computed(self.value(node.operand))
            case ast.Compare():
                return self._compare(node)
            case ast.IfExp():
                self.value(node.test)
                decided = self.decide(node.test)
                if decided is not UNDECIDED:
                    return self.value(node.body if decided else node.orelse)
                return join(self.value(node.body), self.value(node.orelse))
            case ast.Tuple() | ast.List() | ast.Set() | ast.Dict():
                return self._container(node)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node)
            case ast.NamedExpr():
                found_value = self.value(node.value)
                self.bind(node.target, found_value, None)
                return found_value
            case ast.Starred():
                return self.value(node.value)
            case ast.Lambda():
                return OTHER
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self.value(child)
                return OTHER

    def _compare(self, node: ast.Compare) -> Value:
        found = [self.value(part) for part in (node.left, *node.comparators)]
        if any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops):
            return OTHER
        if any(part.kind is Kind.SHAPE for part in found):
            return Value(Kind.SIZE)
        return _computed(*found)

    def _container(self, node: ast.Tuple | ast.List | ast.Set | ast.Dict) -> Value:
        if isinstance(node, ast.Dict):
            return _gathered([self.value(part) for part in node.values])
        parts = [self.value(part) for part in node.elts]
        return replace(_gathered(parts), items=tuple(parts) if isinstance(node, ast.Tuple) else ())

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
        self._generators(node.generators)
        if isinstance(node, ast.DictComp):
            self.value(node.key)
            return _gathered([self.value(node.value)])
        return _gathered([self.value(node.elt)])

    def _generators(self, generators: list[ast.comprehension]) -> None:
        for one in generators:
            self.value(one.iter)
            self.bind(one.target, self.each_of(one.iter), None)
            for test in one.ifs:
                self.value(test)

    def _name(self, name: str) -> Value:
        if name in self.env:
            return self.env[name]
        if name in self.scope:
            return of_live(self.scope[name])
        return Value(live=getattr(builtins, name)) if hasattr(builtins, name) else OTHER

    def _attribute(self, node: ast.Attribute) -> Value:
        base = self.value(node.value)
        rebound = self.env.get(ast.unparse(node)) if isinstance(node.value, ast.Name) else None
        if rebound is not None:
            return rebound
        if base.kind is not Kind.OTHER:
            return _calls.of_attribute(base, node.attr)
        if base.known:
            try:
                held = getattr(base.live, node.attr)
            except Exception:  # noqa: BLE001 — a user's property may raise any error
                return OTHER
            return of_live(held)
        return OTHER

    def _subscript(self, node: ast.Subscript) -> Value:
        base, index = self.value(node.value), self.value(node.slice)
        if base.kind is Kind.TENSOR:
            return Value(Kind.TENSOR, base.inputs if index.kind is not Kind.TENSOR else frozenset())
        if base.items and isinstance(index.live, int) and -len(base.items) <= index.live < len(base.items):
            return base.items[index.live]
        if base.kind is Kind.SHAPE:
            if isinstance(node.slice, ast.Slice):
                return Value(Kind.SHAPE)
            number = index.live if isinstance(index.live, int) else None
            return Value(Kind.SIZE, axis=(base.direct, number) if base.direct and number is not None else None)
        if base.kind is not Kind.OTHER:
            return element(base)
        if base.known and index.known:
            try:
                return of_live(base.live[index.live])
            except Exception:  # noqa: BLE001 — a user's container may raise any error
                return OTHER
        return OTHER

    def _call(self, node: ast.Call) -> Value:
        args = [self.value(part) for part in node.args]
        named = {part.arg or "**": self.value(part.value) for part in node.keywords}
        everything = [*args, *named.values()]
        function = self.value(node.func)
        if isinstance(node.func, ast.Attribute):
            base = self.values.get(node.func.value, OTHER)
            if base.kind is not Kind.OTHER:
                return self._method(node.func, base, args)
            if isinstance(node.func.value, ast.Name) and node.func.attr in ("append", "extend", "insert"):
                if any(value.kind in (Kind.TENSOR, Kind.MANY) for value in args):
                    self.env[node.func.value.id] = Value(Kind.MANY)
                return OTHER
        if not function.known:
            return OTHER
        live = function.live
        if id(live) in _BUILTINS:
            return _calls.of_builtin(live, args)
        found = self.called(live, args, named)
        if found is not None:
            return found
        home = str(getattr(live, "__module__", "") or "")
        name = str(getattr(live, "__name__", ""))
        if home.partition(".")[0] == "torch" or (name in vars(torch) and getattr(torch, name) is live):
            return _calls.of_torch(name, everything) if not isinstance(live, type) else OTHER
        if (home.partition(".")[0] == "numpy" or type(live).__module__ == "numpy") and everything:
            tensors = any(value.kind in (Kind.TENSOR, Kind.MANY, Kind.ARRAY, Kind.VALUE) for value in everything)
            sizes = any(value.kind in (Kind.SIZE, Kind.SHAPE) for value in everything)
            return Value(Kind.ARRAY) if tensors else Value(Kind.SIZE) if sizes else OTHER
        if home.partition(".")[0] == "math" or home == "math":
            return _computed(*(Value(Kind.VALUE) if v.kind is Kind.TENSOR else v for v in everything))
        return OTHER

    def _method(self, func: ast.Attribute, base: Value, args: list[Value]) -> Value:
        found = _calls.of_method(base, func.attr, args)
        if base.kind is Kind.TENSOR and func.attr == "size" and args and isinstance(args[0].live, int):
            return Value(found.kind, axis=(base.direct, args[0].live) if base.direct else None)
        if func.attr == "size" and base.kind is Kind.TENSOR:
            return Value(found.kind, direct=base.direct)
        return found

    def decide(self, test: ast.expr) -> Any:
        """Returns whether a test on Python values is true: True, False, or UNDECIDED."""
        match test:
            case ast.UnaryOp(op=ast.Not()):
                inner = self.decide(test.operand)
                return inner if inner is UNDECIDED else not inner
            case ast.BoolOp():
                found = [self.decide(part) for part in test.values]
                stop = isinstance(test.op, ast.Or)
                if any(part is not UNDECIDED and bool(part) is stop for part in found):
                    return stop
                return UNDECIDED if any(part is UNDECIDED for part in found) else not stop
            case ast.Compare(ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Constant(value=None)]):
                value = self.values.get(test.left, OTHER)
                if value.kind in (Kind.TENSOR, Kind.MANY):
                    return isinstance(op, ast.IsNot)
                return (value.live is None) is isinstance(op, ast.Is) if value.known else UNDECIDED
            case ast.Compare(ops=[ast.Eq() | ast.NotEq() as op], comparators=[right]):
                a, b = self.values.get(test.left, OTHER), self.values.get(right, OTHER)
                simple = str | int | float | bool
                if isinstance(a.live, simple) and isinstance(b.live, simple):
                    return (a.live == b.live) is isinstance(op, ast.Eq)
            case ast.Constant() | ast.Name() | ast.Attribute() | ast.Call():
                value = self.values.get(test, OTHER)
                if value.known and (value.live is None or isinstance(value.live, bool | int | str)):
                    return bool(value.live)
        return UNDECIDED

    def bind(self, target: ast.expr, value: Value, source: ast.expr | None) -> None:
        """Assigns a value to a target. `source` is the assigned expression, used to pair the parts of tuples."""
        match target:
            case ast.Name():
                self.env[target.id] = value
                self.values[target] = value
            case ast.Tuple() | ast.List():
                sources = source.elts if isinstance(source, ast.Tuple | ast.List) else []
                paired = len(sources) == len(target.elts)
                for index, part in enumerate(target.elts):
                    one = self.values.get(sources[index], OTHER) if paired else _part(value, index)
                    self.bind(part, one, None)
            case ast.Starred():
                self.bind(target.value, Value(Kind.MANY, value.inputs) if value.kind is Kind.TENSOR else value, None)
            case _:
                self.value(target)
                if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                    held = self.env.get(target.value.id, OTHER)
                    if held.kind is Kind.OTHER and value.kind in (Kind.TENSOR, Kind.MANY):
                        self.env[target.value.id] = Value(Kind.MANY)
                if isinstance(target, ast.Attribute):
                    self.env[ast.unparse(target)] = value

    def each_of(self, source: ast.expr) -> Value:
        """Returns the value of one element of an expression that was read. The parts of enumerate and zip are kept
        apart."""
        found = self.each(self.values[source])
        match source:
            case ast.Call(func=ast.Name(id="enumerate"), args=[inner, *_]):
                return replace(found, items=(OTHER, self.each_of(inner)))
            case ast.Call(func=ast.Name(id="zip"), args=parts):
                if not any(isinstance(part, ast.Starred) for part in parts):
                    return replace(found, items=tuple(self.each_of(part) for part in parts))
        return found

    def each(self, value: Value) -> Value:
        """Returns the value of one element when the value is iterated."""
        if value.known and isinstance(value.live, torch.nn.ModuleList | torch.nn.Sequential | list | tuple | range):
            kinds = [of_live(part) for part in value.live]
            return kinds[0] if len(kinds) == 1 else join(*kinds) if kinds else OTHER
        if value.kind is Kind.SIZE:
            return OTHER  # an index, not a size
        return element(value)


def _part(value: Value, index: int) -> Value:
    """Returns the value of `value[index]` in an unpacking."""
    if -len(value.items) <= index < len(value.items):
        return value.items[index]
    if isinstance(value.live, tuple | list) and len(value.live) > index:
        return of_live(value.live[index])
    if value.kind is Kind.SHAPE:
        return Value(Kind.SIZE, axis=(value.direct, index) if value.direct else None)
    return element(value)


def _computed(*parts: Value) -> Value:
    """Returns the value that an operator computes from these operands."""
    kind = join(*parts).kind
    if kind is Kind.MANY and not any(part.kind is Kind.TENSOR for part in parts):
        return Value(kind)
    return Value(Kind.TENSOR if kind is Kind.MANY else kind)


def _gathered(parts: list[Value]) -> Value:
    """Returns the value of a container with these elements."""
    found = join(*parts)
    if found.kind in (Kind.TENSOR, Kind.MANY):
        return Value(Kind.MANY, found.inputs)
    if found.kind in (Kind.SIZE, Kind.SHAPE):
        return Value(Kind.SHAPE)
    return Value(found.kind)


_BUILTINS = {id(value) for value in vars(builtins).values() if isinstance(value, types.BuiltinFunctionType | type)}
