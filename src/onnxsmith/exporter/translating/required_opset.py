"""Finds the opset that a quantised program needs: blocks and integers of 4 bits exist since opset 21."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram

from onnxsmith.exporter.translations._quantizing import bits

_BLOCKS = 21
"""The first opset whose QuantizeLinear and DequantizeLinear have `block_size`, 4-bit and 16-bit integers."""
_NARROW = 4
"""Bits of the integers that opset 21 added."""
_WIDE = (torch.int16, torch.uint16)


def needed(exported: ExportedProgram) -> int:
    """Returns the opset that the program needs; 0 if no operator needs a newer one."""
    return _BLOCKS if any(_asks(node) for node in exported.graph.nodes) else 0


def _asks(node: Any) -> bool:
    name = str(node.target)
    if "quantize_per_channel_group" in name:
        return True
    if not name.startswith(("quantized_decomposed.", "torchao.", "aten.fake_quantize")):
        return False
    if any(value in _WIDE for value in node.args if isinstance(value, torch.dtype)):
        return True
    numbers = [value for value in node.args[-3:] if isinstance(value, int) and not isinstance(value, bool)]
    is_narrow = len(numbers) >= 2 and bits(*numbers[-2:]) == _NARROW
    return is_narrow or (name.startswith("torchao.dequantize_affine") and _is_blocked(node))


def _is_blocked(node: Any) -> bool:
    sizes, blocks = node.args[0].meta["val"].shape, node.args[1]
    return any(block not in (1, size) for size, block in zip(sizes, blocks, strict=True))
