"""Evaluates the text of a dimension: a name, or an expression written by a file or by shape inference.

Expressions have sums, products, quotients, powers and the calls Max, Min, Mod, floor, ceiling, Abs and Broadcast. Other
texts, and expressions with a name of unknown size, have no value.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

import onnx_ir as ir

from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.signature import Dim, Signature

_NAME = re.compile(r"[^\W\d][\w.]*(?![\w.]|\s*\()")
MADE = re.compile(r"\b_d\d+\b")
"""Matches the names that shape inference makes for sizes that it does not know."""
_MOST = 1 << 40
"""Limits the values that count as a size. A choice: larger than any tensor. A larger power is not computed."""

_DIVISIBLE = 720720
"""Is a size at which every usual expression has a value: it is lcm(1, …, 16), so all numbers up to 16 divide it."""


def _broadcast(*sizes: Fraction) -> Fraction:
    """Returns the size that is not 1. Raises ValueError if the sizes cannot be broadcast."""
    found = {size for size in sizes if size != 1}
    if len(found) > 1:
        raise ValueError("sizes that cannot be broadcast")
    return found.pop() if found else Fraction(1)


_CALLS: dict[str, Callable[..., Any]] = {
    "max": max, "min": min, "mod": operator.mod, "floor": math.floor, "ceiling": math.ceil, "ceil": math.ceil,
    "abs": abs, "broadcast": _broadcast,
}  # fmt: skip
_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip


def written(shape: ir.Shape) -> tuple[Dim | None, ...]:
    """Returns the dimensions as written by the file or by inference: a size, a name or expression, or None."""
    return tuple([dim if isinstance(dim, int) else dim.value for dim in shape])


def evaluate(dim: Dim | None, sizes: Mapping[str, int]) -> int | None:
    """Returns the size of a dimension, 0 or more; None if these sizes give no value."""
    if dim is None or isinstance(dim, int):
        return dim
    if dim in sizes:
        return sizes[dim]
    tree, names = _parsed(dim)
    if tree is None or any(name not in sizes for name in names):
        return None
    try:
        value = _value(tree, [sizes[name] for name in names])
    except (ArithmeticError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return int(value) if value == int(value) and 0 <= value < _MOST else None


def amount(dim: Dim, sizes: Mapping[str, int]) -> Fraction | None:
    """Returns the value of an expression, which may be negative or a fraction; None if these sizes give no value."""
    if isinstance(dim, int):
        return Fraction(dim)
    if dim in sizes:
        return Fraction(sizes[dim])
    tree, names = _parsed(dim)
    if tree is None or any(name not in sizes for name in names):
        return None
    try:
        return _value(tree, [sizes[name] for name in names])
    except (ArithmeticError, ValueError, TypeError, KeyError, RecursionError):
        return None


def is_affine(dim: str) -> bool:
    """Whether an expression has sums, differences, and products and quotients with a number only."""
    tree, _ = _parsed(dim)
    return _is_affine(tree)


def _is_affine(node: ast.expr | None) -> bool:
    match node:
        case ast.Constant() | ast.Name():
            return True
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _is_affine(inner)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            return _is_affine(left) and _is_affine(right)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            number = isinstance(left, ast.Constant) or isinstance(right, ast.Constant)
            return number and _is_affine(left) and _is_affine(right)
        case ast.BinOp(left=left, op=ast.Div(), right=ast.Constant()):
            return _is_affine(left)
    return False


def names_in(dim: str) -> tuple[str, ...]:
    """Returns the names in an expression; none if the text is not an expression."""
    tree, names = _parsed(dim)
    return names if tree is not None else ()


def names_of(shape: ir.Shape | None) -> set[str]:
    """Returns the names in the dimensions of a shape."""
    texts = [dim.value for dim in shape or () if isinstance(dim, ir.SymbolicDim)]
    return {name for text in texts if text for name in names_in(text)}


def texts(model: ir.Model) -> Iterator[str]:
    """Yields the names and expressions of the dimensions of a model; may yield one several times."""
    for value in walk.values_of(walk.graphs(model)):
        for dim in value.shape or ():
            if isinstance(dim, ir.SymbolicDim) and dim.value is not None:
                yield dim.value


def used_names(model: ir.Model) -> set[str]:
    """Returns the names that a new dimension must not have."""
    found = set(texts(model))
    return found.union(*map(names_in, found))


def symbols(signature: Signature) -> tuple[str, ...]:
    """Returns the symbols that need sizes: the signature's symbols, and dimensions that cannot be computed from them.

    A file may contain an expression that shape inference made up, such as `Broadcast(batch, unk__12)`. Then the names
    in it are symbols, and so is the whole dimension, whose size is found by trial. A text that is not an expression is
    a symbol, too."""
    found = list(signature.symbols())
    large, small = dict.fromkeys(found, _DIVISIBLE), dict.fromkeys(found, 1)  # `32 - seq` has a value at 1 only
    for port in signature.required():
        for dim in port.shape or ():
            if not isinstance(dim, str) or (is_affine(dim) and all(name in large for name in names_in(dim))):
                continue
            if evaluate(dim, large) is None and evaluate(dim, small) is None:
                found.append(dim)
                large[dim], small[dim] = _DIVISIBLE, 1
    return tuple(found)


@lru_cache(maxsize=8192)
def _parsed(text: str) -> tuple[ast.expr | None, tuple[str, ...]]:
    """Returns the syntax tree, with the n-th name written as `_n`, and the names. The tree is None if the text is not
    an expression."""
    names: dict[str, int] = {}
    plain = _NAME.sub(lambda match: f"_{names.setdefault(match[0], len(names))}", text)
    try:
        return ast.parse(plain.strip(), mode="eval").body, tuple(names)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None, ()


def _value(node: ast.expr, sizes: list[int]) -> Fraction:
    match node:
        case ast.Constant(value=int() as number):
            return Fraction(number)
        case ast.Constant(value=float() as number):
            return Fraction(str(number))  # as it is written: 0.1 is a tenth
        case ast.Name(id=name):
            return Fraction(sizes[int(name[1:])])
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner, sizes)
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() as power)) if 0 <= power <= 8:
            return _value(left, sizes) ** power
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return Fraction(_OPERATORS[type(op)](_value(left, sizes), _value(right, sizes)))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name.lower() in _CALLS:
            return Fraction(_CALLS[name.lower()](*(_value(argument, sizes) for argument in arguments)))
    raise ValueError("not an expression over sizes")
