"""Holds the pinned alpha engine of symbolic shapes to real runs: what is inferred is what the reference gives."""

from __future__ import annotations

import itertools

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.model.shapes import inferred
from onnxsmith.model.signature import is_symbol
from onnxsmith.model.text import from_text
from onnxsmith.runtimes.base import get

HEAD = '<ir_version: 10, opset_import: ["": 20]>\n'
GRAPHS = {
    "elementwise": "(float[a,b] x, float[b] z) => (float y) { t = Add(x, z)\n y = Mul(t, x) }",
    "broadcast of two names": "(float[a,2] x, float[b,2] z) => (float y) { t = Add(x, z)\n y = Max(t, x) }",
    "broadcast of three names":
        "(float[a] x, float[b] z, bool[c] m) => (float y) { t = Where(m, x, z)\n y = Neg(t)\n u = Neg(x) }",
    "broadcast that is declared":
        "(float[a] x, float[b] z) => (float[out] y) <float[out] t> { t = Sub(x, z)\n y = Abs(t) }",
    "convolution":
        "(float[n,3,h,w] x) => (float y) <int64[4] s = {4, 3, 3, 3}> { k = ConstantOfShape(s)\n"
        " t = Conv<pads = [1,1,1,1], strides = [2,2]>(x, k)\n y = MaxPool<kernel_shape = [2,2], ceil_mode = 1>(t) }",
    "same padding":
        "(float[n,3,h,w] x) => (float y) <int64[4] s = {4, 3, 3, 3}> { k = ConstantOfShape(s)\n"
        ' y = Conv<auto_pad = "SAME_UPPER", strides = [2,2]>(x, k) }',
    "transposed convolution":
        "(float[n,3,h,w] x) => (float y) <int64[4] s = {3, 4, 3, 3}> { k = ConstantOfShape(s)\n"
        " y = ConvTranspose<pads = [1,1,1,1], strides = [2,2], output_padding = [1,1]>(x, k) }",
    "reshape":
        "(float[n,6,t] x) => (float y) <int64[4] s = {0, 0, 2, 3}, int64[2] f = {0, -1}> {"
        " p = Transpose<perm = [0,2,1]>(x)\n q = Reshape(p, s)\n r = Transpose<perm = [0,2,1,3]>(q)\n"
        " y = Reshape(r, f) }",
    "shape arithmetic":
        "(float[n,c] x) => (float y) <int64 zero = {0}, int64 one = {1}, int64[1] axes = {0}> { s = Shape(x)\n"
        " a = Gather(s, zero)\n b = Gather(s, one)\n p = Mul(a, b)\n q = Unsqueeze(p, axes)\n y = Reshape(x, q) }",
    "concat":
        "(float[n,a] x, float[n,b] z) => (float y) { t = Concat<axis = 1>(x, z)\n y = Concat<axis = 1>(t, t, x) }",
    "slice from the ends":
        "(float[n,t] x) => (float y) <int64[1] one = {1}, int64[1] last = {-1}, int64[1] far = {9223372036854775807}> {"
        " p = Slice(x, one, last, one)\n y = Slice(p, one, far, one, one) }",
    "slice beyond the end":
        "(float[n,t] x) => (float y)"
        " <int64[1] o = {1}, int64[1] two = {2}, int64[1] four = {4}, int64[1] end = {1000}> {"
        " p = Slice(x, o, end, o)\n q = Slice(x, o, end, o, two)\n y = Slice(x, two, four, o) }",
    "first of a dimension":
        "(float[n,t] x) => (float y) <int64[1] o = {0}, int64[1] e = {1}> { y = Slice(x, o, e, e) }",
    "slice backwards":
        "(float[n,t] x) => (float y) <int64[1] m = {-1}, int64[1] far = {-9223372036854775807}, int64[1] one = {1}> {"
        " y = Slice(x, m, far, one, m) }",
    "matmul": "(float[n,h,t,d] x, float[n,h,d,u] z) => (float y) { s = MatMul(x, z)\n y = Softmax(s) }",
    "matmul of two batches": "(float[a,t,d] x, float[b,d,u] z) => (float y) { y = MatMul(x, z) }",
    "resize":
        "(float[n,1,h,w] x) => (float y) <float[4] k = {1, 1, 2, 1.5}> {"
        ' y = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric">(x, "", k) }',
    "pad": "(float[n,t] x) => (float y) <int64[4] pads = {0, 2, 0, 3}> { y = Pad(x, pads) }",
    "split": "(float[n,7] x) => (float y) { a, b = Split<axis = 1, num_outputs = 2>(x)\n y = Neg(b) }",
    "split of a symbol": "(float[t,3] x) => (float y) { a, b = Split<axis = 1, num_outputs = 2>(x)\n y = Neg(b) }",
    "reduce":
        "(float[a,b,c] x) => (float y) <int64[1] axes = {1}> { s = ReduceMean<keepdims = 0>(x, axes)\n"
        " t = ReduceMax<keepdims = 1>(x, axes)\n y = Squeeze(t, axes) }",
    "squeeze without axes": "(float[a,1,2] x) => (float y) { t = Squeeze(x)\n y = Abs(x) }",
    "gather": "(int64[n,t] i) => (float y) <float[5,4] table = {}> { y = Gather(table, i) }",
    "gather of elements": "(float[n,t] x, int64[n,u] i) => (float y) { y = GatherElements<axis = 1>(x, i) }",
    "expand of a known shape":
        "(float[n,1,t] x) => (float y) <int64[3] k = {1, 7, 1}> { y = Expand(x, k) }",
    "expand to another input":
        "(float[a,t] x, float[b,t] z) => (float y) { s = Shape(z)\n e = Expand(x, s)\n y = Add(e, z) }",
    "constant of a shape":
        "(float[n,t] x) => (float y) <int64[1] axes = {1}, int64[3] k = {1, 7, 1}> { s = Shape(x)\n"
        " c = ConstantOfShape(s)\n u = Unsqueeze(c, axes)\n y = Expand(u, k) }",
    "range":
        "(float[n,t] x) => (int64 y) <int64 zero = {0}, int64 two = {2}> { s = Shape<start = 1>(x)\n e = Squeeze(s)\n"
        " y = Range(zero, e, two) }",
    "flatten": "(float[n,c,h] x) => (float y) { p = Flatten(x)\n y = Flatten<axis = 2>(x) }",
    "tile": "(float[n,t] x) => (float y) <int64[2] r = {2, 3}> { y = Tile(x, r) }",
    "depth to space":
        "(float[n,8,h,w] x) => (float y) { p = DepthToSpace<blocksize = 2>(x)\n"
        " y = SpaceToDepth<blocksize = 2>(p) }",
    "pooling":
        "(float[n,2,h,w] x) => (float y) { p = GlobalAveragePool(x)\n"
        " y = AveragePool<kernel_shape = [3,2], strides = [2,1], pads = [1,0,1,1]>(x) }",
    "one hot": "(int64[n,t] i) => (int64 y) <int64 depth = {6}, int64[2] v = {0, 1}> { y = OneHot(i, depth, v) }",
    "einsum": '(float[n,i,j] x, float[n,j,k] z) => (float y) { y = Einsum<equation = "nij,njk->nki">(x, z) }',
    "branch":
        "(bool[1] c, float[n,t] x) => (float y) <int64[1] a = {0}> { q = Squeeze(c, a)\n"
        " y = If(q) <then_branch = p () => (float[n,t] f) { f = Neg(x) },"
        " else_branch = r () => (float[m,t] g) { g = Concat<axis = 0>(x, x) }> }",
    "attention mask":
        "(int64[n,t] i) => (float y) <int64[1] a = {1}, int64[1] b = {2}> { f = Cast<to = 1>(i)\n u = Unsqueeze(f, a)\n"
        " v = Unsqueeze(f, b)\n y = Mul(u, v) }",
}  # fmt: skip


