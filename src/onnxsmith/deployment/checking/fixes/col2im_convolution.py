"""Writes Col2Im as a transposed convolution."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator

import numpy as np
import onnx_ir as ir

from onnxsmith.deployment.checking.fixes._node_replacement import rewritten, sizes
from onnxsmith.deployment.checking.fixes._shaped_copy import Places, constant
from onnxsmith.deployment.checking.fixes.base import Fix
from onnxsmith.graph.surgery.node_insertion import Inserter


class Col2ImConvolution(Fix):
    """Col2Im adds blocks where they overlap. So does a transposed convolution whose kernel puts each element of a block
    in its place, one group for each channel.

    Refused:
    1. The shapes of the image or of the block are computed, or the sizes of the input are symbolic.
    2. The values are not float32.
    """

    rank = 13

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        places = Places.of(model)
        rewritten(places, "Col2Im", _convolution)
        if places.changed:
            yield "Col2Im is a transposed convolution", places.model


def _convolution(node: ir.Node, write: Inserter) -> ir.Value | None:
    columns, image, block = node.inputs[0], constant(node.inputs[1]), constant(node.inputs[2])
    shape = sizes(columns)
    if columns is None or columns.dtype != ir.DataType.FLOAT or image is None or block is None or shape is None:
        return None
    rank, area = len(image), int(math.prod(block))
    strides = _numbers(node, "strides", [1] * rank)
    dilations = _numbers(node, "dilations", [1] * rank)
    pads = _numbers(node, "pads", [0] * 2 * rank)
    channels = shape[1] // area
    reach = [int(dilations[at] * (block[at] - 1) + 1) for at in range(rank)]
    counts = [(int(image[at]) + pads[at] + pads[at + rank] - reach[at]) // strides[at] + 1 for at in range(rank)]
    if math.prod(counts) != shape[2]:
        return None
    rest = [
        int(image[at]) + pads[at] + pads[at + rank] - ((counts[at] - 1) * strides[at] + reach[at]) for at in range(rank)
    ]
    kernel = np.eye(area, dtype=np.float32).reshape(area, 1, *(int(size) for size in block))
    spread = write.op("Reshape", columns, write.constant([shape[0], shape[1], *counts]))
    weight = write.constant(np.tile(kernel, (channels, *[1] * (rank + 1))), np.float32)
    return write.op(
        "ConvTranspose", spread, weight, group=channels, strides=strides, dilations=dilations, pads=pads,
        output_padding=rest,
    )  # fmt: skip


def _numbers(node: ir.Node, name: str, usual: list[int]) -> list[int]:
    found = node.attributes.get(name)
    return list(found.as_ints()) if found is not None else usual
