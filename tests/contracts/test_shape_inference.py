"""Holds the pinned alpha engine of symbolic shapes to real runs: what is inferred is what the reference gives."""

from __future__ import annotations

import itertools

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes.known_integers import elements
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.shapes.symbols import canonical
from onnxsmith.graph.shapes.symbols import names as names_of
from onnxsmith.graph.structure.signature import is_symbol
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
    "expand as torch writes it":
        "(float[n,1,t] x) => (float y) <int64[1] z = {0}, int64[1] two = {2}, int64[3] m = {-1, -1, -1},"
        " int64[1] k = {3}> { s = Shape(x)\n a = Gather(s, z)\n b = Gather(s, two)\n c = Concat<axis = 0>(a, m, b)\n"
        " d = Slice(c, z, k)\n o = ConstantOfShape<value = int64[1] {1}>(k)\n e = Equal(d, m)\n w = Where(e, o, d)\n"
        " y = Expand(x, w) }",
    "integers of every kind":
        "(float[n,t] x) => (int64 y) <int64 one = {1}, int64 three = {3}, int64[2] k = {1, 0}, int64[1] u = {-1}> {"
        " s = Shape(x)\n a = Sub(s, one)\n b = Div(a, three)\n c = Mod(s, three)\n d = Max(s, three)\n"
        " e = Min(s, k, d)\n f = Neg(e)\n g = Abs(f)\n h = Gather(g, k)\n p = ReduceProd<keepdims = 0>(s)\n"
        " q = Size(x)\n r = Equal(p, q)\n l = Less(s, u)\n v = Not(l)\n w = Where(v, s, h)\n i = Cast<to = 6>(w)\n"
        " j = Cast<to = 7>(i)\n y = ReduceSum(j)\n m = Sum(s, h, s)\n o = LessOrEqual(u, s)\n z = And(o, v)\n"
        " aa = Or(r, l)\n ab = Greater(s, s)\n ac = GreaterOrEqual(s, s)\n ad = Cast<to = 9>(s) }",
    "pieces of a shape":
        "(float[n,t,3] x) => (int64 y) <int64[1] m = {-1}, int64[1] o = {0}, int64[1] i = {1}, int64[1] z = {-9},"
        " int64[1,1] at = {1}, int64[1] v = {7}, int64[2] r = {2, 1}> { s = Shape<start = -2>(x)\n"
        " t = Shape<end = -1>(x)\n a = Slice(s, m, z, o, m)\n b = Slice(t, o, i)\n c, d = Split<num_outputs = 2>(t)\n"
        " e = ScatterND(t, at, v)\n f = ScatterElements(t, i, v)\n g = GatherElements(t, m)\n h = GatherND(t, i)\n"
        " j = Squeeze(c)\n k = Unsqueeze(j, o)\n l = Tile(t, i)\n n1 = Expand(k, i)\n p = Identity(n1)\n"
        " y = Concat<axis = 0>(a, b, d, e, f, g, l, p) }",
    "range of a shape":
        "(float[n,t] x) => (int64 y) <int64 i = {1}, int64[1] o = {0}, int64 four = {4}, int64 m = {-2}> {"
        " s = Shape<end = 1>(x)\n e = Squeeze(s)\n f = Add(e, four)\n y = Range(e, f, i)\n a = Range(f, i, m)\n"
        " b = Range(i, e, four) }",
    "target of unknown numbers":
        "(float[n,6] x, int64[1] k) => (float y) <int64[1] six = {6}, int64[1] m = {-1}> { s = Shape<end = 1>(x)\n"
        " c = Concat<axis = 0>(s, m, six)\n a = Reshape(x, c)\n d = Concat<axis = 0>(s, six, m)\n"
        " b = Reshape(x, d)\n e = Shape<end = 1>(a)\n f = Concat<axis = 0>(k, six)\n g = Reshape(x, f)\n"
        " y = Shape(g)\n h = Concat<axis = 0>(s, f, k) }",
    "less than all":
        "(float[n,t] x) => (float y) <int64 one = {1}, int64[1] o = {0}, int64[1] i = {1}> { s = Shape<start = 1>(x)\n"
        " l = Sub(s, one)\n a = Slice(x, o, l, i)\n b = Slice(x, l, s, i)\n c = Slice(x, l, s, i, i)\n"
        " y = Concat<axis = 1>(a, b, c) }",
    "tile by a dimension":
        "(float[n,t] x) => (float y) <int64[1] i = {1}> { s = Shape<start = 1>(x)\n r = Concat<axis = 0>(s, i)\n"
        " y = Tile(x, r) }",
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


def held(element: int | str, sizes: dict[str, int]) -> int:
    functions = {"Max": max, "Min": min, "Broadcast": max}
    return element if isinstance(element, int) else int(eval(element, functions, dict(sizes)))


def evaluated(dim: ir.SymbolicDim, sizes: dict[str, int]) -> int | ir.SymbolicDim:
    form = canonical(str(dim.value))
    return dim.evaluate(sizes) if isinstance(form, str) and not names_of(form) <= sizes.keys() else held(form, sizes)


@pytest.mark.parametrize("name", GRAPHS)
def test_known_integers_are_those_of_runs(name: str) -> None:
    model = graph(name)
    found, _ = inferred(model)
    known = {value.name: elements(value) for value in found.graph.outputs}
    names = symbols(model)
    with get("reference").prepare(model) as session:
        for picked in itertools.product((1, 4, 7), repeat=len(names)):
            sizes = dict(zip(names, picked, strict=True))
            try:
                outputs = session.run(arrays(model, sizes))
            except Exception:  # noqa: BLE001 — these sizes do not go together
                continue
            for value, array in outputs.items():
                said = known[value]
                if said is None:
                    continue
                numbers = np.asarray(array).ravel().astype(int).tolist()
                assert len(numbers) == len(said)
                for element, number in zip(said, numbers, strict=True):
                    if element is not None and names_of(element) <= set(names):
                        assert held(element, sizes) == number, f"{value} {said} at {sizes} is {numbers}"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("expand as torch writes it", "w", ["n", 1, 1]),
        ("integers of every kind", "b", ["((Max(0, n - 1))//3)", "((Max(0, t - 1))//3)"]),
        ("integers of every kind", "r", [1]),
        ("integers of every kind", "v", [1, 1]),
        ("integers of every kind", "ad", None),
        ("pieces of a shape", "y", [3, "t", "n", "t", "n", 7, "n", 7, "t", "n", "t", "n"]),
        ("target of unknown numbers", "e", ["n"]),
        ("target of unknown numbers", "h", ["n", None, 6, None]),
        ("shape arithmetic", "q", ["n*c"]),
    ],
)
def test_shape_arithmetic_is_followed(name: str, value: str, expected: list[int | str | None] | None) -> None:
    found, _ = inferred(graph(name))
    said = next(elements(output) for output in found.graph.outputs if output.name == value)
    assert said == (expected if expected is None else [e if e is None else canonical(e) for e in expected])


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
                    said = dim if isinstance(dim, int) else evaluated(dim, sizes)
                    if isinstance(said, int):
                        compared += 1
                        assert said == size, f"{value} {shape} at {sizes} is {array.shape}"
                    elif isinstance(said, ir.SymbolicDim) and is_symbol(str(said.value)):
                        sizes[str(said.value)] = size  # a name that inference gave means one size in one run
    assert runs > 1
    assert compared >= runs
