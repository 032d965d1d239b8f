"""Computes with quantised tensors of PyTorch while a module is traced: torch.export cannot trace them.

A quantised tensor is represented by its floats, as QuantizeLinear and DequantizeLinear give them. Its scale, zero point
and dtype are remembered, because the results of many operators of PyTorch take the parameters of their input.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.exporter.translating.quantized_operators import COMPUTED, CONTINUED, arguments, parameters
from onnxsmith.exporter.translating.unpacked_weights import DTYPES, decomposed

_SAME = {
    "__getitem__", "alias", "alpha_dropout", "amax", "channel_shuffle", "chunk", "clone", "contiguous", "cpu", "detach",
    "dropout", "expand", "flatten", "flip", "index_select", "max_pool1d", "max_pool2d", "max_pool3d", "movedim",
    "narrow", "native_channel_shuffle", "permute", "pixel_shuffle", "pixel_unshuffle", "relu", "relu_", "repeat",
    "reshape", "reshape_as", "roll", "select", "split", "squeeze", "swapaxes", "t", "transpose", "unbind", "unflatten",
    "unfold", "unsqueeze", "view", "view_as",
}  # fmt: skip
"""Names functions whose results are elements of their input, or zero, and need no new rounding."""
_AGAIN = {
    "_adaptive_avg_pool2d", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "avg_pool1d",
    "avg_pool2d", "avg_pool3d", "cat", "clamp", "clamp_", "concat", "elu", "hardtanh", "hardtanh_", "interpolate",
    "leaky_relu", "leaky_relu_", "mean", "pad", "relu6", "relu6_", "stack", "threshold", "upsample",
    "upsample_bilinear", "upsample_nearest",
}  # fmt: skip
"""Names functions whose results PyTorch quantises again with the parameters of their (first) input."""
_FIXED = {"sigmoid": (1 / 256, 0), "hardsigmoid": (1 / 256, 0), "tanh": (2 / 256, 128)}
"""Maps functions whose results have a scale and a zero point of their own to these, for quint8
(ATen/native/quantized/cpu)."""


@dataclass(frozen=True)
class Kind:
    """The parameters of a quantised tensor; `dtype` is that of its integers."""

    scale: Any
    zero_point: Any
    dtype: torch.dtype
    axis: int | None = None


class QuantizedTensors(TorchFunctionMode):
    """Computes functions of quantised tensors with floats in the block, and quantises their results as PyTorch does."""

    def __init__(self) -> None:
        super().__init__()
        self._held: dict[int, tuple[Any, Kind]] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = _name(func)
        own = _OWN.get(name)
        if own is not None:
            return own(self, *args, **kwargs)
        if name.startswith("quantized."):
            return self._operator(func, name.partition(".")[2], args, kwargs)
        if name == "linear" and is_int8(args[1:2]):
            return int8_linear(*args, **kwargs)
        if not self._held:
            return func(*args, **kwargs)
        return self._on_held(func, name, args, kwargs)

    def _operator(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        """Computes an operator of `torch.ops.quantized`."""
        given = arguments(func, args, kwargs)
        scale, zero_point = (_number(value) for value in parameters(given))
        first = next((kind for one in _leaves(args) if (kind := self.kind(one)) is not None), None)
        compute = COMPUTED.get(name)
        if compute is not None and scale is not None:
            return self.quantised(compute(**given), Kind(scale, zero_point, first.dtype if first else torch.uint8))
        if name in CONTINUED:
            made = CONTINUED[name](**given)
            return made if first is None else self.quantised(made, first)
        if first is not None and isinstance(given.get("b"), int | float):
            moved = _moved(name, first, float(given["b"]))
            if moved is not None:
                return self.quantised(moved.of(given["qa"]), moved.kind)
        raise untranslated(f"torch.ops.quantized.{name}")

    def quantised(self, x: Any, kind: Kind) -> Any:
        """Quantises x and returns it as floats."""
        limits = torch.iinfo(kind.dtype)
        last = (limits.min, limits.max, kind.dtype)
        ops = decomposed()
        if kind.axis is None:
            form = "tensor" if isinstance(kind.scale, torch.Tensor) else "default"
            q = getattr(ops.quantize_per_tensor, form)(x, kind.scale, kind.zero_point, *last)
            made = getattr(ops.dequantize_per_tensor, form)(q, kind.scale, kind.zero_point, *last)
        else:
            given = (kind.scale, kind.zero_point, kind.axis, *last)
            made = ops.dequantize_per_channel(ops.quantize_per_channel(x, *given), *given)
        return self.held(made, kind)

    def held(self, made: Any, kind: Kind) -> Any:
        """Remembers that the tensors in `made` are quantised."""
        for one in made if isinstance(made, list | tuple) else (made,):
            if isinstance(one, torch.Tensor):
                self._held[id(one)] = (one, kind)
        return made

    def kind(self, x: Any) -> Kind | None:
        """Returns the parameters of a quantised tensor; None for another tensor."""
        found = self._held.get(id(x))
        return None if found is None else found[1]

    def _on_held(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        first = next((kind for one in _leaves((args, kwargs)) if (kind := self.kind(one)) is not None), None)
        if first is None:
            return func(*args, **kwargs)
        made = func(*args, **kwargs)
        if name in _SAME:
            return self.held(made, first)
        if name in _AGAIN:
            return self.quantised(made, first)
        if name in _FIXED:
            return self.quantised(made, Kind(*_FIXED[name], first.dtype))
        if not any(isinstance(one, torch.Tensor) for one in _leaves(made)):
            return made
        raise untranslated(f"{name} of a quantized tensor")


def untranslated(what: str) -> OnnxsmithError:
    """Returns the problem of an operation on quantised tensors without a translation."""
    return problem(
        "export/quantized-module",
        f"{what} has no translation",
        why="the module was quantized in PyTorch, but onnxsmith does not know the scale and zero point that "
        "PyTorch uses for this result",
        fix="compute this operation with floats: insert x.dequantize() before it; or export the float module and "
        "quantize the file: `onnxsmith quantize net.onnx -o small.onnx --to int8 --data samples.npz`",
    )


@dataclass(frozen=True)
class _Moved:
    """The result of an operation with a number: a factor and an addend for the floats, and new parameters."""

    kind: Kind
    factor: float = 1.0
    added: float = 0.0

    def of(self, x: Any) -> Any:
        return x * self.factor if self.factor != 1.0 else x + self.added


def _moved(name: str, kind: Kind, number: float) -> _Moved | None:
    """Finds operations for which PyTorch keeps the integers and changes scale or zero point
    (ATen/native/quantized/cpu/qmul.cpp, qadd.cpp). None for all others."""
    if name in ("mul", "mul_scalar") and number > 0:
        return _Moved(replace(kind, scale=kind.scale * number), factor=number)
    if name in ("add", "add_scalar"):
        steps, limits = round(number / kind.scale), torch.iinfo(kind.dtype)
        if limits.min <= kind.zero_point - steps <= limits.max:
            return _Moved(replace(kind, zero_point=kind.zero_point - steps), added=steps * kind.scale)
    return None


def _name(func: Any) -> str:
    if type(func).__name__ in ("OpOverloadPacket", "OpOverload"):
        text = str(func)
        space, _, rest = text.partition(".")
        operator = rest.partition(".")[0]
        return operator if space == "aten" else f"{space}.{operator}"
    name: str = getattr(func, "__name__", "")
    if name == "__get__":
        return f"get {getattr(getattr(func, '__self__', None), '__name__', '')}"
    return name


def _leaves(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, list | tuple):
        return [leaf for one in tree for leaf in _leaves(one)]
    return [tree]


def _number(value: Any) -> Any:
    """Returns a Python number, also from a tensor whose value the trace knows."""
    if not isinstance(value, torch.Tensor):
        return value
    return value.item() if value.numel() == 1 else value


Own = Callable[..., Any]
_OWN: dict[str, Own] = {}


def _own(*names: str) -> Callable[[Own], Own]:
    def add(function: Own) -> Own:
        _OWN.update(dict.fromkeys(names, function))
        return function

    return add


@_own("quantize_per_tensor")
def _quantize(mode: QuantizedTensors, x: Any, scale: Any, zero_point: Any, dtype: Any) -> Any:
    return mode.quantised(x, Kind(float(scale), int(zero_point), _integers(dtype)))


@_own("quantize_per_channel")
def _quantize_channels(mode: QuantizedTensors, x: Any, scales: Any, zero_points: Any, axis: int, dtype: Any) -> Any:
    return mode.quantised(x, Kind(scales, zero_points, _integers(dtype), int(axis)))


def _integers(dtype: torch.dtype) -> torch.dtype:
    if dtype not in DTYPES:
        raise problem(
            "export/quantized-module",
            f"ONNX's QuantizeLinear cannot express a quantized tensor of {dtype}",
            why="integers of less than 8 bits are packed in PyTorch",
            fix="export the float module, and quantize the file: `onnxsmith quantize net.onnx -o small.onnx --to int4`",
        )
    return DTYPES[dtype]


@_own("dequantize")
def _dequantize(mode: QuantizedTensors, x: Any) -> Any:
    if isinstance(x, list | tuple):
        return type(x)(_dequantize(mode, one) for one in x)
    return torch.ops.aten.alias(x) if mode.kind(x) is not None else x


@_own("get is_quantized")
def _is_quantized(mode: QuantizedTensors, x: Any) -> bool:
    return mode.kind(x) is not None


@_own("q_scale")
def _scale(mode: QuantizedTensors, x: Any) -> Any:
    kind = mode.kind(x)
    return kind.scale if kind else x.q_scale()


@_own("q_zero_point")
def _zero_point(mode: QuantizedTensors, x: Any) -> Any:
    kind = mode.kind(x)
    return kind.zero_point if kind else x.q_zero_point()


@_own("int_repr")
def _int_repr(mode: QuantizedTensors, x: Any) -> Any:
    kind = mode.kind(x)
    if kind is None or kind.axis is not None:
        return x.int_repr()
    limits = torch.iinfo(kind.dtype)
    given = (kind.scale, kind.zero_point, limits.min, limits.max, kind.dtype)
    return decomposed().quantize_per_tensor(x, *given)


# Linear layers whose weight is torchao's Int8Tensor: torchao multiplies integers, which exporters turn into floats.


def is_int8(values: Any) -> bool:
    """Whether the weight is an Int8Tensor. torchao is not imported: it need not be installed."""
    kind = type(values[0]) if values else None
    return kind is not None and kind.__name__ == "Int8Tensor" and kind.__module__.startswith("torchao")


def int8_linear(x: Any, weight: Any, bias: Any = None) -> Any:
    """Multiplies with the dequantised weight. If the weight asks for it, x is quantised first: row by row at run time,
    or with a stored scale."""
    if weight.act_pre_scale is not None:
        x = x * weight.act_pre_scale
    given = weight.act_quant_kwargs
    if given is not None:
        rows, scale, zero = _quantised(x, weight)
        one, none = torch.ones(()), torch.zeros((), dtype=torch.int8)
        whole = torch.ops.torchao.dequantize_affine(rows, list(rows.shape), one, none, torch.int8)
        if zero is not None:
            whole = whole - zero.to(torch.float32)
        made = functional.linear(whole, _dequantised(weight)) * scale.to(torch.float32)
        return made if bias is None else made + bias
    return functional.linear(x, _dequantised(weight).to(x.dtype), bias)


def _dequantised(weight: Any) -> Any:
    return torch.ops.torchao.dequantize_affine(
        weight.qdata, list(weight.block_size), weight.scale, weight.zero_point, torch.int8, -128, 127,
        output_dtype=torch.float32,
    )  # fmt: skip


def _quantised(x: Any, weight: Any) -> tuple[Any, Any, Any]:
    """Quantises x by torchao's own function; returns integers, scales and zero points."""
    chosen = sys.modules["torchao.quantization.quantize_.common"]._choose_quant_func_and_quantize_tensor(
        x, weight.act_quant_kwargs, scale=weight.act_quant_scale, zero_point=weight.act_quant_zero_point
    )
    is_symmetric = weight.act_quant_kwargs.mapping_type.name == "SYMMETRIC"
    return chosen.qdata, chosen.scale, None if is_symmetric else chosen.zero_point
