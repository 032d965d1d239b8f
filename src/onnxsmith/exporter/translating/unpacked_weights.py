"""Unpacks the weights of PyTorch's quantised kernels into tensors that a trace can follow."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

DTYPES = {torch.quint8: torch.uint8, torch.qint8: torch.int8, torch.qint32: torch.int32}
"""Maps the dtype of a quantised tensor to the dtype of its integers."""
_CONVOLUTION = ("stride", "padding", "output_padding", "dilation", "groups", "transpose")


def decomposed() -> Any:
    """Returns the operators of `quantized_decomposed`, which exist only after their module was imported."""
    importlib.import_module("torch.ao.quantization.fx._decomposed")
    return torch.ops.quantized_decomposed


@dataclass(frozen=True)
class Packed:
    """Stands for a packed weight while its module is traced. The tensors are buffers of `owner`, so that the trace sees
    them; `names` are their names by role (weight, scale, zero_point, bias). `settings` are those of a convolution."""

    owner: torch.nn.Module
    names: Mapping[str, str]
    axis: int
    settings: Mapping[str, Any] = field(default_factory=dict)

    def tensor(self, role: str) -> Any:
        """Returns the tensor of a role; None if there is none."""
        return getattr(self.owner, self.names[role]) if role in self.names else None

    def weight(self) -> Any:
        """Returns the dequantised weight; unchanged if it was packed without integers."""
        weight, scale, zero = (self.tensor(role) for role in ("weight", "scale", "zero_point"))
        if scale is None:
            return weight.to(torch.float32)
        ops, limits = decomposed(), torch.iinfo(weight.dtype)
        if scale.dim() == 0:
            return ops.dequantize_per_tensor.tensor(weight, scale, zero, limits.min, limits.max, weight.dtype)
        return ops.dequantize_per_channel(weight, scale, zero, self.axis, limits.min, limits.max, weight.dtype)


def tensors_of(packed: Any) -> tuple[dict[str, torch.Tensor], int, dict[str, Any]] | None:
    """Returns the tensors of a packed weight by role, the axis of its scales, and the settings of a convolution. None
    for an object of another kind."""
    kind = packed._type().qualified_name() if hasattr(packed, "_type") else ""
    if "Embedding" in kind:
        return _read(torch.ops.quantized.embedding_bag_unpack(packed), None, {})
    if not hasattr(packed, "unpack"):
        return None
    weight, bias = packed.unpack()
    settings = {name: getattr(packed, name)() for name in _CONVOLUTION if hasattr(packed, name)}
    return _read(weight, bias, settings)


def _read(
    weight: torch.Tensor, bias: torch.Tensor | None, settings: dict[str, Any]
) -> tuple[dict[str, torch.Tensor], int, dict[str, Any]] | None:
    found = {} if bias is None else {"bias": bias.detach()}
    if not weight.is_quantized:
        return {"weight": weight, **found}, 0, settings
    if weight.dtype not in DTYPES:
        return None
    found["weight"] = weight.int_repr()
    if weight.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        found["scale"] = torch.tensor(weight.q_scale(), dtype=torch.float64)
        found["zero_point"] = torch.tensor(weight.q_zero_point(), dtype=torch.int64)
        return found, 0, settings
    found["scale"] = weight.q_per_channel_scales()
    found["zero_point"] = weight.q_per_channel_zero_points()
    return found, weight.q_per_channel_axis(), settings


def last(values: Sequence[int], count: int) -> list[int]:
    """Returns the last `count` values: a packed convolution along one axis has settings for two."""
    return list(values)[-count:]
