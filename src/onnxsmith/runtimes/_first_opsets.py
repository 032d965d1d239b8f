"""Operators for the reference evaluator as opsets 1 to 6 had them, which the evaluator of the onnx package lacks.

Written from the operators' descriptions (onnx Changelog.md, versions 1 to 6) in numpy, beside the rewrites that raise a
model, so that the one can judge the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx import ModelProto, helper
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_rnn import RNN_7

NEWEST = 6
"""The newest opset whose forms these are."""
_SELU: dict[str, Any] = {"alpha": 1.6732, "gamma": 1.0507}
"""Defaults before opset 6."""
_UNREAD = {"consumed_inputs", "output_sequence"}
"""Attributes that change no number."""


def _defaults(op_type: str, version: int) -> dict[str, Any]:
    if op_type == "Concat":
        return {"axis": 1}
    return _SELU if op_type == "Selu" and version < NEWEST else {}


def readable(model: ModelProto) -> ModelProto:
    """Drops attributes that change no number from the nodes of the graph and of all nested graphs, and writes defaults
    of that time: the axis of Concat, without which the evaluator does not begin, and the numbers of Selu, which opset 6
    changed. Changes the model."""
    version = next((one.version for one in model.opset_import if one.domain in ("", "ai.onnx")), 1)
    graphs = [model.graph]
    while graphs:
        for node in graphs.pop().node:
            kept = [one for one in node.attribute if one.name not in _UNREAD]
            del node.attribute[:]
            node.attribute.extend(kept)
            defaults = _defaults(node.op_type, version)
            named = {one.name for one in kept}
            node.attribute.extend(
                helper.make_attribute(key, value) for key, value in defaults.items() if key not in named
            )
            graphs += [one.g for one in node.attribute if one.HasField("g")]
    return model


def aligned(a: Any, b: Any, axis: int | None) -> Any:
    """Repeats `b` to the shape of `a`: its first axis is `axis` of `a`, or its last is the last."""
    if axis is None:
        return np.broadcast_to(b, a.shape)
    axis += a.ndim if axis < 0 else 0
    shape = [1] * a.ndim
    shape[axis : axis + b.ndim] = b.shape
    return np.broadcast_to(b.reshape(shape), a.shape)


def _of_two(name: str, function: Callable[[Any, Any], Any]) -> type[OpRun]:
    """Makes the class of an operator of two operands."""

    def run(self: OpRun, a: Any, b: Any, axis: int | None = None, broadcast: int | None = None, **_: Any) -> tuple[Any]:
        if not broadcast and a.shape != b.shape:
            raise ValueError(f"{name} without `broadcast` got the shapes {a.shape} and {b.shape}")
        made = function(a, aligned(a, b, axis) if broadcast else b)
        return (made if made.dtype == bool else made.astype(a.dtype),)

    return type(name, (OpRun,), {"op_domain": "", "_run": run})


def _divided(a: Any, b: Any) -> Any:
    return a / b if a.dtype.kind == "f" else np.trunc(a / b)


class PRelu(OpRun):
    op_domain = ""

    def _run(self, x: Any, slope: Any, **_: Any) -> tuple[Any]:
        slope = slope.reshape(()) if slope.size == 1 else aligned(x, slope, 1) if slope.ndim == 1 else slope
        return (np.where(x < 0, x * slope, x).astype(x.dtype),)


class Gemm(OpRun):
    op_domain = ""

    def _run(
        self,
        a: Any,
        b: Any,
        c: Any,
        alpha: float | None = None,
        beta: float | None = None,
        transA: int | None = None,  # noqa: N803 — the attribute's name
        transB: int | None = None,  # noqa: N803
        **_: Any,
    ) -> tuple[Any]:
        product = (a.T if transA else a) @ (b.T if transB else b)
        made = product * (1.0 if alpha is None else alpha) + c * (1.0 if beta is None else beta)
        return (made.astype(a.dtype),)


class Dropout(OpRun):
    op_domain = ""

    def _run(self, data: Any, is_test: int | None = None, **_: Any) -> tuple[Any, ...]:
        if not is_test:
            raise ValueError("Dropout drops at random, as `is_test` is 0")
        return (data, np.ones(data.shape, data.dtype))[: len(self.onnx_node.output)]


class Clip(OpRun):
    op_domain = ""

    def _run(self, x: Any, max: float | None = None, min: float | None = None, **_: Any) -> tuple[Any]:  # noqa: A002
        return (np.clip(x, -np.inf if min is None else min, np.inf if max is None else max).astype(x.dtype),)


class Reshape(OpRun):
    op_domain = ""

    def _run(self, data: Any, new: Any = None, shape: Any = None, **_: Any) -> tuple[Any]:
        wanted = [int(size) for size in (shape if new is None else new)]
        return (data.reshape([data.shape[place] if size == 0 else size for place, size in enumerate(wanted)]),)


class Cast(OpRun):
    op_domain = ""

    def _run(self, x: Any, to: Any = None, **_: Any) -> tuple[Any]:
        name = to.decode() if isinstance(to, bytes) else to
        dtype = ir.DataType[name.upper()] if isinstance(name, str) else ir.DataType(name)
        return (x.astype(dtype.numpy()),)


class Split(OpRun):
    op_domain = ""

    def _run(self, x: Any, sizes: Any = None, axis: int | None = None, split: Any = None, **_: Any) -> tuple[Any, ...]:
        given = split if sizes is None else sizes
        at = len(self.onnx_node.output) if given is None else np.cumsum(np.asarray(given, np.int64))[:-1]
        return tuple(np.split(x, at, axis or 0))


class Pad(OpRun):
    op_domain = ""

    def _run(
        self,
        x: Any,
        mode: str | None = None,
        paddings: Any = None,
        pads: Any = None,
        value: float | None = None,
        **_: Any,
    ) -> tuple[Any]:
        sizes = np.reshape(pads if paddings is None else paddings, (2, -1)).T
        if mode in (None, "constant"):
            return (np.pad(x, sizes, constant_values=value or 0.0),)
        return (np.pad(x, sizes, mode=mode),)  # type: ignore[call-overload]


class Tile(OpRun):
    op_domain = ""

    def _run(self, x: Any, tiles: Any, axis: Any = None, **_: Any) -> tuple[Any]:
        if axis is None:
            return (np.tile(x, tiles),)
        repeats = [1] * x.ndim
        repeats[int(np.ravel(axis)[0])] = int(np.ravel(tiles)[0])
        return (np.tile(x, repeats),)


class Upsample(OpRun):
    op_domain = ""

    def _run(
        self,
        x: Any,
        height_scale: float | None = None,
        mode: str | None = None,
        width_scale: float | None = None,
        **_: Any,
    ) -> tuple[Any]:
        if mode not in (None, "nearest"):
            raise ValueError(f"Upsample of mode {mode!r} is not defined before opset 7")
        for axis, scale in ((2, height_scale), (3, width_scale)):
            assert scale is not None
            x = x.take(np.floor(np.arange(int(x.shape[axis] * scale)) / scale).astype(np.int64), axis)
        return (x,)


class RNN(RNN_7):
    """Stands for the first form, which computes the same."""

    op_domain = ""


_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": _divided, "Pow": np.power,
    "And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor,
    "Equal": np.equal, "Greater": np.greater, "Less": np.less,
}  # fmt: skip
FORMS: list[type[OpRun]] = [
    *(PRelu, Gemm, Dropout, Clip, Reshape, Cast, Split, Pad, Tile, Upsample, RNN),
    *(_of_two(name, function) for name, function in _FUNCTIONS.items()),
]
"""Lists the operators that take the place of those of the evaluator."""
