"""Linear layers whose weight is torchao's Int8Tensor: torchao multiplies the integers, which exporters make floats."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch.nn import functional


def is_int8(values: Any) -> bool:
    """Whether the weight is an Int8Tensor. torchao is not imported: it need not be installed."""
    kind = type(values[0]) if values else None
    return kind is not None and kind.__name__ == "Int8Tensor" and kind.__module__.startswith("torchao")


def int8_linear(x: Any, weight: Any, bias: Any = None) -> Any:
    """The product with the dequantised weight. If the weight says how, x is quantised before: row by row at run time,
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
    """x in integers, with its scales and zero points, by torchao's own function."""
    chosen = sys.modules["torchao.quantization.quantize_.common"]._choose_quant_func_and_quantize_tensor(
        x, weight.act_quant_kwargs, scale=weight.act_quant_scale, zero_point=weight.act_quant_zero_point
    )
    is_symmetric = weight.act_quant_kwargs.mapping_type.name == "SYMMETRIC"
    return chosen.qdata, chosen.scale, None if is_symmetric else chosen.zero_point
