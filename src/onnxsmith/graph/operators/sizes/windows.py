"""Checks sizes of convolutions, pools and operators on images."""

from __future__ import annotations

from onnxsmith.base.words import several
from onnxsmith.graph.operators.sizes.size_rule_call import Call, Dim, clash


def conv(call: Call) -> None:
    """Checks the shapes: X [N, C, …], W [M, C/group, …], B [M]."""
    x, w, group = call.dims(0), call.dims(1), int(call.attribute("group", 1))
    _same_rank(call)
    if x is not None and w is not None and isinstance(x[1], int) and isinstance(w[1], int):
        if x[1] != w[1] * group:
            fix = f"add group={x[1] // w[1]}" if w[1] and x[1] % w[1] == 0 else f"give W the shape [M, {x[1]}, …]"
            raise call.refuse(1, f"[M, {x[1] // group}, …] for {x[1]} channels in {group} groups", fix)
        if isinstance(w[0], int) and w[0] % max(group, 1):
            raise call.refuse(1, f"one whose first axis is a multiple of group={group}", "correct group=")
    if w is not None and call.schema.input_name(2) == "B":
        _bias(call, w[0])
    _window(call, None if w is None else w[2:])


def conv_transpose(call: Call) -> None:
    """Checks the shapes: X [N, C, …], W [C, M/group, …], B [M]."""
    x, w, group = call.dims(0), call.dims(1), int(call.attribute("group", 1))
    _same_rank(call)
    if x is not None and w is not None and clash(x[1], w[0]):
        turned = not clash(x[1], w[1])
        fix = "swap the first two axes of W: g.Transpose(W, perm=[1, 0, 2, 3])" if turned else "correct the weight"
        raise call.refuse(1, f"[{x[1]}, M, …]", fix, "W of ConvTranspose has the input's channels first")
    if w is not None:
        _bias(call, w[1] * group if isinstance(w[1], int) else None)
    _window(call, None if w is None else w[2:])


def pool(call: Call) -> None:
    """Checks the shape X [N, C, …], and that kernel_shape has a number for each axis after the second."""
    _images(call)
    _window(call, None)


def global_pool(call: Call) -> None:
    """Checks the shape X [N, C, …]."""
    _images(call)


def depth_to_space(call: Call) -> None:
    """Checks that the channels are a multiple of blocksize squared."""
    x, block = call.dims(0), int(call.attribute("blocksize", 1))
    if x is not None and len(x) != 4:
        raise call.refuse(0, "[N, C, H, W]", "reshape it to four axes")
    if x is not None and isinstance(x[1], int) and (block < 1 or x[1] % (block * block)):
        raise call.refuse(0, f"one with a multiple of {block * block} channels", f"correct blocksize={block}")


def space_to_depth(call: Call) -> None:
    """Checks that height and width are multiples of blocksize."""
    x, block = call.dims(0), int(call.attribute("blocksize", 1))
    if x is not None and len(x) != 4:
        raise call.refuse(0, "[N, C, H, W]", "reshape it to four axes")
    for dim in x[2:] if x is not None else ():
        if isinstance(dim, int) and (block < 1 or dim % block):
            raise call.refuse(0, f"one whose last axes are multiples of {block}", f"correct blocksize={block}")


def resize(call: Call) -> None:
    """Checks that either scales or sizes is given, not both, with a number for each axis."""
    if call.schema.since < 11:
        return
    given = [index for index in (2, 3) if call.has(index) and call.dims(index) != (0,)]
    if len(given) != 1:
        raise call.refuse_value(
            "needs either scales or sizes" if not given else "has both scales and sizes",
            "write g.Resize(x, scales=[1, 1, 2, 2]) or g.Resize(x, sizes=[…])",
            "scales and sizes express the same in two ways",
        )
    rank, axes = call.rank(0), call.attribute("axes")
    wanted = len(axes) if axes is not None else rank
    found = call.dims(given[0])
    if wanted is not None and found is not None and found and clash(found[0], wanted):
        fix = f"give {wanted} numbers; 1.0 in scales keeps an axis"
        raise call.refuse(given[0], f"[{wanted}], a number for each axis", fix)


def grid_sample(call: Call) -> None:
    """Checks that the last axis of the grid has a number for each axis of the image."""
    x, grid = call.dims(0), call.dims(1)
    if x is not None and grid is not None:
        if len(x) != len(grid):
            raise call.refuse(1, f"one with {len(x)} axes like X", "write the grid as [N, H, W, 2] for images")
        if clash(grid[-1], len(x) - 2):
            raise call.refuse(1, f"[…, {len(x) - 2}]", "write the grid as [N, H, W, 2] for images")


def _same_rank(call: Call) -> None:
    _images(call)
    x, w = call.rank(0), call.rank(1)
    if x is not None and w is not None and x != w:
        fix = f"unsqueeze X to {w} axes, or give W {x} axes"
        raise call.refuse(1, f"one with {x} axes: output channels, channels, and the {x - 2} axes of the window", fix)


def _images(call: Call) -> None:
    x = call.dims(0)
    if x is not None and len(x) < 3:
        fix = f"unsqueeze it: g.Unsqueeze(x, axes=[{', '.join(str(-1 - i) for i in range(3 - len(x)))}])"
        raise call.refuse(0, "[N, C, …] with one axis or more after the channels", fix)


def _bias(call: Call, channels: Dim) -> None:
    bias = call.dims(2)
    if bias is not None and (len(bias) != 1 or clash(bias[0], channels)):
        raise call.refuse(
            2,
            f"[{'M' if channels is None else channels}], one number for each output channel",
            f"give B {channels} numbers" if isinstance(channels, int) else "give B one number for each output channel",
        )


def _window(call: Call, size: tuple[Dim, ...] | None) -> None:
    rank = call.rank(0)
    kernel = call.node.attributes.get("kernel_shape")
    if kernel is not None and size is not None:
        given = tuple(kernel.as_ints())
        if len(given) != len(size) or any(clash(a, b) for a, b in zip(given, size, strict=True)):
            raise call.refuse(1, f"one that ends in kernel_shape={list(given)}", "leave kernel_shape out")
    for name, factor in (("kernel_shape", 1), ("strides", 1), ("dilations", 1), ("pads", 2)):
        held = call.node.attributes.get(name)
        if held is None or rank is None:
            continue
        wanted = (rank - 2) * factor
        if len(held.as_ints()) != wanted:
            say = (
                "two for each axis: all beginnings, then all ends" if factor == 2 else "one for each axis of the window"
            )
            example = list(held.as_ints())[:1] * wanted
            raise call.refuse_value(
                f"{name} has {several(len(held.as_ints()), 'number')}, not {wanted}", f"write {name}={example}", say
            )
