"""Sizes of normalisations, of recurrent layers, and of scales and zero points."""

from __future__ import annotations

from onnxsmith.graph.operators.sizes.size_rule_call import Call, Dim, Dims, clash, normal, shown

# Checks sizes of normalisations.


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


# Checks sizes of LSTM, GRU and RNN.

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def gates(call: Call) -> None:
    """Checks the shapes: X [sequence, batch, input], W [directions, gates · hidden, input], R [directions, gates ·
    hidden, hidden]."""
    count = _GATES[call.node.op_type]
    directions = 2 if call.attribute("direction", "forward") == "bidirectional" else 1
    for index, wanted in ((0, "[sequence, batch, input]"), (1, "[directions, gates * hidden, input]"),
                          (2, "[directions, gates * hidden, hidden]")):  # fmt: skip
        if call.rank(index) not in (None, 3):
            raise call.refuse(index, wanted, "give it three axes; torch's weights lack the first: weight[None]")
    x, w, r = call.dims(0), call.dims(1), call.dims(2)
    held = call.attribute("hidden_size")
    if held is None:
        hidden = r[2] if r is not None and isinstance(r[2], int) else "…"
        raise call.refuse_value("hidden_size is missing", f"add hidden_size={hidden}", "runtimes refuse it without")
    hidden = int(held)
    width = x[2] if x is not None else None
    wanted_w, wanted_r = (directions, count * hidden, width), (directions, count * hidden, hidden)
    for index, found, wanted_dims in ((1, w, wanted_w), (2, r, wanted_r)):
        if found is not None and any(clash(a, b) for a, b in zip(found, wanted_dims, strict=True)):
            raise call.refuse(
                index,
                f"{shown(wanted_dims)}: directions, {count} gates of hidden_size={hidden}, and what it multiplies",
                "correct hidden_size, direction or the weight",
            )
    bias = call.dims(3)
    if bias is not None and (len(bias) != 2 or clash(bias[0], directions) or clash(bias[1], 2 * count * hidden)):
        fix = "join both biases of torch: np.concatenate([bias_ih, bias_hh])[None]"
        raise call.refuse(3, f"[{directions}, {2 * count * hidden}]", fix)
    turned = int(call.attribute("layout", 0))
    batch = x[1 - turned] if x is not None else None
    for index in (5, 6) if call.node.op_type == "LSTM" else (5,):
        start = call.dims(index)
        wanted_start = (batch, directions, hidden) if turned else (directions, batch, hidden)
        if start is not None and (
            len(start) != 3 or any(clash(a, b) for a, b in zip(start, wanted_start, strict=True))
        ):
            raise call.refuse(index, shown(wanted_start), "give one state for each direction and row of the batch")


# Checks sizes of scales and zero points.


def scales(call: Call) -> None:
    """Checks that the scale is a scalar, a vector along `axis`, or has one number for each block, and that the zero
    point has the same shape."""
    x, scale, zero = call.dims(0), call.dims(1), call.dims(2)
    single = [(), (1,)]  # runtimes accept a vector of one element as a scalar, and vice versa
    if scale is not None and zero is not None and not (scale in single and zero in single) and _differ(scale, zero):
        raise call.refuse(2, f"{shown(scale)} like {call.label(1)}", "give the zero point the shape of the scale")
    if x is None or scale is None or len(scale) == 0 or call.attribute("block_size", 0):
        return
    axis = int(call.attribute("axis", 1))
    if scale == (1,):
        return
    if len(scale) != 1 or not -len(x) <= axis < len(x) or clash(scale[0], x[normal(axis, len(x))]):
        fits = next((i for i, dim in enumerate(x) if len(scale) == 1 and dim == scale[0]), None)
        at = x[normal(axis, len(x))] if -len(x) <= axis < len(x) else "?"
        fix = f"add axis={fits}" if fits is not None else "give one number, or one for each channel"
        raise call.refuse(1, f"a scalar or [{at}], along axis={axis} of {shown(x)}", fix)


def quantised_conv(call: Call) -> None:
    """Checks the shapes: x [N, C, …], w [M, C/group, …], B [M]; scales of x and y are scalars."""
    x, w, bias, group = call.dims(0), call.dims(3), call.dims(8), int(call.attribute("group", 1))
    for index, sizes in ((0, x), (3, w)):
        if sizes is not None and len(sizes) < 3:
            raise call.refuse(index, "three axes or more", "give batch, channels and the spatial axes")
    if x is not None and w is not None and isinstance(x[1], int) and isinstance(w[1], int) and x[1] != w[1] * group:
        raise call.refuse(3, f"[M, {x[1] // group}, …]", "correct the weight or group=")
    for index in (1, 2, 6, 7):
        if call.rank(index) not in (None, 0) and call.dims(index) != (1,):
            raise call.refuse(index, "a scalar", "only the weight may have one scale for each channel")
    if bias is not None and w is not None and (len(bias) != 1 or clash(bias[0], w[0])):
        raise call.refuse(8, f"[{w[0]}], one number for each output channel", "correct B")


def _differ(a: tuple[object, ...], b: tuple[object, ...]) -> bool:
    if len(a) != len(b):
        return True
    return any(isinstance(x, int) and isinstance(y, int) and x != y for x, y in zip(a, b, strict=True))
