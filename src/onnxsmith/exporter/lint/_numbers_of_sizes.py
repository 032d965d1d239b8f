"""Writes calls that take a size as a Python number, such as `np.arange(x.shape[0])`, with functions that take sizes."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
import torch

from onnxsmith.exporter.lint._values import Kind
from onnxsmith.exporter.lint.base import Code, New
from onnxsmith.exporter.lint.numpy import astype, same_name

_SIZES = (Kind.SIZE, Kind.SHAPE)
FOLLOW_SIZES = frozenset(["sqrt", "isqrt", "log2", "log", "log10", "pow", "fabs", "floor", "ceil", "trunc", "prod"])
"""Names functions of math that give a symbolic number for a size while a module is traced."""
_DOUBLE = frozenset(["zeros", "ones", "empty", "eye", "linspace", "logspace"])
"""Names functions whose dtype is float64 in numpy and float32 in torch, if the call names none."""


def of_python(node: ast.Call, live: Any, code: Code) -> New | None:
    """Returns the new code for `int`, `float`, `len`, `list` or a function of math; None if there is none."""
    first = node.args[0]
    if live is int:
        return whole(first, code)
    match live, first:
        case _, ast.Call(func=ast.Name(id="range"), args=[stop]) if live is len:
            return stop
        case _, ast.Call(func=ast.Name(id="range")) if live is list and code.torch:
            return ast.Call(ast.Attribute(ast.Name(code.torch), "arange"), first.args, [])
    if live is float and code.torch:
        return ast.Call(ast.Attribute(ast.Name(code.torch), "sym_float"), [first], [])
    name = str(getattr(live, "__name__", ""))
    if getattr(live, "__module__", "") == "math" and len(node.args) == 1 and code.torch and hasattr(torch, name):
        own = ast.Name(code.torch)
        number = ast.Call(
            ast.Attribute(own, "full"), [ast.Tuple([]), first], [ast.keyword("dtype", ast.Attribute(own, "float64"))]
        )
        return ast.Call(ast.Attribute(own, name), [number], [])
    return None


def whole(size: ast.expr, code: Code) -> ast.expr:
    """Returns the size without a conversion. An expression of sizes may be a fraction, which int truncates, so it keeps
    torch.sym_int."""
    is_direct = isinstance(size, ast.Subscript | ast.Attribute | ast.Name | ast.Constant)
    is_size_of = isinstance(size, ast.Call) and isinstance(size.func, ast.Attribute) and size.func.attr == "size"
    if is_direct or is_size_of or not code.torch:
        return size
    return ast.Call(ast.Attribute(ast.Name(code.torch), "sym_int"), [size], [])


def of_numpy(node: ast.Call, live: Any, code: Code) -> New | None:
    """Returns the new code for a function of numpy: the same function of torch or of math, or the size itself."""
    name = str(getattr(live, "__name__", ""))
    first = node.args[0] if node.args else None
    if isinstance(live, type) and issubclass(live, np.integer) and first is not None:
        return whole(first, code)
    if name in ("prod", "sqrt") and first is not None and _is_number(first, name, code):
        if isinstance(first, ast.Attribute) and first.attr == "shape" and name == "prod":
            return ast.Call(ast.Attribute(first.value, "numel"), [], [])
        return ast.Call(ast.Attribute(ast.Name("math"), name), node.args, []) if "math" in code.flow.scope else None
    new = same_name(node, code, code.flow.kind(first) if first is not None else Kind.OTHER)
    if not isinstance(new, ast.Call) or not isinstance(new.func, ast.Attribute):
        return None
    if new.func.attr == "as_tensor" or not callable(getattr(torch, new.func.attr, None)):
        return None
    return _with_dtype(new, code)


def _is_number(first: ast.expr, name: str, code: Code) -> bool:
    """Whether the function gives a number of the sizes, not an array."""
    return name == "prod" or code.flow.kind(first) is Kind.SIZE


def _with_dtype(call: ast.Call, code: Code) -> New | None:
    """Returns the call with torch's dtype in place of numpy's; None if torch has no such dtype."""
    assert isinstance(call.func, ast.Attribute)
    words = {word.arg: word.value for word in call.keywords}
    if "dtype" in words:
        try:
            name = np.dtype(code.flow.live(words["dtype"])).name
        except TypeError:
            return None
        if not hasattr(torch, name):
            return None
    elif call.func.attr in _DOUBLE:
        name = "float64"
    else:
        return call
    words["dtype"] = ast.Attribute(ast.Name(code.torch), name)
    return ast.Call(call.func, call.args, [ast.keyword(arg, value) for arg, value in words.items()])


def readers(code: Code) -> dict[ast.AST, New]:
    """Returns the new code for the lines that read an array made of sizes: they get a tensor then."""
    found: dict[ast.AST, New] = {}
    for node in code.flow.values:
        match node:
            case ast.Call(func=ast.Attribute(attr="from_numpy"), args=[array]) if _of_sizes(array, code):
                found[node] = array
            case ast.Call(func=ast.Attribute(attr="tensor", value=owner) as called, args=[array, *_]) if _of_sizes(
                array, code
            ):
                found[called] = ast.Attribute(owner, "as_tensor")
            case ast.Call(func=ast.Attribute(attr="astype", value=array)) if code.flow.kind(array) in _SIZES:
                new = astype(node, code)
                found.update({} if new is None else {node: new})
    return found


def _of_sizes(array: ast.expr, code: Code) -> bool:
    """Whether the expression is an array of numpy that was made of sizes, not a list of sizes."""
    return code.flow.kind(array) is Kind.SIZE
