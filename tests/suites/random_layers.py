"""What a random graph is made of, continued: layers, reductions, parts, branches, loops, and the making of it all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import numpy as np

from tests.suites import random_ops as ops
from tests.suites.random_graph import Graph, M, N, Value, fixed


def split(g: Graph) -> None:
    """Into two parts, one of which may be all."""
    x = g.pick(lambda v: v.dtype == "float" and any(len(set(dim)) == 1 and dim[0] >= 2 for dim in v.dims))
    if x is None:
        return
    axis = g.choice([i for i, dim in enumerate(x.dims) if len(set(dim)) == 1 and dim[0] >= 2])
    first = g.integer(1, x.dims[axis][0] - 1)
    parts = (first, x.dims[axis][0] - first)
    held = g.sizes(parts)
    names = [g.fresh(), g.fresh()]
    made = [Value(name, "float", (*x.dims[:axis], fixed(size), *x.dims[axis + 1 :]), x.rounded)
            for name, size in zip(names, parts, strict=True)]  # fmt: skip
    used = made if g.flip() else made[1:]
    g.lines.append(f"{', '.join(names)} = Split<axis = {axis}>({x.name}, {held.name})")
    g.values += used


def padded(g: Graph) -> None:
    """Pad with constants, Tile, Gather."""
    x = g.pick(lambda v: v.dtype == "float" and v.rank >= 1)
    if x is None:
        return
    axis = g.integer(0, x.rank - 1)
    match g.choice(("Pad", "Tile", "Gather")):
        case "Pad":
            before, after = g.integer(0, 2), g.integer(0, 2)
            pads = [before if i == axis else after if i == axis + x.rank else 0 for i in range(2 * x.rank)]
            dim = tuple(size + before + after for size in x.dims[axis])
            g.node("Pad", [x, g.sizes(pads)], "float", (*x.dims[:axis], dim, *x.dims[axis + 1 :]))
        case "Tile":
            times = g.integer(1, 2)
            repeats = [times if i == axis else 1 for i in range(x.rank)]
            dim = tuple(size * times for size in x.dims[axis])
            g.node("Tile", [x, g.sizes(repeats)], "float", (*x.dims[:axis], dim, *x.dims[axis + 1 :]))
        case _ if min(x.dims[axis]) > 0:
            index = [g.integer(-min(x.dims[axis]), min(x.dims[axis]) - 1) for _ in range(g.integer(1, 3))]
            dims = (*x.dims[:axis], fixed(len(index)), *x.dims[axis + 1 :])
            g.node("Gather", [x, g.sizes(index)], "float", dims, attributes=f"axis = {axis}")


def reduced(g: Graph) -> None:
    """Reductions, Softmax, ArgMax, CumSum."""
    x = g.pick(lambda v: v.dtype == "float" and v.rank >= 1 and min(min(dim) for dim in v.dims) > 0)
    if x is None:
        return
    axis = g.integer(0, x.rank - 1)
    op = g.choice(("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2", "Softmax",
                   "LogSoftmax", "ArgMax", "CumSum"))  # fmt: skip
    if op in ("Softmax", "LogSoftmax"):
        g.node(op, [x], "float", x.dims, attributes=f"axis = {axis - x.rank}", rounded=True)
        return
    if op == "CumSum":
        g.node(op, [x, g.constant(np.array(axis, np.int64), "int64")], "float", x.dims, rounded=True)
        return
    keep = g.flip()
    dims = (*x.dims[:axis], *([fixed(1)] if keep else []), *x.dims[axis + 1 :])
    if op == "ArgMax":
        if not x.rounded:
            g.node(op, [x], "int64", dims, attributes=f"axis = {axis}, keepdims = {int(keep)}")
        return
    rounded = op not in ("ReduceMax", "ReduceMin")
    if op == "ReduceSum" or g.opset >= 18:
        g.node(op, [x, g.sizes([axis])], "float", dims, attributes=f"keepdims = {int(keep)}", rounded=rounded)
    else:
        g.node(op, [x], "float", dims, attributes=f"axes = [{axis}], keepdims = {int(keep)}", rounded=rounded)


def product(g: Graph) -> None:
    """MatMul with a constant or with another value, perhaps followed by a sum."""
    x = g.pick(lambda v: v.dtype == "float" and v.rank >= 1 and len(set(v.dims[-1])) == 1 and 0 < v.dims[-1][0] <= 12)
    if x is None:
        return
    inner, width = x.dims[-1][0], g.integer(1, 3)
    y = g.node("MatMul", [x, g.floats([inner, width])], "float", (*x.dims[:-1], fixed(width)), rounded=True)
    if g.flip():
        other = g.floats(g.choice(([width], [1], [], [1, width])) if y.rank >= 2 else [width])
        g.node("Add", [y, other] if g.flip() else [other, y], "float", ops.joined(y.dims, other.dims) or y.dims)


def convolution(g: Graph) -> None:
    """Conv, and what is often after it."""
    x = g.pick(lambda v: v.dtype == "float" and v.rank in (3, 4) and len(set(v.dims[1])) == 1 and 0 < v.dims[1][0] <= 6
               and min(min(dim) for dim in v.dims[2:]) >= 2)  # fmt: skip
    if x is None:
        return
    spatial, out = x.rank - 2, g.integer(1, 3)
    kernel, pad = g.integer(1, 2), g.integer(0, 1)
    reads = [x, g.floats([out, x.dims[1][0], *[kernel] * spatial]), *([g.floats([out])] if g.flip() else [])]
    area = [tuple(size + 2 * pad - kernel + 1 for size in dim) for dim in x.dims[2:]]
    dims = (x.dims[0], fixed(out), *area)
    y = g.node("Conv", reads, "float", dims, attributes=f"pads = [{', '.join([str(pad)] * 2 * spatial)}]", rounded=True)
    match g.choice(("BatchNormalization", "Mul", "Add", "Relu", "MaxPool", "AveragePool", "GlobalAveragePool")):
        case "BatchNormalization" if g.opset >= 14:  # the reference evaluator trains before that
            spread = g.constant(np.full(out, 0.75, np.float32), "float")
            g.node("BatchNormalization", [y, *(g.floats([out]) for _ in range(3)), spread], "float", dims, rounded=True)
        case "Mul" | "Add" as op:
            shape = g.choice(([out, *[1] * spatial], [1, out, *[1] * spatial], []))
            g.node(op, [y, g.floats(shape)], "float", dims)
        case "Relu" | "BatchNormalization":
            g.node("Relu", [y], "float", dims)
        case "GlobalAveragePool":
            g.node("GlobalAveragePool", [y], "float", (*dims[:2], *[fixed(1)] * spatial))
        case pool:
            g.node(pool, [y], "float", dims, attributes=f"kernel_shape = [{', '.join(['1'] * spatial)}]")


def written_out(g: Graph) -> None:
    """A normalisation or an activation as exporters write it out."""
    x = g.pick(lambda v: v.dtype == "float" and v.rank >= 1 and min(v.dims[-1]) > 0)
    if x is None:
        return
    half, one, two, root = (g.constant(np.array(n, np.float32), "float") for n in (0.5, 1.0, 2.0, np.float32(2**0.5)))
    match g.choice(("Gelu", "Swish", "HardSwish", "LayerNormalization")):
        case "Gelu":
            a = g.node("Div", [x, root], "float", x.dims, rounded=True)
            b = g.node("Add", [g.node("Erf", [a], "float", x.dims), one], "float", x.dims)
            g.node("Mul", [g.node("Mul", [x, b], "float", x.dims), half], "float", x.dims)
        case "Swish":
            g.node("Mul", [x, g.node("Sigmoid", [x], "float", x.dims)], "float", x.dims, rounded=True)
        case "HardSwish":
            gate = g.node("HardSigmoid", [x], "float", x.dims, attributes="alpha = 0.16666667, beta = 0.5")
            g.node("Mul", [gate, x], "float", x.dims, rounded=True)
        case _:
            dims = (*x.dims[:-1], fixed(1))
            m = mean(g, x)
            d = g.node("Sub", [x, m], "float", x.dims)
            v = mean(g, g.node("Pow", [d, two], "float", x.dims))
            r = g.node("Sqrt", [g.node("Add", [v, half], "float", dims)], "float", dims)
            g.node("Div", [d, r], "float", x.dims)


def mean(g: Graph, x: Value) -> Value:
    """Over the last axis."""
    dims = (*x.dims[:-1], fixed(1))
    if g.opset >= 18:
        return g.node("ReduceMean", [x, g.sizes([-1])], "float", dims, rounded=True)
    return g.node("ReduceMean", [x], "float", dims, attributes="axes = [-1]", rounded=True)


def again(g: Graph) -> None:
    """A node that is there already."""
    lines = [line for line in g.lines if line.count(" = ") >= 1 and "Constant<" not in line and "{" not in line]
    made = {value.name: value for value in g.values}
    if not lines:
        return
    name, _, rest = g.choice(lines).partition(" = ")
    if name in made:
        x = made[name]
        g.give(f"{(fresh := g.fresh())} = {rest}", Value(fresh, x.dtype, x.dims, x.rounded, x.integers))


def body(g: Graph, x: Value, result: str) -> list[str]:
    """The lines of a branch that makes `result` from `x` and what is around it."""
    inner = Graph(g.draw, outside=g, made=g.made, opset=g.opset)
    y = x
    for _ in range(g.integer(0, 2)):
        op = g.choice(("Neg", "Tanh", "Add", "Mul", "Identity"))
        other = inner.floats(()) if g.flip() else x
        y = inner.node(op, [y, other] if op in ("Add", "Mul") else [y], "float", x.dims)
    inner.lines.append(f"{result} = {g.choice(('Identity', 'Neg', 'Relu'))}({y.name})")
    return inner.lines


def branch(g: Graph) -> None:
    """An If on a constant, on an input, or on something computed."""
    x = g.pick(lambda v: v.dtype == "float")
    if x is None:
        return
    c = g.pick(lambda v: v.dtype == "bool" and v.rank == 0) if g.flip() else g.constant(np.array(g.flip()), "bool")
    if c is None:
        s = ops.shape_of(g, x)
        one = g.node("ReduceMax", [s], "int64", [], attributes="keepdims = 0")
        c = g.node("Equal", [one, g.constant(np.array(3, np.int64), "int64")], "bool", [])
    names = [g.fresh("b"), g.fresh("b")]
    dims = f"[{','.join(g.fresh('d') for _ in x.dims)}]" if x.dims else ""
    parts = [f"{which}_branch = {name}g () => (float{dims} {name}) {{ {' '.join(body(g, x, name))} }}"
             for which, name in zip(("then", "else"), names, strict=True)]  # fmt: skip
    y = g.fresh()
    g.give(f"{y} = If({c.name}) <{', '.join(parts)}>", Value(y, "float", x.dims, True))


def loop(g: Graph) -> None:
    """A few rounds that read what is around them."""
    x = g.pick(lambda v: v.dtype == "float" and v.rank <= 3)
    if x is None:
        return
    n, t = g.constant(np.array(g.integer(0, 3), np.int64), "int64"), g.constant(np.array(True), "bool")
    i, c, s, d, u, y = (g.fresh("l") for _ in range(6))
    dims = f"[{','.join(g.fresh('d') for _ in x.dims)}]" if x.dims else ""
    other = g.pick(lambda v: v.dtype == "float" and v.dims == x.dims) or x
    op = g.choice(("Add", "Sub", "Max"))
    g.give(
        f"{y} = Loop({n.name}, {t.name}, {x.name}) <body = {y}g (int64 {i}, bool {c}, float{dims} {s}) => "
        f"(bool {d}, float{dims} {u}) {{ {d} = Identity({c}) {u} = {op}({s}, {other.name}) }}>",
        Value(y, "float", x.dims, True),
    )


STEPS: tuple[Callable[[Graph], None], ...] = (
    ops.unary, ops.unary, ops.binary, ops.binary, ops.divided, ops.compared, ops.logical, ops.cast, ops.transpose,
    ops.transpose, ops.reshape, ops.reshape, ops.computed_reshape, ops.computed_reshape, ops.sizes, ops.filled,
    ops.expand, ops.slice_, ops.slice_, ops.concat, ops.squeezed, split, padded, reduced, product,
    convolution, convolution, written_out, again, branch, loop,
)  # fmt: skip
INPUTS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("[n,3]", (N, fixed(3))), ("[n,m]", (N, M)), ("[n,2,m]", (N, fixed(2), M)),
    ("[n,2,4,m]", (N, fixed(2), fixed(4), M)),
    ("[2,3,4]", (fixed(2), fixed(3), fixed(4))), ("[m]", (M,)), ("", ()), ("[1,n]", (fixed(1), N)),
)  # fmt: skip


@st.composite
def texts(draw: Any) -> str:
    """ONNX text of a graph that is valid at each of the `SIZES`."""
    g = Graph(draw, opset=draw(st.sampled_from((20, 20, 17, 13, 24))))
    for number in range(g.integer(1, 3)):
        text, dims = g.choice(INPUTS)
        g.inputs.append(f"float{text} x{number}")
        g.values.append(Value(f"x{number}", "float", dims))
    g.inputs.append("bool flag")
    g.values.append(Value("flag", "bool", ()))
    for _ in range(g.integer(1, 14)):
        g.choice(STEPS)(g)
    made = [
        v
        for v in g.values
        if not v.name.startswith(("x", "flag", "k")) and v.dtype in ("float", "int64", "bool", "int32")
    ]
    if not made:
        made = [g.node("Neg", ["x0"], "float", g.values[0].dims)]
    outputs = {v.name: v for v in (made[-1], *(g.choice(made) for _ in range(g.integer(0, 3))))}
    return g.text(list(outputs.values()))
