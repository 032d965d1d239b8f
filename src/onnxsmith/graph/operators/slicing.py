"""Makes Slice, Gather, Squeeze and Unsqueeze from `x[…]` with integers, slices, None and `...`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.graph.operators.tensor import Tensor

if TYPE_CHECKING:
    from onnxsmith.graph.operators.operator_methods import Operators

_END = 2**63 - 1
"""Stands for the end of the axis as the end of a Slice (ONNX, operator Slice)."""


@dataclass
class _Plan:
    """The effect of an index, axis by axis. `gathered` are axes with an integer tensor, `new` are axes of the
    result."""

    starts: list[Any] = field(default_factory=list)
    ends: list[Any] = field(default_factory=list)
    axes: list[int] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    gathered: list[tuple[int, Any]] = field(default_factory=list)
    new: list[int] = field(default_factory=list)


def sliced(home: Operators, tensor: Tensor, index: Any) -> Tensor:
    """Makes the nodes of `tensor[index]`.

    Raises:
        OnnxsmithError: `build/index`.
    """
    plan = _planned(home, tensor, list(index) if isinstance(index, tuple) else [index])
    with home.atomic():
        return _made(home, tensor, plan)


def _made(home: Operators, tensor: Tensor, plan: _Plan) -> Tensor:
    made: Any = tensor
    if plan.axes:
        steps = {"steps": plan.steps} if any(step != 1 for step in plan.steps) else {}
        made = home.Slice(made, starts=plan.starts, ends=plan.ends, axes=plan.axes, **steps)
    for axis, where in plan.gathered:
        made = home.Gather(made, where, axis=axis)
    if plan.dropped:
        made = home.Squeeze(made, axes=plan.dropped)
    if plan.new:
        made = home.Unsqueeze(made, axes=plan.new)
    return made if made is not tensor else home.Identity(tensor)  # type: ignore[no-any-return]


def _planned(home: Operators, tensor: Tensor, index: list[Any]) -> _Plan:
    used = sum(1 for one in index if one is not None and one is not Ellipsis)
    dots = [place for place, one in enumerate(index) if one is Ellipsis]
    if len(dots) > 1:
        raise _refused(home, tensor, "has two `...`", "keep one")
    if tensor.rank is not None and used > tensor.rank:
        raise _refused(home, tensor, f"has {used} parts for {tensor.rank} axes", "leave some out")
    if dots and dots[0] != len(index) - 1 and tensor.rank is None:
        raise _refused(home, tensor, "has a `...`, and its rank is unknown", "index the first axes only")
    plan, axis, result = _Plan(), 0, 0
    for one in index:
        if one is None:
            plan.new.append(result)
            result += 1
        elif one is Ellipsis:
            skipped = tensor.rank - used if tensor.rank is not None else 0
            axis, result = axis + skipped, result + skipped
        else:
            result += _one_axis(home, tensor, one, axis, plan)
            axis += 1
    return plan


def _one_axis(home: Operators, tensor: Tensor, one: Any, axis: int, plan: _Plan) -> int:
    """Plans the index of one axis; returns how many axes of the result it makes."""
    if isinstance(one, slice):
        if one == slice(None):
            return 1
        step = 1 if one.step is None else one.step
        if not isinstance(step, int | np.integer) or step == 0:
            raise _refused(home, tensor, f"has the step {step!r}", "give a whole number other than 0")
        plan.starts.append(_bound(home, tensor, one.start, 0 if step > 0 else _END))
        plan.ends.append(_bound(home, tensor, one.stop, _END if step > 0 else -_END))
        plan.axes.append(axis)
        plan.steps.append(int(step))
        return 1
    if isinstance(one, int | np.integer) and not isinstance(one, bool):
        number = int(one)
        size = tensor.shape[axis] if tensor.shape is not None else None
        if isinstance(size, int) and not -size <= number < size:
            raise _refused(
                home,
                tensor,
                f"has no element {number} on axis {axis}",
                (f"write a smaller index: {-size} to {size - 1}" if size else "leave the index out: the axis is empty"),
            )
        plan.starts.append(number)
        plan.ends.append(number + 1 if number != -1 else _END)
        plan.axes.append(axis)
        plan.steps.append(1)
        plan.dropped.append(axis)
        return 0
    if isinstance(one, Tensor | ir.Value | np.ndarray | list):
        dtype = one.dtype if isinstance(one, Tensor) else None
        if dtype == "bool" or (isinstance(one, np.ndarray) and one.dtype == np.bool_):
            raise _refused(home, tensor, "is a mask", "write g.Compress(x, mask, axis=0) or g.Where(mask, a, b)")
        if plan.gathered or plan.dropped or plan.new:
            raise _refused(home, tensor, "mixes an index tensor with others", "index in two steps: x[a][:, b]")
        if isinstance(one, list):
            one = np.asarray(one, np.int64)
        rank = one.ndim if isinstance(one, np.ndarray) else len(one.shape) if one.shape is not None else 1
        plan.gathered.append((axis, one))
        return rank
    raise _refused(home, tensor, f"has {one!r} as index", "index with integers, slices, None, ... or an integer tensor")


def _bound(home: Operators, tensor: Tensor, bound: Any, default: int) -> Any:
    if bound is None:
        return default
    if isinstance(bound, int | np.integer | Tensor) and not isinstance(bound, bool):
        return bound if isinstance(bound, Tensor) else int(bound)
    raise _refused(home, tensor, f"has the bound {bound!r}", "give a whole number or an int64 tensor: g.Shape(x)[0]")


def _refused(home: Operators, tensor: Tensor, what: str, fix: str) -> OnnxsmithError:
    return problem(
        "build/index", f"the index of {tensor.name} {what}", where=home.blame(), why=f"it is {tensor!r}", fix=fix
    )
