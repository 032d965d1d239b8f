"""Checks sizes and axes of operators that move, join and reduce."""

from __future__ import annotations

import itertools

from onnxsmith.graph.operators.sizes.size_rule_call import Call, Dims, clash, normal, product, shown


def one_axis(call: Call) -> None:
    """Checks that `axis` is an axis of the operand; for TopK also that the axis has at least k elements."""
    rank, axis = call.rank(0), int(call.attribute("axis", -1))
    if rank is None:
        return
    _refuse_axis(call, axis, rank)
    dims, wanted = call.dims(0), call.integers(1)
    if call.node.op_type == "TopK" and dims is not None and wanted:
        size = dims[normal(axis, rank)] if rank else None
        if isinstance(size, int) and wanted[0] > size:
            raise call.refuse_value(f"K is {wanted[0]}, and axis {axis} has {size} elements", f"write K={size} or less")


def reduce_axes(call: Call) -> None:
    """Checks that the axes are axes of the operand."""
    rank = call.rank(0)
    for axis in call.axes(1) or () if rank is not None else ():
        _refuse_axis(call, axis, rank or 0)


def concat(call: Call) -> None:
    """Checks that all operands have the same rank, and equal sizes except on `axis`."""
    shapes = [(index, dims) for index in range(len(call.node.inputs)) if (dims := call.dims(index)) is not None]
    if not shapes:
        return
    first, wanted = shapes[0]
    axis = int(call.attribute("axis", 0))
    if not wanted:
        raise call.refuse(first, "one with an axis", "unsqueeze scalars: g.Unsqueeze(x, axes=[0])")
    _refuse_axis(call, axis, len(wanted))
    for index, dims in shapes[1:]:
        if len(dims) != len(wanted):
            short, small, large = (first, wanted, dims) if len(wanted) < len(dims) else (index, dims, wanted)
            axes = ", ".join(map(str, _lacking(small, large, normal(axis, len(large)))))
            fix = f"unsqueeze {call.label(short)}, which is {shown(small)}: g.Unsqueeze(…, axes=[{axes}])"
            raise call.refuse(index, f"one with {len(wanted)} axes like {call.label(first)}, {shown(wanted)}", fix)
        for place, (a, b) in enumerate(zip(wanted, dims, strict=True)):
            if place != normal(axis, len(wanted)) and clash(a, b):
                others = [i for i in range(len(dims)) if clash(wanted[i], dims[i])]
                fix = f"write axis={others[0]}" if len(others) == 1 else "correct the shapes"
                raise call.refuse(index, f"one that equals {shown(wanted)} but on axis {axis}", fix)


def _lacking(small: Dims, large: Dims, joined: int) -> tuple[int, ...]:
    """Returns the axes of size 1 to add to `small` so that it equals `large` but on the axis `joined`; the last axes if
    no choice does that."""
    last = tuple(range(len(small), len(large)))
    for axes in (last, *itertools.combinations(range(len(large)), len(large) - len(small))):
        rest = iter(small)
        made = [1 if place in axes else next(rest) for place in range(len(large))]
        if not any(place != joined and clash(a, b) for place, (a, b) in enumerate(zip(made, large, strict=True))):
            return axes
    return last


def reshape(call: Call) -> None:
    """Checks that the new shape has the same number of elements, and at most one -1. A 0 copies a size."""
    target, dims = call.integers(1), call.dims(0)
    if target is None:
        return
    if target.count(-1) > 1 or any(size < -1 for size in target):
        raise call.refuse_value(f"the shape {target} has {'two -1' if target.count(-1) > 1 else 'a negative size'}",
                                "keep one -1; 0 copies the size of the same axis")  # fmt: skip
    if dims is None:
        return
    allowzero = int(call.attribute("allowzero", 0))
    if not allowzero and any(size == 0 and place >= len(dims) for place, size in enumerate(target)):
        raise call.refuse_value(f"the shape {target} has a 0 beyond the {len(dims)} axes of the operand",
                                "a 0 copies the size of the same axis; write the size, or -1")  # fmt: skip
    # A 0 copies the size, known or not: such axes cancel on both sides.
    copied = {place for place, size in enumerate(target) if size == 0 and not allowzero}
    left = [dim for place, dim in enumerate(dims) if place not in copied]
    have = product(tuple(left))
    rest = [size for place, size in enumerate(target) if place not in copied and size != -1]
    want = product(tuple(rest))
    if want is None:
        return
    if have is None:
        known = product(tuple(dim for dim in left if isinstance(dim, int))) or 1
        if -1 not in target and want % known:
            raise call.refuse_value(
                f"{shown(dims)} cannot become {target}",
                "correct the shape; -1 stands for the size that is left",
                f"the operand has a multiple of {known} elements there, the new shape {want}",
            )
        return
    impossible = (want == 0 and have != 0) or (want != 0 and have % want != 0) if -1 in target else have != want
    if impossible:
        raise call.refuse_value(
            f"{shown(dims)} cannot become {target}",
            "correct the shape; -1 stands for the size that is left",
            f"the operand has {have} elements there, the new shape {want}{' or a multiple' if -1 in target else ''}",
        )


