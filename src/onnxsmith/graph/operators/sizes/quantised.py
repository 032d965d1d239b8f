"""Checks sizes of scales and zero points."""

from __future__ import annotations

from onnxsmith.graph.operators.sizes.size_rule_call import Call, clash, normal, shown


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


def conv(call: Call) -> None:
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
