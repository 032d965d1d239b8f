"""The values that calls return: tensor methods, builtins, functions of torch and numpy."""

from __future__ import annotations

from typing import Any

import torch

from onnxsmith.exporter.lint._values import OTHER, TENSOR, Kind, Value, join

TAKES_VALUE = {"item", "tolist", "__int__", "__float__", "__bool__"}
VIEWS = frozenset(
    [
        "view",
        "reshape",
        "transpose",
        "permute",
        "unsqueeze",
        "squeeze",
        "detach",
        "expand",
        "expand_as",
        "narrow",
        "select",
        "flatten",
        "swapaxes",
        "movedim",
        "t",
        "contiguous",
        "to",
        "float",
        "view_as",
        "requires_grad_",
        "unfold",
        "diagonal",
    ]
)
_SEVERAL = frozenset(
    ["split", "chunk", "unbind", "tensor_split", "split_with_sizes", "hsplit", "vsplit", "dsplit", "unsafe_chunk"]
)
_PLAIN = frozenset(["dim", "ndimension", "stride", "element_size", "get_device", "type", "storage_offset", "data_ptr"])
_PLAIN_ATTRIBUTES = frozenset(["ndim", "dtype", "device", "requires_grad", "layout", "names", "grad_fn"])
_PLAIN_TORCH = frozenset(["device", "finfo", "iinfo", "Size", "numel", "no_grad"])
_CONVERT = {int, float, bool, complex}


def of_attribute(base: Value, name: str) -> Value:
    """Returns the value of an attribute: `tensor.name`."""
    if base.kind is Kind.TENSOR:
        if name == "shape":
            return Value(Kind.SHAPE, direct=base.direct)
        if name in _PLAIN_ATTRIBUTES or name.startswith("is_"):
            return OTHER
        return Value(Kind.TENSOR, base.inputs) if not callable(getattr(torch.Tensor, name, None)) else OTHER
    if base.kind is Kind.MANY:
        return Value(Kind.TENSOR, base.inputs) if not hasattr(dict, name) and not hasattr(list, name) else OTHER
    if base.kind is Kind.ARRAY:
        return base
    return OTHER


def of_method(base: Value, name: str, args: list[Value]) -> Value:
    """Returns the result of a method: `tensor.name(…)`, and methods of containers and arrays."""
    if base.kind is Kind.TENSOR:
        if name in TAKES_VALUE:
            return Value(Kind.VALUE)
        if name == "numpy":
            return Value(Kind.ARRAY)
        if name == "size":
            return Value(Kind.SIZE if args else Kind.SHAPE)
        if name == "numel":
            return Value(Kind.SIZE)
        if name in _PLAIN or name.startswith(("is_", "has_")):
            return OTHER
        if name in _SEVERAL:
            return Value(Kind.MANY, base.inputs)
        return Value(Kind.TENSOR, base.inputs if name in VIEWS else frozenset())
    if base.kind is Kind.MANY:
        if name in ("items", "values", "copy", "keys"):
            return Value(Kind.OTHER if name == "keys" else Kind.MANY, base.inputs)
        return Value(Kind.TENSOR, base.inputs) if name in ("get", "pop", "popitem", "setdefault") else OTHER
    if base.kind in (Kind.ARRAY, Kind.VALUE, Kind.SIZE, Kind.SHAPE):
        return Value(Kind.SIZE if base.kind is Kind.SHAPE else base.kind)
    return OTHER


def of_builtin(function: Any, args: list[Value]) -> Value:
    """Returns the result of a builtin: `int(…)`, `range(…)`, `zip(…)` and others."""
    if function is isinstance and len(args) == 2:
        return _is_instance(args[0], args[1].live)
    kinds = {value.kind for value in args}
    tensors = Kind.TENSOR in kinds or Kind.MANY in kinds
    if function in _CONVERT:
        if Kind.TENSOR in kinds:
            return Value(Kind.VALUE)
        return Value(args[0].kind) if args and args[0].kind in (Kind.VALUE, Kind.SIZE, Kind.ARRAY) else OTHER
    if function is len:
        return (
            Value(Kind.SIZE, axis=(args[0].direct, 0) if args[0].direct else None)
            if (args and args[0].kind is Kind.TENSOR)
            else OTHER
        )
    if function in (zip, enumerate, reversed, list, tuple, sorted, dict, map, filter, iter):
        if Kind.ARRAY in kinds or Kind.VALUE in kinds:
            return Value(Kind.VALUE)
        whole = {value.kind for value in args}
        if tensors:
            return Value(Kind.MANY, join(*args).inputs)
        return Value(Kind.SHAPE) if whole & {Kind.SHAPE, Kind.SIZE} else OTHER
    if function in (range, min, max, sum, abs, round, divmod, pow, slice, next):
        if function in (sum, abs, next, round, pow) and tensors:
            return TENSOR
        if tensors:
            return Value(Kind.VALUE if function is range else Kind.TENSOR)
        found = join(*args)
        return Value(Kind.SIZE if found.kind is Kind.SHAPE else found.kind, axis=found.axis)
    return OTHER


def _is_instance(value: Value, kind: Any) -> Value:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not all(isinstance(one, type) for one in kinds):
        return OTHER
    if value.kind is Kind.TENSOR:
        return Value(live=any(issubclass(torch.Tensor, one) for one in kinds))
    return Value(live=isinstance(value.live, kinds)) if value.known else OTHER


def of_torch(name: str, args: list[Value]) -> Value:
    """Returns the result of `torch.name(…)` or a function of torch's modules."""
    if name in ("is_tracing", "is_scripting"):
        return Value(live=False)  # the linter reads forward as an eager call runs it
    if name in _PLAIN_TORCH or name.lstrip("_").startswith(("is_", "has_", "are_", "get_", "set_")):
        return Value(Kind.SIZE) if name == "numel" else OTHER
    if name in _SEVERAL or name in ("meshgrid", "broadcast_tensors", "while_loop", "cond", "scan", "nonzero_tuple"):
        return Value(Kind.MANY)
    inputs = args[0].inputs if args and name in VIEWS else frozenset[str]()
    return Value(Kind.TENSOR, inputs)