def expand(call: Call) -> None:
    """Checks that the shape broadcasts with the operand."""
    dims, target = call.dims(0), call.integers(1)
    if dims is None or target is None:
        return
    for a, b in zip(reversed(dims), reversed(target), strict=False):
        if clash(a, b) and 1 not in (a, b):
            raise call.refuse_value(f"{shown(dims)} does not expand to {target}", "only axes of size 1 can grow")


def transpose(call: Call) -> None:
    """Checks that `perm` has every axis once."""
    rank, perm = call.rank(0), call.attribute("perm")
    if rank is not None and perm is not None and sorted(perm) != list(range(rank)):
        raise call.refuse_value(
            f"perm={list(perm)} is no order of {rank} axes",
            f"write each of {list(range(rank))} once",
            f"the operand has {shown(call.dims(0))}",
        )


def squeeze(call: Call) -> None:
    """Checks that the removed axes have size 1."""
    dims, axes = call.dims(0), call.axes(1)
    if dims is None:
        return
    for axis in axes or ():
        _refuse_axis(call, axis, len(dims))
        size = dims[axis]
        if isinstance(size, int) and size != 1:
            raise call.refuse_value(
                f"axis {axis} has size {size}, not 1", "take one element, x[:, 0], or reduce the axis"
            )


def unsqueeze(call: Call) -> None:
    """Checks that the new axes are axes of the result, each named once."""
    rank, axes = call.rank(0), call.axes(1)
    if rank is None or axes is None:
        return
    for axis in axes:
        _refuse_axis(call, axis, rank + len(axes))
    if len({normal(axis, rank + len(axes)) for axis in axes}) < len(axes):
        raise call.refuse_value(f"axes={axes} has an axis twice", "give every axis once")


def flatten(call: Call) -> None:
    """Checks that `axis` is between 0 and the rank."""
    rank, axis = call.rank(0), int(call.attribute("axis", 1))
    if rank is not None and not -rank <= axis <= rank:
        raise call.refuse_value(f"axis={axis} is beyond the {rank} axes of the operand", f"write axis={rank} or less")


def split(call: Call) -> None:
    """Checks that the parts add up to the size of the axis, and that each part has a result."""
    dims, parts = call.dims(0), call.axes(1, "split")
    axis, results = int(call.attribute("axis", 0)), len(call.node.outputs)
    count = call.node.attributes.get("num_outputs")
    if count is not None and count.as_int() != results:
        raise call.refuse_value(f"num_outputs={count.as_int()}, and {results} results", "leave outputs=… out")
    if parts is not None and len(parts) != results:
        raise call.refuse_value(
            f"split has {len(parts)} parts, and there are {results} results", f"write outputs={len(parts)}"
        )
    if call.schema.since >= 18 and count is None and not call.has(1):
        raise call.refuse_value("needs split or num_outputs", f"add num_outputs={results}", "since opset 18")
    if dims is None:
        return
    _refuse_axis(call, axis, len(dims))
    size = dims[axis]
    if isinstance(size, int) and parts is not None and (sum(parts) != size or min(parts, default=0) < 0):
        raise call.refuse_value(
            f"the parts {parts} add up to {sum(parts)}, and axis {axis} has {size}", "correct split"
        )
    if isinstance(size, int) and parts is None and call.schema.since < 18 and size % results:
        raise call.refuse_value(f"axis {axis} of size {size} has no {results} equal parts", "give split=[…]")


