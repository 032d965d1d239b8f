"""Conditions on quantised tensors and dtypes, on shapes, branches and single operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from onnxsmith.graph.structure import walk
from onnxsmith.targets.profiles.condition_result import Finding, refused, unknown
from onnxsmith.targets.profiles.node_facts import Slot, Subject
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


@dataclass(frozen=True)
class EqualBranchShapes(GraphRule):
    """The outputs of the two branches of an `If` must have the same shape, or the same rank with `compare = "rank"`.

    Symbolic dimensions that are not provably equal cannot be judged.

    Source: onnx-tensorrt's operators.md, row If (same rank); TensorRT's error "IIfConditionalOutputLayer inputs must
    have the same shape", NVIDIA/TensorRT issue 4603 of 2025-10-18.
    """

    anchor = ("If",)
    source = "https://github.com/NVIDIA/TensorRT/issues/4603"

    compare: Literal["shape", "rank"] = "shape"

    def judge(self, subject: Subject) -> Finding | None:
        branches = [graph.outputs for graph in walk.subgraphs(subject.node)]
        if len(branches) != 2:
            return unknown("the branches are not known", self.source)
        doubt = None
        for one, other in zip(*branches, strict=False):
            a, b = Slot("", None, one).dims, Slot("", None, other).dims
            if a is None or b is None:
                doubt = doubt or unknown(f"the shape of {(one if a is None else other).name} is not known", self.source)
                continue
            both = f"the branches return {_text(a)} and {_text(b)}"
            sizes = [(x, y) for x, y in zip(a, b, strict=False) if isinstance(x, int) and isinstance(y, int)]
            if len(a) != len(b):
                return refused(f"{both}; both must have the same rank", self.source)
            if self.compare == "shape" and any(x != y for x, y in sizes):
                return refused(f"{both}; both must have the same shape", self.source)
            if self.compare == "shape" and (a != b or None in a):
                doubt = doubt or unknown(f"{both}, which may differ", self.source)
        return doubt


def _text(dims: tuple[int | str | None, ...]) -> str:
    return "[" + ", ".join("?" if dim is None else str(dim) for dim in dims) + "]"


@dataclass(frozen=True)
class NoZeroSize(GraphRule):
    """No operand or result may have a dimension of size 0.

    A symbolic dimension may be 0, so it cannot be judged.

    Source: onnxruntime's table of its CoreML execution provider, row `Slice` ("Empty slice is not supported").
    """

    source = "https://onnxruntime.ai/docs/execution-providers/CoreML-ExecutionProvider.html"

    def judge(self, subject: Subject) -> Finding | None:
        doubt = None
        for slot in subject.slots:
            if slot.dims is None:
                doubt = doubt or unknown(f"the shape of {slot.name} is not known, so it may be empty", self.source)
            elif 0 in slot.dims:
                return refused(f"{slot.name} is empty: its shape is {list(slot.dims)}", self.source)
            elif not slot.is_static:
                doubt = doubt or unknown(f"{slot.name} may be empty: a dimension is not a fixed size", self.source)
        return doubt


@dataclass(frozen=True)
class SameActivations(GraphRule):
    """A bidirectional RNN, GRU or LSTM must have the same activations forward and backward.

    Activations that are left out have their defaults, which are the same in both directions.

    Source: onnx-tensorrt's operators.md, rows RNN, GRU and LSTM.
    """

    anchor = ("RNN", "GRU", "LSTM")
    source = "https://github.com/onnx/onnx-tensorrt/blob/main/docs/operators.md"

    def judge(self, subject: Subject) -> Finding | None:
        given = subject.node.attributes.get("activations")
        if subject.attribute("direction") != "bidirectional" or given is None:
            return None
        names = subject.attribute("activations")
        if names is None:
            return unknown("the activations are not known", self.source)
        half = len(names) // 2
        if list(names[:half]) != list(names[half:]):
            return refused(f"the directions have different activations: {', '.join(names)}", self.source)
        return None


@dataclass(frozen=True)
class SuppressionBoxes(GraphRule):
    """NonMaxSuppression considers the `most` boxes of highest score per batch item, and ignores the rest.

    More boxes are not refused, but the result may differ from ONNX's.

    Source: TensorRT's operator page of NMS, attribute `limit`: 2000 for the devices SM 5.3 and 6.2, else 5000.
    """

    anchor = ("NonMaxSuppression",)
    source = "https://docs.nvidia.com/deeplearning/tensorrt/latest/_static/operators/NMS.html"

    most: int = 5000

    def judge(self, subject: Subject) -> Finding | None:
        boxes = next(iter(subject.named("boxes")), None)
        dims = boxes.dims if boxes is not None else None
        count = dims[1] if dims is not None and len(dims) == 3 else None
        if not isinstance(count, int):
            return unknown(f"the number of boxes is not known; only {self.most} are considered", self.source)
        if count > self.most:
            return unknown(f"there are {count} boxes, but only the {self.most} best boxes are considered", self.source)
        return None
