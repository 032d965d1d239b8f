"""What a random shape computation is made of: arithmetic of integers, and tensors whose shapes follow from them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from onnx import TensorProto, helper

from benchmarks.judging.shape_graphs import DTYPES, FLOATS, Integers, ShapeGraph, Tensor

_SYMBOLS = ("n", "m", "k", "batch")
_OUTSIDE = 2**64
_WORKED_OUT = -1
"""The bound of an element that may be -1."""
_OPSETS = (15, 18, 18, 21)


def graph(seed: int) -> ShapeGraph:
    """A random shape computation."""
    g = ShapeGraph(seed, _OPSETS[seed % len(_OPSETS)])
    _inputs(g)
    for _ in range(g.random.randint(3, 14)):
        g.choice(_STEPS)(g)
    for _ in range(g.random.randint(0, 3)):
        g.choice(_USES)(g)
        if g.flip(0.4):
            g.choice(_STEPS)(g)
    if not g.nodes:
        _binary(g)
    return g


def _inputs(g: ShapeGraph) -> None:
    shared = g.flip()
    for index in range(g.random.randint(1, 3)):
        dims = [
            g.random.randint(1, 5) if g.flip(0.3) else g.choice(_SYMBOLS) if shared else f"{g.choice(_SYMBOLS)}{index}"
            for _ in range(g.random.randint(1, 4))
        ]
        name = f"x{index}"
        g.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, dims))
        g.tensors.append(Tensor(name, len(dims), 7))
    if g.flip(0.3):
        length = g.choice((None, 1, 2, 3))
        dtype = g.choice(("int64", "int64", "int32"))
        g.inputs.append(helper.make_tensor_value_info("given", DTYPES[dtype], [] if length is None else [length]))
        g.integers.append(Integers("given", dtype, length, 8))


def _number(one: Integers) -> bool:
    return one.dtype != "bool"


def _beside(g: ShapeGraph, one: Integers) -> Integers:
    """A second operand of the same dtype that broadcasts."""
    lengths = {None, 1, one.length} if one.length not in (None, 1) else {None, 1, 2, 3, one.length}
    if g.flip():
        other = g.pick(lambda v: v.dtype != "bool" and v.length in lengths)
        if other.length in lengths:
            return g.cast(other, one.dtype)
    limit = 2**31 - 1 if one.dtype == "int32" else 2**63 - 1
    numbers = [max(-limit - 1, min(limit, g.number())) for _ in range(one.length or 1)]
    return g.constant(numbers[0] if one.length is None or g.flip() else numbers, one.dtype)


def _joined(*given: Integers) -> int | None:
    return max((one.length for one in given if one.length is not None), default=None)


def _size(g: ShapeGraph) -> None:
    if g.flip(0.8):
        g.size(g.choice(g.tensors))
        return
    tensor = g.choice(g.tensors)
    g.put("Size", [tensor.name], "int64", None, max(1, tensor.bound) ** tensor.rank)


def _shape(g: ShapeGraph) -> None:
    tensor = g.choice(g.tensors)
    g.put("Shape", [tensor.name], "int64", tensor.rank, tensor.bound)


def _binary(g: ShapeGraph) -> None:
    one = g.pick(_number)
    other = _beside(g, one)
    a, b = (one, other) if g.flip() else (other, one)
    op = g.choice(("Add", "Sub", "Mul", "Mul", "Div", "Div", "Mod", "Min", "Max", "Max"))
    if op in ("Div", "Mod"):
        b = _guarded(g, b)
    bound = {"Add": a.bound + b.bound, "Sub": a.bound + b.bound, "Mul": a.bound * b.bound, "Div": a.bound}.get(
        op, b.bound if op == "Mod" else max(a.bound, b.bound)
    )
    g.put(op, [a.name, b.name], one.dtype, _joined(a, b), min(bound, _OUTSIDE))


def _guarded(g: ShapeGraph, divisor: Integers) -> Integers:
    """A divisor that is not 0: by Max, by Abs and 1 more, or by Where. Left as it is now and then: the runtime dies of
    it, and nothing can be compared."""
    way = g.random.random()
    one = g.constant(1, divisor.dtype)
    if way < 0.05:
        return divisor
    if way < 0.6:
        return g.put("Max", [divisor.name, one.name], divisor.dtype, divisor.length, max(1, divisor.bound))
    zero = g.constant(0, divisor.dtype)
    is_zero = g.put("Equal", [divisor.name, zero.name], "bool", divisor.length, 1)
    return g.put("Where", [is_zero.name, one.name, divisor.name], divisor.dtype, divisor.length, max(1, divisor.bound))


def _compare(g: ShapeGraph) -> None:
    one = g.pick(_number)
    other = _beside(g, one)
    op = g.choice(("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"))
    g.put(op, [one.name, other.name], "bool", _joined(one, other), 1)


def _logic(g: ShapeGraph) -> None:
    one = g.cast(g.pick(), "bool")
    if g.flip(0.3):
        g.put("Not", [one.name], "bool", one.length, 1)
        return
    other = g.cast(g.pick(lambda v: v.length in (None, 1, one.length)), "bool")
    if other.length in (None, 1, one.length):
        g.put(g.choice(("And", "Or", "Xor")), [one.name, other.name], "bool", _joined(one, other), 1)


def _where(g: ShapeGraph) -> None:
    a = g.pick(_number)
    b = _beside(g, a)
    length = _joined(a, b)
    condition = g.cast(g.pick(lambda v: v.length in (None, 1, length)), "bool")
    if condition.length in (None, 1, length):
        g.put("Where", [condition.name, a.name, b.name], a.dtype, _joined(a, b, condition), max(a.bound, b.bound))


def _cast(g: ShapeGraph) -> None:
    one = g.pick()
    if g.flip(0.6):
        g.cast(one, g.choice(("int64", "int32", "int32", "bool")))
        return
    kind = g.choice(list(FLOATS))
    there = g.node("Cast", [one.name], to=FLOATS[kind])
    if g.flip() and one.bound < 2**20:
        factor = g.choice((0.5, 2.0, 1.0, 0.25, 1.5, -1.0))
        there = g.node(g.choice(("Mul", "Div")), [there, g.constant(factor, kind.replace("float", "float32")).name])
    if g.flip():
        there = g.node(g.choice(("Floor", "Ceil", "Round", "Abs", "Neg")), [there])
    back = (
        g.choice(("int64", "int64", "int32", "bool")) if one.bound < 2**30 else "int64" if one.bound < 2**60 else "bool"
    )
    g.put("Cast", [there], back, one.length, min(4 * one.bound, _OUTSIDE), to=DTYPES[back])


def _unary(g: ShapeGraph) -> None:
    one = g.pick(_number)
    op = g.choice(("Abs", "Neg", "Sign", "Identity", "Clip"))
    if op == "Clip":
        low, high = sorted((g.number(0.05), g.number(0.05)))
        limit = 2**31 - 1 if one.dtype == "int32" else 2**63 - 1
        bounds = [g.constant(max(-limit - 1, min(limit, number)), one.dtype) for number in (low, high)]
        given = [bounds[0].name, bounds[1].name] if g.flip(0.7) else g.choice(([bounds[0].name], ["", bounds[1].name]))
        g.put("Clip", [one.name, *given], one.dtype, one.length, max(one.bound, *(b.bound for b in bounds)))
        return
    g.put(op, [one.name], one.dtype, one.length, 1 if op == "Sign" else one.bound)


def _reduce(g: ShapeGraph) -> None:
    one = g.vector(g.pick(_number))
    exact = one.bound ** (one.length or 1) < 2**53 and one.bound * (one.length or 1) < 2**53
    # onnxruntime adds up and multiplies 64-bit integers in double
    op = g.choice(("ReduceMax", "ReduceMin", *(("ReduceProd", "ReduceSum") if exact else ())))
    keep = g.flip()
    axes = [g.constant([g.choice((0, -1))]).name] if g.flip() and (g.opset >= 18 or op == "ReduceSum") else []
    bound = one.bound ** (one.length or 1) if op == "ReduceProd" else one.bound * (one.length or 1)
    g.put(op, [one.name, *axes], one.dtype, 1 if keep else None, min(bound, _OUTSIDE), keepdims=int(keep))


def _part(g: ShapeGraph) -> None:
    one = g.vector(g.pick())
    length = one.length or 1
    if g.flip():
        places = [g.random.randrange(-length, length) for _ in range(g.random.randint(1, 3))]
        g.put("Gather", [one.name, g.constant(places).name], one.dtype, len(places), one.bound, axis=0)
        return
    start, end = sorted(g.random.randint(0, length) for _ in range(2))
    step = g.choice((1, 1, 1, 2, -1))
    a, b = (start, end) if step > 0 else (end - 1, start - 1 if start else -(2**63) + 1)
    bounds = [g.constant([number]).name for number in (a, b if b != length or g.flip() else 2**63 - 1, 0, step)]
    taken = len(range(length)[start : end : abs(step)])
    if taken:
        g.put("Slice", [one.name, *bounds], one.dtype, taken, one.bound)


def _concat(g: ShapeGraph) -> None:
    first = g.vector(g.pick())
    parts = [first, *(g.vector(g.cast(g.pick(), first.dtype)) for _ in range(g.random.randint(1, 2)))]
    if g.flip(0.3) and first.dtype != "bool":
        parts.append(g.vector(g.constant([g.choice((0, 1, 2, 3))], first.dtype)))
    length = sum(part.length or 1 for part in parts)
    if length <= 6:
        g.random.shuffle(parts)
        bound = max(part.bound for part in parts)
        g.put("Concat", [part.name for part in parts], first.dtype, length, bound, axis=0)


def _view(g: ShapeGraph) -> None:
    one = g.pick()
    (g.scalar if one.length is not None else g.vector)(one)


def _cumulate(g: ShapeGraph) -> None:
    one = g.vector(g.cast(g.pick(_number), "int64"))
    bound = min(one.bound * (one.length or 1), _OUTSIDE)
    flags = {"exclusive": int(g.flip(0.3)), "reverse": int(g.flip(0.3))}
    g.put("CumSum", [one.name, g.constant(0).name], "int64", one.length, bound, **flags)


def _positions(g: ShapeGraph) -> None:
    """NonZero, whose number of results depends on the data, and how many there are."""
    one = g.vector(g.pick())
    places = g.node("NonZero", [one.name])
    g.put("Size", [places], "int64", None, one.length or 1)


_STEPS = (
    *(_size, _size, _size, _shape, _shape, _binary, _binary, _binary, _binary, _binary, _compare, _logic, _where),
    *(_cast, _cast, _unary, _reduce, _part, _concat, _concat, _view, _cumulate, _positions),
)


def _target(g: ShapeGraph, most: int = 4) -> list[Integers]:
    """Sizes, each a vector of one."""
    found = []
    for _ in range(g.random.randint(1, most)):
        one = g.small(g.scalar(g.pick(_number)))
        found.append(g.vector(one))
    return found


def _whole(g: ShapeGraph, parts: list[Integers]) -> str:
    if len(parts) == 1 and g.flip():
        return parts[0].name
    return g.put("Concat", [part.name for part in parts], "int64", len(parts), _OUTSIDE, axis=0).name


def _odd(g: ShapeGraph, one: Integers) -> Integers:
    """The same number by a detour, or another."""
    way = g.random.random()
    if way < 0.5:
        return one
    number = g.choice((1, 1, 2, 3))
    other = g.constant([number] if g.flip() else number)
    if way < 0.65:
        return g.put("Max", [one.name, g.constant([g.choice((0, 1))]).name], "int64", 1, one.bound + 1)
    if way < 0.75:
        return g.cast(g.cast(one, "int32"), "int64")
    there, back = g.choice((("Add", "Sub"), ("Mul", "Div"), ("Sub", "Add")))
    name = g.put(there, [one.name, other.name], "int64", 1, one.bound * 3 + 3).name
    return g.put(back, [name, other.name], "int64", 1, one.bound)


def _dims(g: ShapeGraph, tensor: Tensor) -> list[Integers]:
    return [_odd(g, g.vector(g.size(tensor, axis))) for axis in range(tensor.rank)]


def _reshape(g: ShapeGraph) -> None:
    """The dimensions in another order, some taken together, some as 0 or -1."""
    tensor = g.choice(g.tensors)
    parts = _dims(g, tensor)
    if g.flip(0.4):
        g.random.shuffle(parts)
    if len(parts) > 1 and g.flip():
        a, b = parts[:2]
        parts[:2] = [g.put("Mul", [a.name, b.name], "int64", 1, min(a.bound * b.bound, _OUTSIDE))]
    if g.flip(0.6):
        at = g.random.randrange(len(parts))
        parts[at] = replace(g.constant([g.choice((-1, -1, 0))]), bound=_WORKED_OUT)
    if g.flip(0.2):
        parts.insert(g.random.randint(0, len(parts)), g.vector(g.constant([1])))
    worked_out = any(one.bound == _WORKED_OUT for one in parts)  # invalid with allowzero and an empty dimension
    allowzero = {"allowzero": 1} if g.flip(0.3) and not worked_out else {}
    bound = min(tensor.bound**2 + 7, 2**40)
    g.tensor("Reshape", [tensor.name, _whole(g, parts)], len(parts), bound, **allowzero)


def _expand(g: ShapeGraph) -> None:
    tensor = g.choice(g.tensors)
    if tensor.bound > _LARGEST:
        return
    if g.flip():
        parts = [part if g.flip(0.7) else g.vector(g.constant([1])) for part in _dims(g, tensor)]
        extra = [g.vector(g.small(g.scalar(g.pick(_number))))] if len(parts) < 4 and g.flip() else []
        g.tensor("Expand", [tensor.name, _whole(g, [*extra, *parts])], len(extra + parts), tensor.bound + 25)
        return
    filler = g.constant(np.ones([1] * g.random.randint(1, 2)), "float32").name
    parts = [*_target(g, 2), g.vector(g.small(g.scalar(g.pick(_number))))]
    g.tensor("Expand", [filler, _whole(g, parts)], len(parts), 25)


_LARGEST = 60


def _slice(g: ShapeGraph) -> None:
    tensor = g.choice(g.tensors)
    axis = g.random.randrange(tensor.rank)
    bounds = [
        g.vector(g.cast(g.scalar(g.pick(_number)), "int64")) if g.flip() else g.vector(g.constant([g.number(0.1)]))
        for _ in range(2)
    ]
    extra = [g.constant([axis - tensor.rank if g.flip(0.2) else axis]).name]
    step = [g.constant([g.choice((1, 2, 3, -1))]).name] if g.flip(0.3) else []
    g.tensor("Slice", [tensor.name, *(b.name for b in bounds), *extra, *step], tensor.rank, tensor.bound)


def _tile(g: ShapeGraph) -> None:
    tensor = g.choice(g.tensors)
    if tensor.bound > _LARGEST or tensor.rank > 2:
        return
    parts = [g.vector(g.small(g.scalar(g.pick(_number)))) for _ in range(tensor.rank)]
    g.tensor("Tile", [tensor.name, _whole(g, parts)], tensor.rank, tensor.bound * 25)


def _filled(g: ShapeGraph) -> None:
    parts = _target(g, 3)
    value = helper.make_tensor("value", TensorProto.FLOAT, [1], [2.5])
    g.tensor("ConstantOfShape", [_whole(g, parts)], len(parts), 25, value=value)


def _range(g: ShapeGraph) -> None:
    ends = [g.small(g.scalar(g.pick(_number))) for _ in range(2)]
    scalars = [end if end.length is None else g.scalar(end) for end in ends]
    if any(one.length is not None for one in scalars):
        return
    step = g.constant(g.choice((1, 1, 2, 3, -1)))
    made = g.node("Range", [g.constant(0).name if g.flip() else scalars[0].name, scalars[1].name, step.name])
    g.tensor("Cast", [made], 1, 60, to=TensorProto.FLOAT)


def _resize(g: ShapeGraph) -> None:
    tensor = g.choice(g.tensors)
    if tensor.bound > _LARGEST or tensor.rank > 3:
        return
    parts = [part if g.flip(0.6) else g.vector(g.small(g.scalar(g.pick(_number)))) for part in _dims(g, tensor)]
    g.tensor("Resize", [tensor.name, "", "", _whole(g, parts)], tensor.rank, 30, mode="nearest",
             coordinate_transformation_mode="asymmetric", nearest_mode="floor")  # fmt: skip


def _joined_tensors(g: ShapeGraph) -> None:
    """Tensors side by side, or broadcast together, whose sizes are then read again."""
    a = g.choice(g.tensors)
    if g.flip():
        axis = g.random.randrange(-a.rank, a.rank)
        b = a
        if g.flip():  # of another tensor of other sizes, onnxruntime leaves some of the result as it was in memory
            bounds = [g.constant([g.number(0.05)]).name for _ in range(2)]
            b = g.tensor("Slice", [a.name, *bounds, g.constant([axis]).name], a.rank, a.bound)
        g.tensor("Concat", [a.name, b.name], a.rank, a.bound + b.bound, axis=axis)
    else:
        g.tensor("Add", [a.name, g.choice(g.tensors).name], a.rank, a.bound)


_USES = (
    *(_reshape, _reshape, _reshape, _expand, _expand, _slice, _slice, _tile, _filled, _range, _resize),
    _joined_tensors,
)
