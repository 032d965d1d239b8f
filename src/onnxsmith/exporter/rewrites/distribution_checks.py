"""Leaves out the checks of distributions' parameters: a check tests the values of a tensor, where a trace stops."""

from __future__ import annotations

from contextlib import ExitStack

import torch

from onnxsmith.base.seams.torch.flags import unchecked_distributions
from onnxsmith.exporter.rewrites.base import Rewrite


class DistributionChecks(Rewrite):
    """`torch.distributions` checks by default that a scale is positive, a probability at most 1, and raises an error
    otherwise. A graph raises no errors."""

    title = "distributions are made without checks of their parameters"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        stack.enter_context(unchecked_distributions())
        return False
