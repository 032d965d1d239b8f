"""Defines fixes that write an operator as products with constant matrices."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.deployment.checking.fixes.base import Fix, Places, constant, rewritten, sizes
from onnxsmith.graph.surgery.node_insertion import Inserter
from onnxsmith.runtimes import base as runtimes

_LONGEST = 4096
"""Limits the length of a transform. A choice: the matrix grows with the square of its length, to 128 MB in float32 at
4,096."""


class FourierProducts(Fix):
    """Writes STFT and DFT as products with matrices of cosines and sines.

    Few compilers have the Fourier transforms of opset 17. With a known length n, the transform of a real signal is a
    product with the matrix exp(-2πi·kt/n). An STFT is a convolution with the windowed rows of this matrix, with the
    frame step as stride.

    Refused:
    1. The length, the window or the frame step is computed.
    2. The transform is inverse and one-sided, and the number of bins does not fit the length.
    3. The transform is longer than 4,096, or shorter than the signal.
    """

    rank = 14

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        places = Places.of(model)
        rewritten(places, "STFT", _stft)
        rewritten(places, "DFT", _dft if places.opset >= 20 else _dft_17)
        if places.changed:
            yield "Fourier transforms replaced by products with constant matrices", places.model


def _stft(node: ir.Node, write: Inserter) -> ir.Value | None:
    inputs = [*node.inputs, *[None] * (4 - len(node.inputs))]
    signal, step, window, length = inputs[0], constant(inputs[1]), constant(inputs[2]), constant(inputs[3])
    if signal is None or signal.shape is None or signal.dtype is None or step is None:
        return None
    if (inputs[2] is not None and window is None) or (inputs[3] is not None and length is None):
        return None
    rank = len(signal.shape)
    size = int(length) if length is not None else None if window is None else len(window)
    if size is None or size > _LONGEST or not (rank == 2 or (rank == 3 and signal.shape[2] == 1)):
        return None
    taper = np.ones(size) if window is None else window.astype(np.float64)
    if len(taper) != size:
        return None
    bins = _bins(size, onesided=node.attributes.get_int("onesided", 1) == 1)
    cosines, sines = _fourier_matrix(size, bins)
    axis = write.constant([1])
    flat = write.op("Squeeze", signal, write.constant([2])) if rank == 3 else signal
    row = write.op("Unsqueeze", flat, axis)
    parts = []
    for matrix in (cosines, sines):
        weight = write.constant((matrix.T * taper)[:, None, :], signal.dtype.numpy())
        product = write.op("Conv", row, weight, strides=[int(step)])  # batch, bins, frames
        parts.append(write.op("Unsqueeze", write.op("Transpose", product, perm=[0, 2, 1]), write.constant([3])))
    return write.op("Concat", *parts, axis=3)


def _dft_17(node: ir.Node, write: Inserter) -> ir.Value | None:
    return _transform(node, write, node.attributes.get_int("axis", 1))


def _dft(node: ir.Node, write: Inserter) -> ir.Value | None:
    given = node.inputs[2] if len(node.inputs) > 2 else None
    axis = constant(given)
    if given is not None and axis is None:
        return None
    return _transform(node, write, -2 if axis is None else int(axis))


def _transform(node: ir.Node, write: Inserter, axis: int) -> ir.Value | None:
    signal, given = node.inputs[0], node.inputs[1] if len(node.inputs) > 1 else None
    if signal is None or signal.shape is None or signal.dtype is None:
        return None
    inverse, onesided = node.attributes.get_int("inverse", 0) == 1, node.attributes.get_int("onesided", 0) == 1
    rank = len(signal.shape)
    axis %= rank
    size, length, ends = signal.shape[axis], constant(given), signal.shape[rank - 1]
    if not isinstance(size, int) or size > _LONGEST or ends not in (1, 2) or axis == rank - 1:
        return None
    if given is not None and (length is None or not 0 < int(length) <= _LONGEST):
        return None
    if inverse and onesided:
        return _real(write, signal, axis, 2 * (size - 1) if length is None else int(length)) if ends == 2 else None
    wanted = size if length is None else int(length)
    if size > wanted:
        return None
    bins = _bins(wanted, onesided=onesided)
    cosines, sines = (
        matrix[:size] for matrix in _fourier_matrix(wanted, bins)
    )  # a shorter signal is padded with zeros
    if inverse:
        cosines, sines = cosines / wanted, -sines / wanted
    last, back = _with_axis_last(write, signal, axis, 1 if ends == 1 else 2)
    dtype = signal.dtype.numpy()
    real, imaginary = (write.constant(matrix, dtype) for matrix in (cosines, sines))
    parts = [write.op("MatMul", last[0], real), write.op("MatMul", last[0], imaginary)]
    if ends == 2:  # (a + bi)(c + si) = (ac - bs) + (as + bc)i
        parts = [
            write.op("Sub", parts[0], write.op("MatMul", last[1], imaginary)),
            write.op("Add", parts[1], write.op("MatMul", last[1], real)),
        ]
    ending = write.constant([rank - 1])
    turned = [write.op("Unsqueeze", write.op("Transpose", part, perm=back), ending) for part in parts]
    return write.op("Concat", *turned, axis=rank - 1)


def _with_axis_last(write: Inserter, signal: ir.Value, axis: int, parts: int) -> tuple[list[ir.Value], list[int]]:
    """Returns the real part and, if there is one, the imaginary part, with `axis` as the last axis. Also returns the
    permutation back."""
    assert signal.shape is not None
    rank = len(signal.shape)
    order = [one for one in range(rank - 1) if one != axis] + [axis]
    taken = [write.op("Gather", signal, write.constant(part), axis=rank - 1) for part in range(parts)]
    return [write.op("Transpose", one, perm=order) for one in taken], [int(one) for one in np.argsort(order)]


def _real(write: Inserter, signal: ir.Value, axis: int, wanted: int) -> ir.Value | None:
    """Writes the inverse of a one-sided transform. Each bin counts twice, except the first bin and, if the length is
    even, the last bin."""
    assert signal.shape is not None
    assert signal.dtype is not None
    rank, size = len(signal.shape), int(signal.shape[axis])  # type: ignore[arg-type]
    if size != _bins(wanted, onesided=True):
        return None
    twice = np.full(size, 2.0)
    twice[0] = 1.0
    if wanted % 2 == 0:
        twice[-1] = 1.0
    cosines, sines = (matrix[:, :size].T * twice[:, None] / wanted for matrix in _fourier_matrix(wanted, wanted))
    last, back = _with_axis_last(write, signal, axis, 2)
    dtype = signal.dtype.numpy()
    parts = [
        write.op("MatMul", one, write.constant(matrix, dtype))
        for one, matrix in zip(last, (cosines, sines), strict=True)
    ]
    return write.op("Unsqueeze", write.op("Transpose", write.op("Add", *parts), perm=back), write.constant([rank - 1]))


def _bins(size: int, *, onesided: bool) -> int:
    return size // 2 + 1 if onesided else size


def _fourier_matrix(size: int, bins: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns real and imaginary part of exp(-2πi·kt/n), for each t (row) and k (column), in float64. The product kt is
    first taken modulo n, because cosines of large angles lose digits."""
    angles = 2 * np.pi * (np.outer(np.arange(size), np.arange(bins)) % size) / size
    return np.cos(angles), -np.sin(angles)


