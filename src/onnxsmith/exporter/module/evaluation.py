"""Puts a module in evaluation mode; the module of a program of torch.export has no modes."""

from __future__ import annotations

import torch


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
