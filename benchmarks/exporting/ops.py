"""PyTorch's own operator database: every OpInfo with float32, or a dtype it has; up to four samples.

Needs torch's testing dependencies (expecttest). Without scipy the database of torch 2.13 has 681 operators.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch.utils import _pytree as pytree

from exporting.suite import Call

SAMPLES = 4
_DTYPES = (torch.float32, torch.int64, torch.bool, torch.complex64, torch.float64, torch.float16, torch.bfloat16)
_SEEDS = 8
"""Runs with other seeds that tell what is drawn at random: a coin may fall on one side a few times in a row."""
_UNINITIALISED = ("empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided", "empty_permuted")


class _Op(torch.nn.Module):
    """An operator as a function of its tensors, everything else bound, with the processing that its samples ask for (a
    singular vector's sign is nobody's business)."""

    def __init__(self, op: Any, process: Any, leaves: list[Any], spec: Any) -> None:
        super().__init__()
        self.op, self.process, self.spec = op, process, spec
        self.leaves = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self.given = [isinstance(leaf, torch.Tensor) for leaf in leaves]

    def forward(self, *tensors: torch.Tensor) -> Any:
        rest = iter(tensors)
        leaves = [next(rest) if given else leaf for given, leaf in zip(self.given, self.leaves, strict=True)]
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        return self.process(self.op(*args, **kwargs))


@cache
def _database() -> dict[str, Any]:
    from torch.testing._internal import common_methods_invocations, common_utils

    for place in (common_methods_invocations, common_utils):
        place.wrapper_set_seed = _unseeded  # a seed set inside an operator is no part of it
    op_db = common_methods_invocations.op_db
    return {f"{op.name}.{op.variant_test_name}".rstrip("."): op for op in op_db}


def _unseeded(op: Any, *args: Any, **kwargs: Any) -> Any:
    return op(*args, **kwargs)


def names() -> list[str]:
    """Every operator, with its variant."""
    return list(_database())


def calls(name: str) -> Iterator[Call]:
    """Up to four samples, then the first of them whose result follows a larger batch, with a dynamic batch."""
    op = _database()[name]
    dtype = next(iter([t for t in _DTYPES if t in op.supported_dtypes("cpu")] or op.supported_dtypes("cpu")))
    found = []
    torch.manual_seed(0)
    for index, sample in enumerate(itertools.islice(_samples(op, dtype), SAMPLES)):
        leaves, spec = pytree.tree_flatten(((sample.input, *sample.args), dict(sample.kwargs)))
        module = _Op(op.op, sample.output_process_fn_grad, leaves, spec).eval()
        tensors = tuple(leaf.detach().clone() for leaf in leaves if isinstance(leaf, torch.Tensor))
        call = _call(str(index), module, tensors, op)
        if call is not None:
            found.append(call)
            yield call
    for call in found:
        batched = _batched(call)
        if batched is not None:
            yield batched
            return


def _samples(op: Any, dtype: torch.dtype) -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from op.sample_inputs("cpu", dtype, requires_grad=False)


def _call(label: str, module: _Op, tensors: tuple[torch.Tensor, ...], op: Any) -> Call | None:
    if not tensors:
        return None
    try:
        first, *others = (_eager(module, tensors, seed) for seed in range(_SEEDS))
    except Exception:  # noqa: BLE001 — a sample that torch refuses is no sample
        return None
    leaves = pytree.tree_leaves(first)
    if not leaves or not all(isinstance(leaf, torch.Tensor) for leaf in leaves):
        return None
    random = op.name in _UNINITIALISED or any(
        not torch.equal(_comparable(a), _comparable(b))
        for other in others
        for a, b in zip(leaves, pytree.tree_leaves(other), strict=True)
        if a.shape == b.shape
    )
    return Call(label, module, tensors, random=random)


def _comparable(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.nan_to_num() if tensor.is_floating_point() else tensor


def _eager(module: torch.nn.Module, tensors: tuple[torch.Tensor, ...], seed: int) -> Any:
    torch.manual_seed(seed)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return module(*(tensor.clone() for tensor in tensors))


def _batched(call: Call) -> Call | None:
    """The call with a dynamic first axis, where all tensors share its size and doubling it doubles every result."""
    sizes = {tensor.shape[0] if tensor.dim() else 0 for tensor in call.args}
    if len(sizes) != 1 or min(sizes) < 2 or any(tensor.dim() < 2 for tensor in call.args):
        return None
    twice = tuple(torch.cat([tensor, tensor]) for tensor in call.args)
    try:
        once, again = _eager(call.module, call.args, 1), _eager(call.module, twice, 1)
    except Exception:  # noqa: BLE001 — an operator that fixes the size
        return None
    for a, b in zip(pytree.tree_leaves(once), pytree.tree_leaves(again), strict=True):
        if a.dim() == 0 or b.shape != (2 * a.shape[0], *a.shape[1:]):
            return None
    dynamic = {index: {0: "batch"} for index in range(len(call.args))}
    label = f"{call.label}-batch"
    return Call(label, call.module, call.args, dynamic=dynamic, others=[(twice, {})], random=call.random)
