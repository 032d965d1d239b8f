"""PyTorch's own module database: every ModuleInfo in evaluation mode, up to four samples, spread over what it has.

Needs torch's testing dependencies (expecttest). Modules that refuse to be in evaluation mode are left in training mode.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import torch
from torch.utils import _pytree as pytree

from exporting.suite import Call

SAMPLES = 4
_MOST_TENSORS = 4
"""Arguments with more tensors than this are not searched for the axis of the batch."""


@cache
def _database() -> dict[str, Any]:
    from torch.testing._internal.common_modules import module_db

    return {info.name: info for info in module_db}


def names() -> list[str]:
    """Every module, as torch's database names it."""
    return list(_database())


def calls(name: str) -> Iterator[Call]:
    """Up to four samples, then the first of all whose result follows a larger batch, with a dynamic batch."""
    info = _database()[name]
    torch.manual_seed(0)
    every = list(_samples(info))
    spread = sorted({round(step * (len(every) - 1) / (SAMPLES - 1)) for step in range(SAMPLES)})
    for index in spread:
        call = _call(str(index), *every[index])
        if call is not None:
            yield call
    for index, sample in enumerate(every):
        call = _call(str(index), *sample)
        batched = None if call is None else _batched(call)
        if batched is not None:
            yield batched
            return


def _call(label: str, module: torch.nn.Module, args: Any, kwargs: Mapping[str, Any]) -> Call | None:
    try:
        first, second = _eager(module, args, kwargs, 1), _eager(module, args, kwargs, 2)
    except Exception:  # noqa: BLE001 — a sample that torch refuses is no sample
        return None
    leaves = [leaf for leaf in pytree.tree_leaves(first) if leaf is not None]
    if not leaves or not all(isinstance(leaf, torch.Tensor) for leaf in leaves):
        return None
    again = [leaf for leaf in pytree.tree_leaves(second) if leaf is not None]
    same = (torch.equal(_number(a), _number(b)) for a, b in zip(leaves, again, strict=True))
    return Call(label, module, args, kwargs, random=not all(same))


def _samples(info: Any) -> Iterator[tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]]:
    dtype = next(iter(t for t in (torch.float32, *info.dtypes) if t in info.dtypes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in info.module_inputs_func(info, "cpu", dtype, False, training=False):
            if sample.forward_input is None:
                continue
            made, given = sample.constructor_input, sample.forward_input
            module = info.module_cls(*made.args, **made.kwargs)
            args, kwargs = pytree.tree_map(_plain, (tuple(given.args), dict(given.kwargs)))
            yield module.to(dtype).eval(), args, kwargs


def _plain(leaf: Any) -> Any:
    return leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf


def _number(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.nan_to_num() if tensor.is_floating_point() else tensor


def _eager(module: torch.nn.Module, args: Any, kwargs: Mapping[str, Any], seed: int) -> Any:
    torch.manual_seed(seed)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return module(*pytree.tree_map(_plain, args), **pytree.tree_map(_plain, dict(kwargs)))


def _batched(call: Call) -> Call | None:
    """The call with a dynamic batch: the first axis of each tensor that can be twice as long with the others, such that
    each result has one axis twice as long. Recurrent modules have the batch second."""
    tensors = [leaf for leaf in pytree.tree_leaves((call.args, dict(call.kwargs))) if isinstance(leaf, torch.Tensor)]
    if not tensors or len(tensors) > _MOST_TENSORS or any(tensor.dim() < 2 for tensor in tensors):
        return None
    once = _eager(call.module, call.args, call.kwargs, 1)
    for axes in itertools.product((0, 1), repeat=len(tensors)):
        sizes = {tensor.shape[axis] for tensor, axis in zip(tensors, axes, strict=True)}
        if len(sizes) != 1 or min(sizes) < 2:
            continue
        args, kwargs = _twice(call, axes)
        try:
            again = _eager(call.module, args, kwargs, 1)
        except Exception:  # noqa: BLE001 — a module that fixes the size
            continue
        if all(
            sum(a != b for a, b in zip(one.shape, two.shape, strict=True)) == 1
            and sum(one.shape) + min(sizes) == sum(two.shape)
            for one, two in zip(pytree.tree_leaves(once), pytree.tree_leaves(again), strict=True)
            if one is not None
        ):
            dynamic = {index: {axis: "batch"} for index, axis in enumerate(axes)}
            return Call(f"{call.label}-batch", call.module, call.args, call.kwargs, dynamic, [(args, kwargs)])
    return None


def _twice(call: Call, axes: tuple[int, ...]) -> Any:
    axis = iter(axes)

    def twice(leaf: Any) -> Any:
        return torch.cat([leaf, leaf], next(axis)) if isinstance(leaf, torch.Tensor) else leaf

    return pytree.tree_map(twice, (call.args, dict(call.kwargs)))
