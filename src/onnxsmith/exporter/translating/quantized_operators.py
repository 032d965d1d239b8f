"""Computes the operators of `torch.ops.quantized` with floats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.nn import functional

from onnxsmith.base.seams.torch import operators
from onnxsmith.exporter.translating.unpacked_weights import Packed, decomposed, last

_SCALES = ("output_scale", "Y_scale_i", "scale")
_ZEROS = ("output_zero_point", "Y_zero_point_i", "zero_point")
_SMALLEST = 6.1e-5
"""PyTorch chooses no smaller scale than this at run time (ATen/native/quantized/cpu/QuantUtils.h)."""
_MOST = 255
"""quint8 has no larger integer than this."""


def arguments(func: Any, args: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a call by name, from the first overload that takes as many."""
    packet = func if hasattr(func, "overloads") else func.overloadpacket
    for overload in packet.overloads():
        taken = operators.schema(getattr(packet, overload)).arguments
        names = [one.name for one in taken]
        needed = [one.name for one in taken if not one.has_default_value()]
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        is_scalar = "Scalar" in overload
        fits = len(args) <= len(names) and set(given) <= set(names) and set(needed) <= set(given)
        if fits and "out" not in names and is_scalar == isinstance(given.get("b"), int | float):
            return given
    return dict(zip(map(str, range(len(args))), args, strict=True)) | dict(kwargs)


def parameters(given: dict[str, Any]) -> tuple[Any, Any]:
    """Removes the scale and the zero point of the result from the arguments and returns them; None if there are
    none."""
    scale, zero = (next((given.pop(name) for name in names if name in given), None) for names in (_SCALES, _ZEROS))
    return scale, zero


def _convolution(qx: Any, packed_weight: Packed) -> Any:
    axes = qx.dim() - 2
    settings = packed_weight.settings
    given = {name: last(settings[name], axes) for name in ("stride", "padding", "dilation")}
    if settings.get("transpose"):
        given["output_padding"] = last(settings["output_padding"], axes)
    kind = "conv_transpose" if settings.get("transpose") else "conv"
    convolve: Any = getattr(functional, f"{kind}{axes}d")
    return convolve(qx, packed_weight.weight(), packed_weight.tensor("bias"), groups=settings["groups"], **given)


def _dynamic_convolution(qx: Any, packed_weight: Packed, reduce_range: bool = False) -> Any:
    return _convolution(_dynamically(qx, reduce_range), packed_weight)


def _added_convolution(qx: Any, qaccum: Any, packed_weight: Packed) -> Any:
    return _convolution(qx, packed_weight) + qaccum


def _linear(X: Any, W_prepack: Packed) -> Any:  # noqa: N803 — the names of the operator's arguments
    return functional.linear(X, W_prepack.weight(), W_prepack.tensor("bias"))


def _dynamic_linear(X: Any, W_prepack: Packed, reduce_range: bool = False) -> Any:  # noqa: N803
    if W_prepack.tensor("scale") is None:
        return _linear(X, W_prepack)
    return _linear(_dynamically(X, reduce_range), W_prepack)


def _dynamically(x: Any, reduce_range: bool) -> Any:
    """Quantises x by its smallest and its largest element, as quant_utils::ChooseQuantizationParams does."""
    most = _MOST // 2 if reduce_range else _MOST
    low, high = x.amin().clamp(max=0.0), x.amax().clamp(min=0.0)
    scale = (high - low) / most
    scale = torch.where(scale == 0, torch.full_like(scale, 0.1), scale).clamp(min=_SMALLEST)
    is_nearer = (low / scale).abs() < most + (high / scale).abs()
    zero = torch.where(is_nearer, -low / scale, most - high / scale).clamp(0, most)
    zero, scale = torch.round(zero).to(torch.int64), scale.to(torch.float64)
    ops, given = decomposed(), (0, _MOST, torch.uint8)
    q = ops.quantize_per_tensor.tensor(x, scale, zero, *given)
    return ops.dequantize_per_tensor.tensor(q, scale, zero, *given)


