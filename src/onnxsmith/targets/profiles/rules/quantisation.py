"""Defines conditions on quantised tensors and dtypes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onnxsmith.targets.profiles.condition_result import Finding, refused, unknown
from onnxsmith.targets.profiles.node_facts import Subject
from onnxsmith.targets.profiles.rules.base import GraphRule


@dataclass(frozen=True)
class SymmetricQuantisation(GraphRule):
    """The zero points of QuantizeLinear and DequantizeLinear must be 0.

    A zero point that is left out is 0. `uint8 = false` also refuses the dtype uint8, with any zero point.

    Source: onnx-tensorrt's operators.md, rows QuantizeLinear and DequantizeLinear; its list of quantised types (INT8,
    INT4, FP8, FP4) has no UINT8.
    """

    anchor = ("QuantizeLinear", "DequantizeLinear")
    source = "https://github.com/onnx/onnx-tensorrt/blob/main/docs/operators.md"

    uint8: bool = True

    def judge(self, subject: Subject) -> Finding | None:
        quantised = next(iter(subject.results if subject.node.op_type == "QuantizeLinear" else subject.operands), None)
        if quantised is not None and quantised.dtype == "uint8" and not self.uint8:
            return refused(f"{quantised.name} is uint8; quantised tensors must be int8", self.source)
        for slot in (*subject.named("y_zero_point"), *subject.named("x_zero_point")):
            array = subject.array(slot)
            if array is None:
                return unknown(f"{slot.name} is not constant, so it may differ from 0", self.source)
            if array.astype("float32").any():
                return refused(f"{slot.name} is not 0", self.source)
        if quantised is not None and quantised.dtype is None and not self.uint8:
            return unknown(f"the dtype of {quantised.name} is not known", self.source)
        return None


@dataclass(frozen=True)
class NoInt32Dequantisation(GraphRule):
    """DequantizeLinear must not read int32, the dtype in which quantisers store the bias of a convolution.

    Source: onnx-tensorrt's operators.md, row DequantizeLinear (INT8, FP8, FP4, INT4).
    """

    anchor = ("DequantizeLinear",)
    source = "https://github.com/onnx/onnx-tensorrt/blob/main/docs/operators.md"

    def judge(self, subject: Subject) -> Finding | None:
        for slot in subject.operands[:1]:
            if slot.dtype is None:
                return unknown(f"the dtype of {slot.name} is not known", self.source)
            if slot.dtype == "int32":
                return refused(f"{slot.name} is int32: keep the bias of a convolution in floating point", self.source)
        return None


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


@dataclass(frozen=True)
class StrongTyping(GraphRule):
    """Operands and results that share a type variable in the operator's schema must have the same dtype.

    A strongly typed network takes the types of the file and never converts an operand.

    Source: TensorRT, "Migrating from TensorRT 10.x to 11.x", section "Strongly Typed Networks Are Now Required".
    """

    source = "https://docs.nvidia.com/deeplearning/tensorrt/11.4.0/api/migration/tensorrt-10x-to-11x.html"

    def judge(self, subject: Subject) -> Finding | None:
        if subject.schema is None:
            return unknown(f"the schema of {subject.name} is not known, so its dtypes cannot be compared", self.source)
        first: dict[str, tuple[str, str]] = {}
        doubt = None
        for slot in subject.slots:
            if slot.formal is None or not slot.formal.type or slot.formal.mixed:
                continue
            dtype = slot.dtype
            if dtype is None:
                doubt = doubt or unknown(f"the dtype of {slot.name} is not known", self.source)
                continue
            name, known = first.setdefault(slot.formal.type, (slot.name, dtype))
            if known != dtype:
                return refused(f"{name} is {known} and {slot.name} is {dtype}; both must have one dtype", self.source)
        return doubt
