"""The values of int64 constants must fit in int32."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onnxsmith.targets.profiles.condition_result import Finding, refused, unknown
from onnxsmith.targets.profiles.node_facts import Subject
from onnxsmith.targets.profiles.rules.base import GraphRule

_INT32 = np.iinfo(np.int32)


@dataclass(frozen=True)
class Int64InInt32(GraphRule):
    """Constants of dtype int64 must hold values from -2147483648 to 2147483647.

    For targets that convert int64 to int32. Int64 tensors that are computed at run time cannot be judged. Ends of a
    `Slice` are left out: exporters write the largest int64 there for "up to the end", and converters clamp it.

    Source: TensorRT's parser before version 9 ("Attempting to cast down to INT32", "outside the range of INT32 was
    clamped"), onnx-tensorrt's operators.md of TensorRT 8.
    """

    source = "https://github.com/onnx/onnx-tensorrt/blob/8.4-GA/docs/operators.md"

    def judge(self, subject: Subject) -> Finding | None:
        doubt = None
        for slot in subject.operands:
            if slot.dtype not in ("int64", None) or (subject.name == "Slice" and slot.name == "ends"):
                continue
            array = subject.array(slot) if slot.dtype is not None else None
            if array is None:
                doubt = doubt or unknown(f"{slot.name} may hold int64 values that are known at run time only")
            elif array.size and (array.min() < _INT32.min or array.max() > _INT32.max):
                return refused(f"{slot.name} holds values outside int32", self.source)
        return doubt