def _embedding(weight: Packed, indices: Any, pruned_weights: bool = False) -> Any:
    return functional.embedding(indices, weight.weight())


def _batch_norm(qx: Any, weight: Any, bias: Any, mean: Any, var: Any, eps: float) -> Any:
    return functional.batch_norm(qx, mean, var, weight, bias, False, 0.0, eps)


def _layer_norm(input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> Any:  # noqa: A002
    return functional.layer_norm(input, normalized_shape, weight, bias, eps)


def _group_norm(input: Any, num_groups: int, weight: Any, bias: Any, eps: float) -> Any:  # noqa: A002
    return functional.group_norm(input, num_groups, weight, bias, eps)


def _instance_norm(input: Any, weight: Any, bias: Any, eps: float) -> Any:  # noqa: A002
    return functional.instance_norm(input, None, None, weight, bias, True, 0.0, eps)


def _leaky_relu(qx: Any, negative_slope: float, inplace: bool) -> Any:
    return functional.leaky_relu(qx, negative_slope)


def _elu(self: Any, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Any:
    return functional.elu(self, alpha)


def _then(compute: Callable[..., Any], end: Callable[..., Any]) -> Callable[..., Any]:
    return lambda **given: end(compute(**given))


def _table() -> dict[str, Callable[..., Any]]:
    found: dict[str, Callable[..., Any]] = {
        "linear": _linear,
        "add": lambda qa, qb: qa + qb,
        "mul": lambda qa, qb: qa * qb,
        "matmul": lambda qa, qb: qa @ qb,
        "cat": lambda qx, dim: torch.cat(qx, dim),
        "conv2d_add": _added_convolution,
        "conv1d": _convolution, "conv2d": _convolution, "conv3d": _convolution,
        "batch_norm": _batch_norm, "batch_norm1d": _batch_norm,
        "batch_norm2d": _batch_norm, "batch_norm3d": _batch_norm,
    }  # fmt: skip
    found |= {f"{name}_relu": _then(compute, torch.relu) for name, compute in found.items()}
    return found | {
        "conv_transpose1d": _convolution, "conv_transpose2d": _convolution, "conv_transpose3d": _convolution,
        "linear_tanh": _then(_linear, torch.tanh),
        "linear_leaky_relu": lambda X, W_prepack, negative_slope: functional.leaky_relu(  # noqa: N803
            _linear(X, W_prepack), negative_slope
        ),
        "layer_norm": _layer_norm,
        "group_norm": _group_norm,
        "instance_norm": _instance_norm,
        "hardswish": lambda input: functional.hardswish(input),  # noqa: A006
        "leaky_relu": _leaky_relu,
        "elu": _elu,
        "celu": lambda self, alpha=1.0: functional.celu(self, alpha),
        "sigmoid": lambda qx: torch.sigmoid(qx),
        "softmax": lambda qx, dim: torch.softmax(qx, dim),
        "prelu": lambda qx, weight: functional.prelu(qx, weight),
    }  # fmt: skip


COMPUTED = _table()
"""Holds the operators whose result is quantised with the scale and zero point among their arguments."""
CONTINUED: dict[str, Callable[..., Any]] = {
    "linear_dynamic": _dynamic_linear,
    "linear_relu_dynamic": _then(_dynamic_linear, torch.relu),
    "linear_dynamic_fp16": _dynamic_linear,
    "linear_relu_dynamic_fp16": _then(_dynamic_linear, torch.relu),
    "conv1d_dynamic": _dynamic_convolution,
    "conv2d_dynamic": _dynamic_convolution,
    "conv3d_dynamic": _dynamic_convolution,
    "conv_transpose1d_dynamic": _dynamic_convolution,
    "conv_transpose2d_dynamic": _dynamic_convolution,
    "conv_transpose3d_dynamic": _dynamic_convolution,
    "embedding_byte": _embedding,
    "relu6": lambda qx, inplace=False: functional.relu6(qx),
    "threshold": lambda qx, threshold, value: functional.threshold(qx, threshold, value),
}
"""Holds the operators whose result is float, or is quantised with the parameters of their input."""