_MOST = 2**20
"""Limits the elements of a matrix. A choice: 4 MB in float32."""


class ResizeProducts(Fix):
    """Writes Resize of fixed sizes as products with constant matrices.

    Each mode of Resize works axis by axis, and each axis is a linear map. The map's matrix is the result of Resize
    itself on the unit vectors, so it includes antialiasing and every coordinate transformation mode.

    Refused:
    1. Sizes are symbolic or computed, or a matrix has more than a million elements.
    2. The values are not float32, or the coordinates are those of `tf_crop_and_resize`.
    """

    rank = 17

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        if "Resize" not in refused:
            return
        places = Places.of(model)
        rewritten(places, "Resize", _products)
        if places.changed:
            yield "resizes replaced by products with constant matrices", places.model


def _products(node: ir.Node, write: Inserter) -> ir.Value | None:
    x, before, after = node.inputs[0], sizes(node.inputs[0]), sizes(node.outputs[0])
    mode = node.attributes.get("coordinate_transformation_mode")
    if x is None or x.dtype != ir.DataType.FLOAT or before is None or after is None or len(before) != len(after):
        return None
    if mode is not None and mode.as_string() == "tf_crop_and_resize":
        return None
    scales = constant(node.inputs[2]) if len(node.inputs) > 2 else None
    rank = len(before)
    for axis in range(rank):
        if before[axis] == after[axis]:
            continue
        if before[axis] * after[axis] > _MOST:
            return None
        scale = float(scales[axis]) if scales is not None and scales.size == rank else None
        matrix = _resize_matrix(node, write.opset, before[axis], after[axis], scale)
        if matrix is None:
            return None
        if axis == rank - 2:
            x = write.op("MatMul", write.constant(matrix, np.float32), x)
            continue
        order = [one for one in range(rank) if one != axis] + [axis]
        last = x if axis == rank - 1 else write.op("Transpose", x, perm=order)
        x = write.op("MatMul", last, write.constant(matrix.T, np.float32))
        if axis != rank - 1:
            x = write.op("Transpose", x, perm=[int(one) for one in np.argsort(order)])
    return x if write.made else None


def _resize_matrix(node: ir.Node, opset: int, size: int, wanted: int, scale: float | None) -> np.ndarray | None:
    """Returns the node's result on the unit vectors of one axis: [wanted, size]."""
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([1, 1, size, size]))
    y = ir.Value(name="y", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([1, 1, size, wanted]))
    by = np.array([1, 1, 1, scale], np.float32) if scale is not None else np.array([1, 1, size, wanted], np.int64)
    held = ir.Value(name="by", const_value=ir.tensor(by, name="by"))
    given = [x, None, held] if scale is not None else [x, None, None, held]
    kept = [one for name, one in node.attributes.items() if name not in ("axes", "keep_aspect_ratio_policy")]
    alone = ir.Node("", "Resize", given, kept, outputs=[y])
    graph = ir.Graph([x], [y], nodes=[alone], initializers=[held], opset_imports={"": opset}, name="resize")
    model = ir.Model(graph, ir_version=8)
    try:
        with runtimes.get(runtimes.default()).prepare(model) as session:
            made = np.asarray(session.run({"x": np.eye(size, dtype=np.float32)[None, None]})["y"])
    except OnnxsmithError:
        return None
    return np.ascontiguousarray(made[0, 0].T) if made.shape == (1, 1, size, wanted) else None
