"""Puts a module in evaluation mode; the module of a program of torch.export has no modes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from onnxsmith.base.seams.base import alone


def is_program(module: torch.nn.Module) -> bool:
    """Whether the module was made from a program of torch.export: it refuses `train` and `eval`."""
    return isinstance(module, torch.fx.GraphModule) and any(name in vars(module) for name in ("train", "eval"))


def set_evaluating(module: torch.nn.Module) -> None:
    """Sets every part to evaluation mode. The graph of a program keeps the mode in which it was traced."""
    if is_program(module):
        for part in module.modules():
            part.training = False
        return
    module.eval()


@contextmanager
def evaluating(module: Any) -> Iterator[bool]:
    """Puts every submodule in evaluation mode, and restores the modes at the end. Yields whether a submodule was in
    training mode. Only one thread enters at a time: a module that is being traced holds tensors without values, so no
    other thread can run it."""
    with alone():
        modes = [(part, part.training) for part in module.modules()]
        training = any(mode for _, mode in modes if not is_program(module))
        set_evaluating(module)
        try:
            yield training
        finally:
            for part, mode in modes:
                part.training = mode
