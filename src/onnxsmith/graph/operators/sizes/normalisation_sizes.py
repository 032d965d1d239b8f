"""Checks sizes of normalisations."""

from __future__ import annotations

from onnxsmith.graph.operators.sizes.size_rule_call import Call, Dim, Dims, clash, normal, shown


def batch(call: Call) -> None:
    """Checks that scale, B, mean and var have a number for each channel."""
    _vectors(call, (1, 2, 3, 4), 1)


def channels(call: Call) -> None:
    """Checks that scale and B have a number for each channel; and that an axis follows the channels."""
    x = call.dims(0)
    if x is not None and len(x) < 3:
        raise call.refuse(
            0, "[N, C, …] with one axis or more after the channels", "use g.LayerNormalization for [N, C]"
        )
    _vectors(call, (1, 2), 1)


def group(call: Call) -> None:
    """Checks that the channels are a multiple of the groups, and that scale and bias have a number for each channel
    (before opset 21: for each group)."""
    x, groups = call.dims(0), int(call.attribute("num_groups", 1))
    if x is not None and len(x) < 3:
        raise call.refuse(0, "[N, C, …] with one axis or more after the channels", "unsqueeze it")
    if x is not None and isinstance(x[1], int) and (groups < 1 or x[1] % groups):
        raise call.refuse(0, f"one whose channels are a multiple of num_groups={groups}", "correct num_groups")
    if call.schema.since >= 21:
        _vectors(call, (1, 2), 1)
    else:
        _sized(call, (1, 2), groups, "group")


def trailing(call: Call) -> None:
    """Checks that scale and B broadcast to the normalised axes, which are all from `axis` on."""
    x = call.dims(0)
    if x is None:
        return
    axis = int(call.attribute("axis", -1))
    if not -len(x) <= axis < len(x):
        raise call.refuse_value(f"axis={axis} is beyond the {len(x)} axes of X", f"write axis={-1}")
    wanted = x[normal(axis, len(x)) :]
    for index in (1, 2):
        found = call.dims(index)
        if found is not None and not _fits(found, wanted, x):
            raise call.refuse(
                index,
                shown(wanted),
                _fix(call, index, found, x),
                f"X has {shown(x)} and axis={axis}, so {shown(wanted)} is normalised",
            )


def _fits(found: Dims, wanted: Dims, x: Dims) -> bool:
    """Whether a scale has the shape of the normalised axes, or broadcasts to them."""
    if len(found) > len(x):
        return False
    over = list(zip(reversed(found), reversed(x), strict=False))
    return all(not clash(a, b) or a == 1 for a, b in over) and (len(found) <= len(wanted) or all(
        dim == 1 for dim in found[: len(found) - len(wanted)]
    ))  # fmt: skip


def _fix(call: Call, index: int, found: Dims, x: Dims) -> str:
    for axis in range(len(x)):
        if len(found) == len(x) - axis and not any(clash(a, b) for a, b in zip(found, x[axis:], strict=True)):
            return f"add axis={axis - len(x)}"
    return f"correct {call.label(index)}, or transpose X so that the normalised axes come last"


def _vectors(call: Call, operands: tuple[int, ...], axis: int) -> None:
    x = call.dims(0)
    _sized(call, operands, x[axis] if x is not None and len(x) > axis else None, "channel")


def _sized(call: Call, operands: tuple[int, ...], size: Dim, of: str) -> None:
    for index in operands:
        found = call.dims(index)
        if found is not None and (len(found) != 1 or clash(found[0], size)):
            wanted = "C" if size is None else size
            raise call.refuse(index, f"[{wanted}], one number for each {of}", f"give {call.label(index)} that shape")