def graph(name: str) -> ir.Model:
    """The model of that name, whose every value is an output; the shapes of values in between are not declared."""
    values = ",".join(str(n) for n in range(20))
    model = from_text(f"{HEAD}g {GRAPHS[name]}".replace("= {}", f"= {{{values}}}"))
    made = [value for node in model.graph for value in node.outputs]
    model.graph.outputs.extend(value for value in made if value not in model.graph.outputs)
    for value in made:
        if "declared" not in name:
            value.type, value.shape = None, None
    return model


def arrays(model: ir.Model, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    made = {}
    for value in model.graph.inputs:
        assert value.shape is not None
        assert value.dtype is not None
        shape = [dim if isinstance(dim, int) else sizes[str(dim.value)] for dim in value.shape]
        made[str(value.name)] = np.zeros(shape, value.dtype.numpy())
    return made


def symbols(model: ir.Model) -> list[str]:
    dims = (dim for value in model.graph.inputs for dim in value.shape or ())
    return list(dict.fromkeys(str(dim.value) for dim in dims if isinstance(dim, ir.SymbolicDim)))


@pytest.mark.parametrize("name", GRAPHS)
def test_inferred_shapes_are_those_of_runs(name: str) -> None:
    model = graph(name)
    found, note = inferred(model)
    assert note is None
    shapes = {value.name: value.shape for value in found.graph.outputs}
    names = symbols(model)
    runs = compared = 0
    with get("reference").prepare(model) as session:
        for picked in itertools.product((1, 4, 7), repeat=len(names)):
            sizes = dict(zip(names, picked, strict=True))
            try:
                outputs = session.run(arrays(model, sizes))
            except Exception:  # noqa: BLE001 — these sizes do not go together
                continue
            runs += 1
            for value, array in outputs.items():
                shape = shapes[value]
                if shape is None:
                    continue
                assert isinstance(array, np.ndarray)
                assert len(shape) == array.ndim, value
                for dim, size in zip(shape, array.shape, strict=True):
                    said = dim if isinstance(dim, int) else dim.evaluate(sizes)
                    if isinstance(said, int):
                        compared += 1
                        assert said == size, f"{value} {shape} at {sizes} is {array.shape}"
                    elif isinstance(said, ir.SymbolicDim) and is_symbol(str(said.value)):
                        sizes[str(said.value)] = size  # a name that inference gave means one size in one run
    assert runs > 1
    assert compared >= runs
