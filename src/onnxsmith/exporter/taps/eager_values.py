"""Finds the tensors of a traced module that eager PyTorch computes too.

A trace may differ from the module: it may have fixed a decision of forward, and it splits operations. So a tensor of
the trace belongs to the module only if an operation has that result while the module itself runs. PyTorch reports each
operation to a listener, which keeps a projection and the scale of each result, not the values.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from onnxsmith.base.seams.torch import trees as pytree
from onnxsmith.base.seams.torch.tensors import TorchDispatchMode
from onnxsmith.runtimes.base import Feeds, Value
from onnxsmith.runtimes.torch_eager import TorchEager, TorchProgram

_NEAR = 1e-4
"""Limits the difference of two projections, relative to the tensor's scale. A choice: far more than rounding in
float32, far less than 1%."""
_COARSE = 2.0
"""Limits the difference for float16 and bfloat16, in units of the dtype's roundoff. A choice."""
Print = tuple[float, float]
"""Holds the projection of the values on a fixed vector, divided by their scale, and the scale."""
Key = tuple[tuple[int, ...], str]


class EagerValues:
    """The tensors that the operations of the module compute on one input. An in-place operation counts with the values
    that it writes."""

    def __init__(self, program: TorchProgram, feeds: Feeds) -> None:
        listener = _Listener()
        with TorchEager().prepare(program) as session, listener:
            session.run(feeds)
        self._prints = listener.prints

    def has(self, value: Value) -> bool:
        """Whether an operation computes these values up to rounding."""
        if not isinstance(value, np.ndarray):
            return False
        own = _print(torch.from_numpy(np.asarray(value, dtype=np.float64)))
        near = max(_NEAR, _COARSE * _UNITS.get(value.dtype.name, 0.0))
        known = self._prints.get((tuple(value.shape), value.dtype.name), ())
        return any(abs(a - own[0]) <= near and abs(b - own[1]) <= near * own[1] for a, b in known)


_UNITS = {"float16": 2.0**-11, "bfloat16": 2.0**-8}


class _Listener(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Keeps a print of each tensor of floats that an operation returns."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.prints: dict[Key, list[Print]] = defaultdict(list)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in pytree.tree_leaves(result):
            if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() and leaf.layout is torch.strided:
                name = str(leaf.dtype).removeprefix("torch.")
                self.prints[tuple(leaf.shape), name].append(_print(leaf.detach().double()))
        return result


def _print(value: torch.Tensor) -> Print:
    flat = value.reshape(-1)
    scale = float(flat.square().mean().sqrt()) if flat.numel() else 0.0
    projected = float(flat @ _direction(flat.numel()))
    return (projected / (scale * max(flat.numel(), 1) ** 0.5) if scale else 0.0), scale


@functools.lru_cache(maxsize=4)
def _direction(size: int) -> torch.Tensor:
    """Returns a fixed vector without a pattern: a cosine whose frequency grows."""
    steps = torch.arange(size, dtype=torch.float64)
    return torch.cos(steps * steps * 0.7 + 1.3)
