"""Holds the pinned alpha engine of symbolic shapes to real runs: what it infers is what the reference evaluator gives."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.model.shapes import inferred
from onnxsmith.model.text import from_text
from onnxsmith.runtimes.base import get

HEAD = '<ir_version: 10, opset_import: ["": 20]>\n'
GRAPHS = {
    "elementwise": "g (float[a,b] x, float[b] z) => (float y) { t = Add(x, z)\n y = Mul(t, x) }",
    "convolution": (
        "g (float[n,3,h,w] x) => (float y) { k = ConstantOfShape(s)\n t = Conv<pads = [1,1,1,1], strides = [2,2]>(x, k)\n"
        " y = MaxPool<kernel_shape = [2,2], strides = [2,2]>(t) }",
        "<int64[4] s = {4, 3, 3, 3}>",
    ),
    "reshape": (
        "g (float[n,6,t] x) => (float y) { p = Transpose<perm = [0,2,1]>(x)\n q = Reshape(p, s)\n"
        " y = Transpose<perm = [0,2,1,3]>(q) }",
        "<int64[4] s = {0, 0, 2, 3}>",
    ),
    "shape arithmetic": (
        "g (float[n,c] x) => (float y) { s = Shape(x)\n a = Gather(s, zero)\n b = Gather(s, one)\n p = Mul(a, b)\n"
        " q = Unsqueeze(p, axes)\n y = Reshape(x, q) }",
        "<int64 zero = {0}, int64 one = {1}, int64[1] axes = {0}>",
    ),
    "concat": "g (float[n,a] x, float[n,b] z) => (float y) { t = Concat<axis = 1>(x, z)\n y = Concat<axis = 1>(t, t, x) }",
    "slice": (
        "g (float[n,t] x) => (float y) { p = Slice(x, from, to, axes)\n y = Slice(p, from, end, axes, steps) }",
        "<int64[1] from = {1}, int64[1] to = {-1}, int64[1] end = {1000}, int64[1] axes = {1}, int64[1] steps = {2}>",
    ),
    "matmul": "g (float[n,h,t,d] x, float[n,h,d,u] z) => (float y) { s = MatMul(x, z)\n y = Softmax(s) }",
    "resize": (
        'g (float[n,1,h,w] x) => (float y) { y = Resize<mode = "nearest">(x, "", scales) }',
        "<float[4] scales = {1, 1, 2, 3}>",
    ),
    "pad": ("g (float[n,t] x) => (float y) { y = Pad(x, pads) }", "<int64[4] pads = {0, 2, 0, 3}>"),
    "split": "g (float[n,8] x) => (float y) { a, b = Split<axis = 1, num_outputs = 2>(x)\n y = Sub(a, b) }",
    "reduce": (
        "g (float[a,b,c] x) => (float y) { s = ReduceMean<keepdims = 0>(x, axes)\n t = ReduceMax<keepdims = 1>(x, axes)\n"
        " y = Squeeze(t, axes) }",
        "<int64[1] axes = {1}>",
    ),
    "gather": ("g (int64[n,t] i) => (float y) { y = Gather(table, i) }", "<float[5,4] table = {}>"),
    "expand": (
        "g (float[n,t] x) => (float y) { s = Shape(x)\n c = ConstantOfShape(s)\n u = Unsqueeze(c, axes)\n"
        " k = Constant<value = int64[3] {1, 7, 1}>()\n y = Expand(u, k) }",
        "<int64[1] axes = {1}>",
    ),
    "range": (
        "g (float[n,t] x) => (int64 y) { s = Shape<start = 1>(x)\n e = Squeeze(s)\n y = Range(zero, e, one) }",
        "<int64 zero = {0}, int64 one = {1}>",
    ),
    "flatten": "g (float[n,c,h] x) => (float y) { y = Flatten(x) }",
    "attention mask": (
        "g (int64[n,t] i) => (float y) { f = Cast<to = 1>(i)\n u = Unsqueeze(f, a)\n v = Unsqueeze(f, b)\n y = Mul(u, v) }",
        "<int64[1] a = {1}, int64[1] b = {2}>",
    ),
}  # fmt: skip
SIZES = [3, 5, 8, 13]


def graph(name: str) -> ir.Model:
    """The model of that name, whose every value is an output."""
    text = GRAPHS[name]
    body, constants = (text, "") if isinstance(text, str) else text
    values = ",".join(str(n) for n in range(20))
    constants = constants.replace("{}", f"{{{values}}}")
    model = from_text(HEAD + body.replace(") {", f") {constants} {{", 1))
    made = [value for node in model.graph for value in node.outputs if value.name]
    model.graph.outputs.extend(value for value in made if value not in model.graph.outputs)
    for value in made:
        value.type, value.shape = value.type or ir.TensorType(ir.DataType.FLOAT), None
    return model


def feeds(model: ir.Model, shift: int) -> tuple[dict[str, int], dict[str, np.ndarray]]:  # type: ignore[type-arg]
    """Different sizes for different symbols, and arrays of them."""
    symbols = dict.fromkeys(d.value for v in model.graph.inputs for d in v.shape or () if isinstance(d, ir.SymbolicDim))
    sizes = {str(symbol): SIZES[(n + shift) % len(SIZES)] for n, symbol in enumerate(symbols)}
    shapes = {v.name: [d if isinstance(d, int) else sizes[str(d.value)] for d in v.shape or ()] for v in model.graph.inputs}
    dtypes = {v.name: v.dtype.numpy() for v in model.graph.inputs if v.dtype is not None}
    return sizes, {str(name): np.ones(shape, dtypes[name]) for name, shape in shapes.items()}


@pytest.mark.parametrize("shift", range(2))
@pytest.mark.parametrize("name", GRAPHS)
def test_inferred_shapes_are_those_of_a_run(name: str, shift: int) -> None:
    model = graph(name)
    found, note = inferred(model)
    sizes, arrays = feeds(model, shift)
    with get("reference").prepare(model) as session:
        outputs = session.run(arrays)
    assert note is None
    shapes = {value.name: value.shape for value in found.graph.outputs}
    for value, array in outputs.items():
        shape = shapes[value]
        assert shape is not None, value
        dims = [dim if isinstance(dim, int) else dim.evaluate(sizes) for dim in shape]
        assert isinstance(array, np.ndarray)
        assert tuple(dims) == array.shape, value