def slices(call: Call) -> None:
    """Checks that starts, ends, axes and steps have the same length, and that no step is 0."""
    if call.schema.since < 10:
        return
    lengths = {index: (call.dims(index) or (None,))[0] for index in range(1, 5) if call.has(index)}
    for index, length in lengths.items():
        if clash(length, lengths[1]):
            raise call.refuse(index, f"[{lengths[1]}] like starts", "give one number for each axis that is cut")
    rank = call.rank(0)
    for axis in call.integers(3) or () if rank is not None else ():
        _refuse_axis(call, axis, rank or 0)
    if 0 in (call.integers(4) or ()):
        raise call.refuse_value("a step is 0", "write 1 or another number than 0")


def gather(call: Call) -> None:
    """Checks that `axis` is an axis; also that known indices lie inside it."""
    dims, axis, indices = call.dims(0), int(call.attribute("axis", 0)), call.integers(1)
    if dims is None:
        return
    _refuse_axis(call, axis, len(dims))
    size = dims[axis]
    bad = [index for index in indices or () if isinstance(size, int) and not -size <= index < size]
    if bad:
        raise call.refuse_value(f"the index {bad[0]} is beyond axis {axis} of size {size}", "write a smaller index")


def gather_elements(call: Call) -> None:
    """Checks that data and indices have the same rank."""
    _same_rank(call, (1,))


def scatter_elements(call: Call) -> None:
    """Checks that data, indices and updates have the same rank, and indices and updates the same shape."""
    _same_rank(call, (1, 2))
    indices, updates = call.dims(1), call.dims(2)
    if indices is not None and updates is not None and any(clash(a, b) for a, b in zip(indices, updates, strict=True)):
        raise call.refuse(2, f"{shown(indices)} like indices", "give one update for each index")


def scatter_nd(call: Call) -> None:
    """Checks that updates has the shape of the slices that indices select."""
    data, indices, updates = (call.dims(index) for index in range(3))
    if data is None or not indices or updates is None or not isinstance(indices[-1], int):
        return
    if indices[-1] > len(data):
        raise call.refuse(
            1, f"[…, {len(data)}] or less", "the last axis of indices has one number for each axis of data"
        )
    wanted = (*indices[:-1], *data[indices[-1] :])
    if len(wanted) != len(updates) or any(clash(a, b) for a, b in zip(wanted, updates, strict=True)):
        raise call.refuse(2, shown(wanted), "give one update for each row of indices")


def tile(call: Call) -> None:
    """Checks that repeats has a number for each axis."""
    rank, repeats = call.rank(0), call.dims(1)
    if rank is not None and repeats is not None and (len(repeats) != 1 or clash(repeats[0], rank)):
        raise call.refuse(1, f"[{rank}], a number for each axis", "write 1 for an axis that is not repeated")


def pad(call: Call) -> None:
    """Checks that pads has two numbers for each axis."""
    rank, pads = call.rank(0), call.dims(1)
    axes = call.dims(3)
    count = axes[0] if axes else rank
    held = call.node.attributes.get("pads")
    length = len(held.as_ints()) if held is not None else pads[0] if pads else None
    if isinstance(count, int) and clash(length, 2 * count):
        raise call.refuse_value(
            f"pads has {length} numbers, not {2 * count}",
            "write all beginnings, then all ends: [0, 0, 1, 1, 0, 0, 1, 1] pads the last two of four axes by 1",
            f"the operand has {shown(call.dims(0))}",
        )


def cumsum(call: Call) -> None:
    """Checks that the axis is a scalar, and an axis of the operand."""
    rank, axis = call.rank(0), call.integers(1)
    if call.rank(1) not in (None, 0) and call.dims(1) != (1,):
        raise call.refuse(1, "a scalar", "give one axis")
    if rank is not None and axis:
        _refuse_axis(call, axis[0], rank)


def _same_rank(call: Call, operands: tuple[int, ...]) -> None:
    rank = call.rank(0)
    for index in operands:
        if rank is not None and call.rank(index) not in (None, rank):
            raise call.refuse(index, f"one with {rank} axes like {call.label(0)}", "unsqueeze it, or use g.Gather")


def _refuse_axis(call: Call, axis: int, rank: int) -> None:
    if not -rank <= axis < rank:
        raise call.refuse_value(
            f"there is no axis {axis} among {rank}",
            f"write an axis from {-rank} to {rank - 1}" if rank else "the operand is a scalar and has no axes",
        )
