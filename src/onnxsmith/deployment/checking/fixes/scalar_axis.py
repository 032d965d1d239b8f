"""Makes the axis of a CumSum a scalar."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import onnx_ir as ir

from onnxsmith.deployment.checking.fixes._shaped_copy import Places, constant
from onnxsmith.deployment.checking.fixes.base import Fix


class ScalarAxis(Fix):
    """By the specification, the axis of a CumSum is a scalar. Runtimes also take a tensor of one element, but compilers
    may not.

    Refused:
    1. The axis is computed, or a scalar already.
    """

    rank = 8

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        places = Places.of(model)
        for op in ("CumSum", "CumProd"):
            for node in places.nodes(op):
                axis = constant(node.inputs[1])
                if axis is None or axis.ndim != 1 or axis.size != 1:
                    continue
                node.replace_input_with(1, places.inserter(node).constant(axis[0], axis.dtype))
                places.changed += 1
        if places.changed:
            yield "the axis of a CumSum is a scalar", places.model
