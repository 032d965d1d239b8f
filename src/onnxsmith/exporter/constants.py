"""Single values that a module holds (a flag that says whether it was initialised, a count, a temperature) are known
while it is traced, so that a branch on one is no branch on data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode


@contextmanager
def known_constants(module: torch.nn.Module) -> Iterator[None]:
    """Inside, torch knows the values of the module's parameters and buffers of one element. It forgets them itself
    where forward writes to one."""
    held = (*module.parameters(), *module.buffers())
    values = {id(tensor): tensor for tensor in held if tensor.numel() == 1 and not isinstance(tensor, FakeTensor)}
    own = FakeTensorMode.from_tensor

    def from_tensor(mode: FakeTensorMode, tensor: torch.Tensor, **options: Any) -> FakeTensor:
        fake = own(mode, tensor, **options)
        if id(tensor) in values and fake.constant is None:
            fake.constant = tensor.detach().clone()
        return fake

    with mock.patch.object(FakeTensorMode, "from_tensor", from_tensor):
        yield
