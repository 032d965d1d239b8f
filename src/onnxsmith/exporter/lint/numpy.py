"""Finds numpy in forward."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import torch

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.lint._values import Kind
from onnxsmith.exporter.lint.base import Check, Code, New, Remark

_OTHER_NAME = {
    "concatenate": "cat", "power": "pow", "absolute": "abs", "multiply": "mul", "subtract": "sub", "divide": "div",
    "random.rand": "rand", "array": "as_tensor", "asarray": "as_tensor", "max": "amax", "min": "amin", "amax": "amax",
    "amin": "amin", "arctan": "atan", "arcsin": "asin", "arccos": "acos", "expand_dims": "unsqueeze",
}  # fmt: skip

_LIBRARIES = ("numpy", "scipy", "skimage", "cv2")
"""Names the libraries that compute on the values of arrays."""
_LIMITS = {"maximum": "min", "minimum": "max"}
"""Maps functions that torch has for two tensors only to the keyword of clamp that replaces them for a number."""


class Numpy(Check):
    """Finds functions of numpy on tensors, `.numpy()`, and torch.from_numpy."""

    nodes = (ast.Call,)

    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        assert isinstance(node, ast.Call)
        flow = code.flow
        kinds = {flow.kind(part) for part in (*node.args, *(word.value for word in node.keywords))}
        new: New | None = None
        match node.func:
            case ast.Attribute(value=value, attr="numpy") if flow.kind(value) is Kind.TENSOR:
                new = value
            case ast.Attribute(attr="from_numpy") if Kind.ARRAY in kinds:
                new = node.args[0]
            case ast.Attribute(attr="tensor" | "as_tensor") if Kind.ARRAY in kinds and code.torch:
                new = node.args[0]
            case ast.Attribute(value=value, attr="astype") if flow.kind(value) is Kind.ARRAY:
                new = astype(node, code)
            case _ if self._is_array_function(node, code) and kinds & {Kind.TENSOR, Kind.ARRAY, Kind.MANY}:
                new = same_name(node, code, flow.kind(node.args[0]) if node.args else Kind.OTHER)
            case _:
                return
        yield Remark(
            Problem(
                "forward/numpy",
                "forward computes with numpy",
                why="numpy needs values, but tensors have no values while torch.export traces; a TorchScript trace "
                "would keep numpy's result as a constant",
                fix=_fix(node, new, code),
            ),
            node,
            swaps={} if new is None else {node: new},
        )

    def _is_array_function(self, node: ast.Call, code: Code) -> bool:
        live = code.flow.live(node.func)
        home = str(getattr(live, "__module__", "") or type(live).__module__)
        return home.partition(".")[0] in _LIBRARIES or type(live).__module__.partition(".")[0] in _LIBRARIES


def _fix(node: ast.Call, new: New | None, code: Code) -> str:
    """Returns the fix: torch's own function, if it has one that computes the same."""
    if isinstance(new, ast.Call):
        return f"use torch: {ast.unparse(new)}"
    if new is not None:
        return "leave the conversion out, and compute with the tensor"
    name = ast.unparse(node.func)
    own = node.func.attr if isinstance(node.func, ast.Attribute) else name
    if own == "numpy" or (code.torch and hasattr(torch, own)):
        return "use functions of torch on the tensor"
    return (
        f"torch has no function {own}; build {name} from torch's operations, or compute its result before the model "
        "runs and pass the result as an input"
    )


def same_name(node: ast.Call, code: Code, first: Kind) -> New | None:
    """Returns the call of torch's function with this name; None if torch has no such function."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    name = _OTHER_NAME.get(name, name)
    if name == "as_tensor" and first in (Kind.TENSOR, Kind.ARRAY):
        return node.args[0]
    if not code.torch or not hasattr(torch, name) or (name in ("abs", "as_tensor") and first is Kind.MANY):
        return None
    match node.args:
        case [values, ast.Constant() | ast.UnaryOp(operand=ast.Constant()) as limit] if name in _LIMITS:
            return ast.Call(ast.Attribute(ast.Name(code.torch), "clamp"), [values], [ast.keyword(_LIMITS[name], limit)])
    words = [ast.keyword("dim" if word.arg == "axis" else word.arg, word.value) for word in node.keywords]
    words = [ast.keyword("keepdim" if word.arg == "keepdims" else word.arg, word.value) for word in words]
    return ast.Call(ast.Attribute(ast.Name(code.torch), name), node.args, words)


def astype(node: ast.Call, code: Code) -> New | None:
    """Returns `.to(dtype)` in place of `.astype(dtype)`; None if torch has no such dtype."""
    assert isinstance(node.func, ast.Attribute)
    match node.args:
        case [ast.Attribute(attr=name)] if code.torch and hasattr(torch, name):
            dtype = ast.Attribute(ast.Name(code.torch), name)
        case [ast.Constant(value=str() as name)] if code.torch and hasattr(torch, name):
            dtype = ast.Attribute(ast.Name(code.torch), name)
        case _:
            return None
    return ast.Call(ast.Attribute(node.func.value, "to"), [dtype], [])
