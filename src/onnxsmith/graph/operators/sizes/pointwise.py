"""Checks sizes of elementwise operators."""

from __future__ import annotations

from onnxsmith.graph.operators.sizes.size_rule_call import Call, shown


def broadcast(call: Call) -> None:
    """Checks that the shapes broadcast: counted from the last axis, the sizes are equal, or one is 1."""
    most: list[int | None] = []
    for index in range(len(call.node.inputs)):
        for place, dim in enumerate(reversed(call.dims(index) or ())):
            if place == len(most):
                most.append(None)
            if not isinstance(dim, int) or dim == 1:
                continue
            if most[place] is not None and most[place] != dim:
                first = next(i for i in range(index) if _at(call, i, place) == most[place])
                raise call.refuse(
                    index,
                    f"one that broadcasts with {call.label(first)}, {shown(call.dims(first))}",
                    _fix(call, first, index),
                    f"axis {-1 - place} has {most[place]} and {dim}: sizes are equal, or one of them is 1",
                )
            most[place] = dim


def prelu(call: Call) -> None:
    """Checks that the slope broadcasts to X. X may not broadcast to the slope."""
    x, slope = call.dims(0), call.dims(1)
    if x is None or slope is None:
        return
    pairs = list(zip(reversed(x), reversed(slope), strict=False))
    if len(slope) > len(x) or any(isinstance(b, int) and isinstance(a, int) and b not in (1, a) for a, b in pairs):
        channels = f"[{x[1]}{', 1' * (len(x) - 2)}]" if len(x) > 1 else shown(x)
        raise call.refuse(
            1, f"one that broadcasts to {shown(x)}", f"reshape the slope to {channels}, one for a channel"
        )


def clip(call: Call) -> None:
    """Checks that min and max are scalars."""
    for index in (1, 2):
        if call.rank(index) not in (None, 0) and call.dims(index) != (1,):
            raise call.refuse(index, "a scalar", "use g.Max(g.Min(x, high), low) for bounds of several elements")


def scalars(call: Call) -> None:
    """Checks that all operands are scalars."""
    for index in range(len(call.node.inputs)):
        if call.rank(index) not in (None, 0) and call.dims(index) != (1,):
            raise call.refuse(index, "a scalar", "take one element: x[0]")


def dropout(call: Call) -> None:
    """Checks that ratio and training_mode are scalars."""
    for index in (1, 2):
        if call.rank(index) not in (None, 0):
            raise call.refuse(index, "a scalar", "give a Python number")


def condition(call: Call) -> None:
    """Checks that the condition of If has one element."""
    _one_element(call, 0, 'g.ReduceMax(g.Cast(x, to="int32"), keepdims=0) > 0 asks for any, ReduceMin for all')


def loop(call: Call) -> None:
    """Checks that the number of iterations and the condition of Loop have one element."""
    _one_element(call, 0, "take one element: x[0]")
    _one_element(call, 1, "take one element: x[0]")


def _one_element(call: Call, index: int, fix: str) -> None:
    dims = call.dims(index)
    if any(isinstance(dim, int) and dim != 1 for dim in dims or ()):
        raise call.refuse(index, "one element", fix)


def _at(call: Call, index: int, place: int) -> int | None:
    dims = call.dims(index) or ()
    found = dims[-1 - place] if place < len(dims) else None
    return found if isinstance(found, int) else None


def _fix(call: Call, first: int, second: int) -> str:
    a, b = call.dims(first) or (), call.dims(second) or ()
    shorter, longer, index = (b, a, second) if len(b) <= len(a) else (a, b, first)
    if len(shorter) == 1 and len(longer) > 2 and shorter[0] == longer[1]:
        return f"reshape {call.label(index)} to [{shorter[0]}{', 1' * (len(longer) - 2)}], one number for a channel"
    return f"reshape one of them: g.Reshape({call.label(index)}, […]), or g.Unsqueeze to align its axes"
