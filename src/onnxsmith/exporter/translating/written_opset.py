"""Chooses the opset in which torch's exporter writes a program.

A quantised program may need a newer one than asked for: blocks and integers of 4 bits exist since opset 21.
"""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import torch
from torch.export import ExportedProgram

from onnxsmith.exporter.translations._quantizing import bits
from onnxsmith.graph.structure import allowed_dtypes, schema, walk
from onnxsmith.graph.surgery import opset_conversion

_OLDEST, _NEWEST = 18, 23
"""torch 2.13's exporter emits opsets from the first to the second. For any other opset the model is converted."""
_BLOCKS = 21
"""QuantizeLinear and DequantizeLinear have, from this opset on, `block_size`, 4-bit and 16-bit integers."""
_NARROW = 4
"""Opset 21 added integers of this many bits."""
_WIDE = (torch.int16, torch.uint16)


def chosen(exported: ExportedProgram, asked: int | None, *, own: bool) -> int | None:
    """Returns the opset in which torch's exporter writes; None leaves it to the exporter. `own` says whether the
    translations of this package are used, which write blocks and integers of 4 bits."""
    needed = _BLOCKS if own and any(_asks(node) for node in exported.graph.nodes) else 0
    if asked is None:
        return needed or None
    return min(max(asked, needed, _OLDEST), _NEWEST)


def for_dtypes(model: ir.Model) -> int:
    """Returns the first opset in which all operators take their bfloat16 operands; 0 if they do already, or if no opset
    that can be written has them."""
    lacking = [one.since for one in allowed_dtypes.refused(model, ir.DataType.BFLOAT16)]
    known = [since for since in lacking if since is not None and since <= _NEWEST]
    return max(known) if known else 0


def for_operators(model: ir.Model) -> int:
    """Returns the first opset that has all operators of the model, such as those that a translation of the user wrote;
    0 if its own has them, or if no opset that can be written does. From there the model is converted to the opset that
    was asked for, which a file that declares an older opset than its operators have cannot be."""
    declared = opset_conversion.of(model)
    used = {node.op_type for graph in walk.main_graphs(model) for node in graph if node.domain in ("", "ai.onnx")}
    needed = max((min(schema.versions(op_type, ""), default=0) for op_type in used), default=0)
    return needed if declared < needed <= _NEWEST else 0


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
