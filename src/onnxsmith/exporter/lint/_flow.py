"""Reads one function of the user's: what each expression holds, in the order in which it would run.

It knows what reading knows and a little more: the module itself is there, so `self.scale` is looked up, not guessed; an
`if` over such a value is decided, and the branch that is not taken is not read.
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
"""Asked for the result of a call of a function of the user's, or of a module; None when it does not know."""

_UNDECIDED = object()


@dataclass
class Flow:
    """One function, read.

    `values` has every expression that was reached; `reached` the statements, `returned` what it gives, and `before`
    what the names held when a loop was reached first.
    """

    function: ast.FunctionDef
    scope: Mapping[str, Any]
    env: dict[str, Value]
    called: Call
    values: dict[ast.AST, Value] = field(default_factory=dict)
    reached: dict[ast.stmt, None] = field(default_factory=dict)
    returned: list[Value] = field(default_factory=list)
    before: dict[ast.stmt, dict[str, Value]] = field(default_factory=dict)

    def read(self) -> Value:
        """Reads it all; gives what it returns."""
        self._block(self.function.body)
        return join(*self.returned) if self.returned else OTHER

    def kind(self, node: ast.AST) -> Kind:
        """What the expression holds; OTHER where it was not reached."""
        return self.values.get(node, OTHER).kind

    def live(self, node: ast.AST) -> Any:
        """The object that the expression is, or ABSENT."""
        return self.values.get(node, OTHER).live

    # statements

    def _block(self, body: list[ast.stmt]) -> bool:
        """Reads statements; says whether the last one is surely left by return or raise."""
        for statement in body:
            self.reached[statement] = None
            if self._statement(statement):
                return True
        return False

    def _statement(self, node: ast.stmt) -> bool:
        match node:
            case ast.Return() | ast.Raise():
                if isinstance(node, ast.Return) and node.value is not None:
                    self.returned.append(self.value(node.value))
                return True
            case ast.Assign():
                value = self.value(node.value)
                for target in node.targets:
                    self._bind(target, value, node.value)
            case ast.AnnAssign() if node.value is not None:
                self._bind(node.target, self.value(node.value), node.value)
            case ast.AugAssign():
                before = self.value(node.target)
                value = join(before, self.value(node.value))
                self._bind(node.target, Value(value.kind, before.inputs), None)
            case ast.If():
                return self._branches(node)
            case ast.For():
                self.before.setdefault(node, dict(self.env))
                self._bind(node.target, self._each(self.value(node.iter)), None)
                self._loop(node.body, node.orelse)
            case ast.While():
                self.before.setdefault(node, dict(self.env))
                self.value(node.test)
                self._loop(node.body, node.orelse)
                self.value(node.test)
            case ast.With():
                for item in node.items:
                    value = self.value(item.context_expr)
                    if item.optional_vars is not None:
                        self._bind(item.optional_vars, value, None)
                return self._block(node.body)
            case ast.Try():
                for body in (node.body, *(handler.body for handler in node.handlers), node.orelse, node.finalbody):
                    self._block(body)
            case ast.FunctionDef() | ast.ClassDef():
                self.env[node.name] = OTHER
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self.value(child)
        return False

    def _loop(self, body: list[ast.stmt], orelse: list[ast.stmt]) -> None:
        for _ in range(2):  # what the first turn binds, the second one reads
            before = dict(self.env)
            self._block(body)
            self.env = {name: join(before.get(name, value), value) for name, value in self.env.items()}
        self._block(orelse)

    def _branches(self, node: ast.If) -> bool:
        self.value(node.test)
        decided = self.decide(node.test)
        if decided is not _UNDECIDED:
            return self._block(node.body if decided else node.orelse)
        before = dict(self.env)
        left = self._block(node.body)
        after, self.env = self.env, dict(before)
        left_too = self._block(node.orelse)
        if left_too:
            self.env = after
        elif not left:
            names = self.env.keys() | after.keys()
            self.env = {n: join(*(side[n] for side in (self.env, after) if n in side)) for n in names}
        return left and left_too

    def decide(self, test: ast.expr) -> Any:
        """Whether a test over Python values is true: True, False, or a marker when reading cannot tell."""
        match test:
            case ast.UnaryOp(op=ast.Not()):
                inner = self.decide(test.operand)
                return inner if inner is _UNDECIDED else not inner
            case ast.BoolOp():
                found = [self.decide(part) for part in test.values]
                stop = isinstance(test.op, ast.Or)
                if any(part is not _UNDECIDED and bool(part) is stop for part in found):
                    return stop
                return _UNDECIDED if any(part is _UNDECIDED for part in found) else not stop
            case ast.Compare(ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Constant(value=None)]):
                value = self.values.get(test.left, OTHER)
                if value.kind in (Kind.TENSOR, Kind.MANY):
                    return isinstance(op, ast.IsNot)
                return (value.live is None) is isinstance(op, ast.Is) if value.known else _UNDECIDED
            case ast.Compare(ops=[ast.Eq() | ast.NotEq() as op], comparators=[right]):
                a, b = self.values.get(test.left, OTHER), self.values.get(right, OTHER)
                simple = str | int | float | bool
                if isinstance(a.live, simple) and isinstance(b.live, simple):
                    return (a.live == b.live) is isinstance(op, ast.Eq)
            case ast.Constant() | ast.Name() | ast.Attribute() | ast.Call():
                value = self.values.get(test, OTHER)
                if value.known and (value.live is None or isinstance(value.live, bool | int | str)):
                    return bool(value.live)
        return _UNDECIDED

    def _bind(self, target: ast.expr, value: Value, source: ast.expr | None) -> None:
        match target:
            case ast.Name():
                self.env[target.id] = value
                self.values[target] = value
            case ast.Tuple() | ast.List():
                sources = source.elts if isinstance(source, ast.Tuple | ast.List) else []
                paired = len(sources) == len(target.elts)
                for index, part in enumerate(target.elts):
                    one = self.values.get(sources[index], OTHER) if paired else _part(value, index)
                    self._bind(part, one, None)
            case ast.Starred():
                self._bind(target.value, Value(Kind.MANY, value.inputs) if value.kind is Kind.TENSOR else value, None)
            case _:
                self.value(target)
                if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                    held = self.env.get(target.value.id, OTHER)
                    if held.kind is Kind.OTHER and value.kind in (Kind.TENSOR, Kind.MANY):
                        self.env[target.value.id] = Value(Kind.MANY)
                if isinstance(target, ast.Attribute):
                    self.env[ast.unparse(target)] = value

    def _each(self, value: Value) -> Value:
        if value.known and isinstance(value.live, torch.nn.ModuleList | torch.nn.Sequential | list | tuple | range):
            kinds = [of_live(part) for part in value.live]
            return kinds[0] if len(kinds) == 1 else join(*kinds) if kinds else OTHER
        if value.kind is Kind.SIZE:
            return OTHER  # the number of a turn
        return element(value)

    # expressions

    def value(self, node: ast.expr) -> Value:
        """Reads an expression."""
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
                found = [self.value(part) for part in (node.left, *node.comparators)]
                if any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops):
                    return OTHER
                if any(part.kind is Kind.SHAPE for part in found):
                    return Value(Kind.SIZE)
                return _computed(*found)
            case ast.IfExp():
                self.value(node.test)
                decided = self.decide(node.test)
                if decided is not _UNDECIDED:
                    return self.value(node.body if decided else node.orelse)
                return join(self.value(node.body), self.value(node.orelse))
            case ast.Tuple() | ast.List() | ast.Set():
                parts = [self.value(part) for part in node.elts]
                return replace(_gathered(parts), items=tuple(parts) if isinstance(node, ast.Tuple) else ())
            case ast.Dict():
                return _gathered([self.value(part) for part in node.values])
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                self._generators(node.generators)
                return _gathered([self.value(node.elt)])
            case ast.DictComp():
                self._generators(node.generators)
                self.value(node.key)
                return _gathered([self.value(node.value)])
            case ast.NamedExpr():
                found_value = self.value(node.value)
                self._bind(node.target, found_value, None)
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

    def _generators(self, generators: list[ast.comprehension]) -> None:
        for one in generators:
            self._bind(one.target, self._each(self.value(one.iter)), None)
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
            except Exception:  # noqa: BLE001 — a property of the user's may raise anything
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
            except Exception:  # noqa: BLE001 — what is looked up may raise anything
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


def _part(value: Value, index: int) -> Value:
    if -len(value.items) <= index < len(value.items):
        return value.items[index]
    if isinstance(value.live, tuple | list) and len(value.live) > index:
        return of_live(value.live[index])
    if value.kind is Kind.SHAPE:
        return Value(Kind.SIZE, axis=(value.direct, index) if value.direct else None)
    return element(value)


def _computed(*parts: Value) -> Value:
    kind = join(*parts).kind
    if kind is Kind.MANY and not any(part.kind is Kind.TENSOR for part in parts):
        return Value(kind)
    return Value(Kind.TENSOR if kind is Kind.MANY else kind)


def _gathered(parts: list[Value]) -> Value:
    found = join(*parts)
    if found.kind in (Kind.TENSOR, Kind.MANY):
        return Value(Kind.MANY, found.inputs)
    if found.kind in (Kind.SIZE, Kind.SHAPE):
        return Value(Kind.SHAPE)
    return Value(found.kind)


_BUILTINS = {id(value) for value in vars(builtins).values() if isinstance(value, types.BuiltinFunctionType | type)}
