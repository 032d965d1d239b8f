"""What a random graph is made of: several dozen operators, each applied where it is valid at every size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.suites.random_graph import SIZES, Dim, Graph, Value, fixed

BOUNDED = ("Relu", "Neg", "Abs", "Identity", "Sigmoid", "Tanh", "HardSigmoid", "LeakyRelu", "Dropout", "Softsign")
"""What may follow rounding."""
CURVED = ("Erf", "Sin", "Cos", "Softplus", "Elu", "Selu", "Atan")
STEEP = ("Floor", "Ceil", "Round", "Sign", "Exp", "Reciprocal")
"""What makes much of little; Reciprocal tells the zeros apart."""


def unary(g: Graph) -> None:
    """An element-wise operator of one input."""
    x = g.pick(lambda v: v.dtype == "float")
    if x is None:
        return
    pool = BOUNDED if x.rounded else BOUNDED + CURVED + STEEP[:5]
    g.node(g.choice(pool), [x], "float", x.dims)


def joined(a: Sequence[Dim], b: Sequence[Dim]) -> tuple[Dim, ...] | None:
    """The shape that two are broadcast to, if they are at every size."""
    rank = max(len(a), len(b))
    padded = [((fixed(1),) * (rank - len(dims))) + tuple(dims) for dims in (a, b)]
    result = []
    for one, other in zip(*padded, strict=True):
        if any(p != q and 1 not in (p, q) for p, q in zip(one, other, strict=True)):
            return None
        result.append(tuple(q if p == 1 else p for p, q in zip(one, other, strict=True)))
    return tuple(result)


def beside(g: Graph, x: Value) -> Value:
    """A second operand: a constant that broadcasts to `x`, or another value that goes with it."""
    if g.flip():
        other = g.pick(lambda v: v.dtype == x.dtype and joined(v.dims, x.dims) is not None)
        if other is not None:
            return other
    dims = x.dims[g.integer(0, x.rank) :]
    shape = [dim[0] if len(set(dim)) == 1 and g.flip() else 1 for dim in dims]
    return g.floats(shape) if x.dtype == "float" else g.constant(np.full(shape, g.integer(-2, 3)), x.dtype)


def binary(g: Graph) -> None:
    """Arithmetic."""
    x = g.pick(lambda v: v.dtype in ("float", "int64"))
    if x is None:
        return
    other = beside(g, x)
    a, b = (x, other) if g.flip() else (other, x)
    dims = joined(a.dims, b.dims)
    assert dims is not None
    ops = ("Add", "Sub", "Mul", "Max", "Min")
    if any(sum(dim[at] for dim in dims) > 60 for at in range(len(SIZES))):
        return
    integers = None
    op = g.choice(ops)
    if a.integers and b.integers and len(dims) <= 1:
        integers = elementwise(op, a, b)
    g.node(op, [a, b], x.dtype, dims, integers=integers)


def elementwise(op: str, a: Value, b: Value) -> tuple[tuple[int, ...], ...] | None:
    """What an operator makes of sizes."""
    do: dict[str, Callable[[Any, Any], Any]] = {
        "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Max": np.maximum, "Min": np.minimum
    }  # fmt: skip
    found = []
    for p, q in zip(a.integers or (), b.integers or (), strict=True):
        found.append(tuple(int(n) for n in np.atleast_1d(do[op](p if a.rank else p[0], q if b.rank else q[0]))))
    return tuple(found)


def divided(g: Graph) -> None:
    """Division, whose divisor is not zero."""
    x = g.pick(lambda v: v.dtype in ("float", "int64"))
    if x is None:
        return
    if x.dtype == "int64":
        d = g.integer(1, 3) * g.choice((1, -1))
        other = g.constant(np.array(d, np.int64), "int64")
        integers = None
        op = g.choice(("Div", "Mod"))
        if x.integers is not None and op == "Div":
            integers = tuple(tuple(int(np.trunc(n / d)) for n in numbers) for numbers in x.integers)
        g.node(op, [x, other], "int64", x.dims, integers=integers)
    else:
        other = g.constant(np.array(g.choice((1.0, 2.0, -4.0, 0.5)), np.float32), "float")
        g.node(g.choice(("Div", "Pow")) if not x.rounded and other.name else "Div", [x, other], "float", x.dims)


def compared(g: Graph) -> None:
    """A comparison and what uses it."""
    x = g.pick(lambda v: v.dtype == "float" and not v.rounded)
    if x is None:
        return
    other = beside(g, x)
    if other.rounded:
        return
    dims = joined(x.dims, other.dims)
    assert dims is not None
    c = g.node(g.choice(("Less", "Greater", "Equal", "LessOrEqual")), [x, other], "bool", dims)
    if g.flip():
        c = g.node("Not", [c], "bool", dims)
    mine = g.pick(lambda v: v.dtype == "float" and joined(v.dims, dims) is not None)
    if mine is not None:
        wide = joined(mine.dims, dims)
        assert wide is not None
        g.node("Where", [c, mine, g.floats(())] if g.flip() else [c, g.floats(()), mine], "float", wide)


def logical(g: Graph) -> None:
    """Bools of one shape."""
    x = g.pick(lambda v: v.dtype == "bool")
    if x is None:
        compared(g)
        return
    other = g.pick(lambda v: v.dtype == "bool" and joined(v.dims, x.dims) is not None) or x
    dims = joined(x.dims, other.dims)
    assert dims is not None
    g.node(g.choice(("And", "Or", "Xor")), [x, other], "bool", dims)


CODES = {"float": 1, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "double": 11}


def cast(g: Graph) -> None:
    """To another dtype, and often back."""
    x = g.pick(lambda v: v.dtype in CODES and not v.rounded)
    if x is None:
        return
    to = g.choice(tuple(CODES))
    if x.dtype in ("float", "double", "float16") and to in ("int32", "int64", "bool"):
        return  # what NaN becomes is not defined
    y = g.node(
        "Cast",
        [x],
        to,
        x.dims,
        attributes=f"to = {CODES[to]}",
        integers=x.integers if to in ("int32", "int64") else None,
    )
    if g.flip() or to not in ("float", "int64", "bool"):
        back = x.dtype if x.dtype in ("float", "int64", "bool") else "float"
        if back == "float" or to not in ("float", "double", "float16"):
            kept = x.integers if back == "int64" and to in ("int32", "int64") else None
            g.node("Cast", [y], back, x.dims, attributes=f"to = {CODES[back]}", integers=kept)


def transpose(g: Graph) -> None:
    """With and without perm."""
    x = g.pick(lambda v: v.rank >= 1 and v.dtype in ("float", "int64", "bool"))
    if x is None:
        return
    if g.flip():
        g.node("Transpose", [x], x.dtype, x.dims[::-1])
        return
    perm = g.permutation(x.rank)
    g.node("Transpose", [x], x.dtype, [x.dims[p] for p in perm], attributes=f"perm = {perm}")


def reshape(g: Graph) -> None:
    """To a constant target with 0 and -1, which cannot be worked out where there is nothing."""
    x = g.pick(lambda v: v.rank >= 1 and v.dtype in ("float", "int64") and all(v.count(at) for at in range(len(SIZES))))
    if x is None:
        return
    kept = g.integer(0, x.rank)
    rest = [int(np.prod([dim[at] for dim in x.dims[kept:]], dtype=np.int64)) for at in range(len(SIZES))]
    tail = g.choice((1, 1, 2, 3))
    if any(number % tail for number in rest):
        tail = 1
    left = tuple(number // tail for number in rest)
    dims = (*x.dims[:kept], left, fixed(tail))
    target = [*[0] * kept, -1, tail]
    g.node("Reshape", [x, g.sizes(target)], x.dtype, dims)


def computed_reshape(g: Graph) -> None:
    """To a target that is made of sizes: those of the value itself, merged, or those of another that is as large."""
    x = g.pick(lambda v: v.rank >= 1 and v.dtype == "float")
    if x is None:
        return
    y = g.pick(lambda v: v.rank >= 1 and all(v.count(at) == x.count(at) for at in range(len(SIZES))))
    if y is not None and g.flip():
        s = shape_of(g, y)
        g.node("Reshape", [x, s], "float", y.dims)
        return
    if not all(x.count(at) for at in range(len(SIZES))):
        return
    cut = g.integer(0, x.rank - 1)
    s = shape_of(g, x)
    first = (
        g.node("Slice", [s, g.sizes([0]), g.sizes([cut])], "int64", [fixed(cut)], integers=part(s, 0, cut))
        if cut
        else None
    )
    if g.flip():
        rest = g.sizes([-1])
    else:
        tail = g.node(
            "Slice",
            [s, g.sizes([cut]), g.sizes([x.rank])],
            "int64",
            [fixed(x.rank - cut)],
            integers=part(s, cut, x.rank),
        )
        rest = g.node("ReduceProd", [tail], "int64", [fixed(1)], attributes="keepdims = 1")
    target = (
        g.node("Concat", [first, rest], "int64", [fixed(cut + 1)], attributes="axis = 0") if first is not None else rest
    )
    merged = tuple(int(np.prod([dim[at] for dim in x.dims[cut:]], dtype=np.int64)) for at in range(len(SIZES)))
    g.node("Reshape", [x, target], "float", (*x.dims[:cut], merged))


def shape_of(g: Graph, x: Value) -> Value:
    """Its sizes."""
    held = tuple(tuple(dim[at] for dim in x.dims) for at in range(len(SIZES)))
    return g.node("Shape", [x], "int64", [fixed(x.rank)], integers=held)


def part(x: Value, start: int, end: int) -> tuple[tuple[int, ...], ...] | None:
    """Some elements of sizes."""
    return None if x.integers is None else tuple(numbers[start:end] for numbers in x.integers)


def sizes(g: Graph) -> None:
    """Sizes, and arithmetic with them."""
    x = g.pick(lambda v: v.rank >= 1)
    if x is None:
        return
    s = shape_of(g, x)
    index = g.integer(-x.rank, x.rank - 1)
    held = tuple((numbers[index],) for numbers in s.integers or ())
    if g.flip():
        one = g.node("Gather", [s, g.sizes([index])], "int64", [fixed(1)], integers=held)
    else:
        scalar = g.node("Gather", [s, g.constant(np.array(index, np.int64), "int64")], "int64", [], integers=held)
        one = g.node("Unsqueeze", [scalar, g.sizes([0])], "int64", [fixed(1)], integers=held)
    if g.flip():
        g.node("Concat", [one, g.sizes([g.integer(1, 3)]), one], "int64", [fixed(3)], attributes="axis = 0")


def filled(g: Graph) -> None:
    """A tensor as large as sizes say."""
    s = g.pick(lambda v: v.integers is not None and v.rank == 1 and 0 < v.dims[0][0] <= 3
               and all(1 <= n <= 8 for numbers in v.integers for n in numbers))  # fmt: skip
    if s is None or s.integers is None:
        return
    dims = [tuple(numbers[i] for numbers in s.integers) for i in range(s.dims[0][0])]
    match g.choice(("ConstantOfShape", "Expand", "Range")):
        case "ConstantOfShape":
            g.node("ConstantOfShape", [s], "float", dims)
        case "Expand":
            g.node("Expand", [g.floats(()), s], "float", dims)
        case _ if s.dims[0][0] == 1:
            scalar = g.node("Squeeze", [s], "int64", [])
            zero, one = (g.constant(np.array(n, np.int64), "int64") for n in (0, 1))
            r = g.node("Range", [zero, scalar, one], "int64", dims)
            g.node("Cast", [r], "float", dims, attributes="to = 1")


def expand(g: Graph) -> None:
    """To the shape of another value."""
    x = g.pick(lambda v: v.dtype == "float")
    if x is None:
        return
    y = g.pick(lambda v: joined(v.dims, x.dims) is not None and v.rank >= 1)
    if y is None:
        return
    dims = joined(x.dims, y.dims)
    assert dims is not None
    g.node("Expand", [x, shape_of(g, y)], "float", dims)


def slice_(g: Graph) -> None:
    """Bounds of every kind, but nothing empty: there, too, runtimes differ."""
    x = g.pick(lambda v: v.rank >= 1 and v.dtype in ("float", "int64"))
    if x is None:
        return
    axis = g.integer(0, x.rank - 1)
    step = g.choice((1, 1, 1, 2, -1, -2))
    edges = (0, 1, 2, -1, -2, 2**63 - 1, -(2**63) + 1, 1000, 3)
    start, end = g.choice(edges), g.choice(edges)
    if step < 0 and (start < -2 or end > 1000):
        start, end = -1, -(2**63) + 1  # what else there is runtimes understand differently
    length = tuple(len(range(size)[slice(start, end, step)]) for size in x.dims[axis])
    if 0 in length:
        return
    dims = (*x.dims[:axis], length, *x.dims[axis + 1 :])
    held = None
    if x.integers is not None and x.rank == 1:
        held = tuple(numbers[slice(start, end, step)] for numbers in x.integers)
    bounds = [g.sizes([number]) for number in (start, end, g.choice((axis, axis - x.rank)), step)]
    g.node("Slice", [x, *(bounds[:4] if step != 1 or g.flip() else bounds[:3])], x.dtype, dims, integers=held)


def concat(g: Graph) -> None:
    """Of several values of one rank."""
    x = g.pick(lambda v: v.rank >= 1 and v.dtype in ("float", "int64"))
    if x is None:
        return
    axis = g.integer(0, x.rank - 1)
    parts = [x]
    for _ in range(g.integer(0, 2)):
        y = g.pick(lambda v: v.dtype == x.dtype and v.rank == x.rank
                   and all(p == q for i, (p, q) in enumerate(zip(v.dims, x.dims, strict=True))
                           if i != axis))  # fmt: skip
        parts.append(y if y is not None else x)
    total = tuple(sum(v.dims[axis][at] for v in parts) for at in range(len(SIZES)))
    held = None
    if x.rank == 1 and all(v.integers is not None for v in parts):
        held = tuple(tuple(n for v in parts for n in (v.integers or ())[at]) for at in range(len(SIZES)))
    dims = (*x.dims[:axis], total, *x.dims[axis + 1 :])
    g.node("Concat", parts, x.dtype, dims, attributes=f"axis = {g.choice((axis, axis - x.rank))}", integers=held)


def squeezed(g: Graph) -> None:
    """Squeeze, Unsqueeze, Flatten."""
    x = g.pick(lambda v: v.dtype in ("float", "int64"))
    if x is None:
        return
    ones = [axis for axis, dim in enumerate(x.dims) if dim == fixed(1)]
    match g.choice(("Squeeze", "Unsqueeze", "Flatten")):
        case "Squeeze" if ones:
            axis = g.choice(ones)
            g.node("Squeeze", [x, g.sizes([axis])], x.dtype, [*x.dims[:axis], *x.dims[axis + 1 :]], integers=x.integers)
        case "Flatten" if x.rank:
            axis = g.integer(0, x.rank)
            dims = [tuple(int(np.prod([d[at] for d in part], dtype=np.int64)) for at in range(len(SIZES)))
                    for part in (x.dims[:axis], x.dims[axis:])]  # fmt: skip
            g.node("Flatten", [x], x.dtype, dims, attributes=f"axis = {axis}")
        case _ if x.rank < 5:
            axis = g.integer(0, x.rank)
            held = x.integers if x.rank == 0 else None
            g.node(
                "Unsqueeze", [x, g.sizes([axis])], x.dtype, [*x.dims[:axis], fixed(1), *x.dims[axis:]], integers=held
            )
        case _:
            pass
