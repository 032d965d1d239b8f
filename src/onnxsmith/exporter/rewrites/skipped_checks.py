"""Skips calls and checks that stop a trace and change nothing."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import torch

from onnxsmith.base.seams.torch.flags import unchecked_distributions
from onnxsmith.base.seams.torch.modules import converting_by, parsed_conversion
from onnxsmith.exporter.rewrites.base import Rewrite

_to = torch.nn.Module.to


class Conversions(Rewrite):
    """Skips `module.to(...)` in forward if the module already has that dtype and device.

    Otherwise `to` would replace the traced parameters. Other calls run as before, and stop the trace. The routers of
    Switch Transformers and NLLB-MoE convert their classifier in forward.
    """

    title = "a conversion of a module to its own dtype and device is skipped"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        stack.enter_context(converting_by(_converted))
        return False


def _converted(self: Any, *args: Any, **kwargs: Any) -> Any:
    parsed = parsed_conversion(*args, **kwargs)
    if parsed is None:
        return _to(self, *args, **kwargs)
    device, dtype, _, layout = parsed
    if layout is None and all(_is(tensor, device, dtype) for tensor in (*self.parameters(), *self.buffers())):
        return self
    return _to(self, *args, **kwargs)


def _is(tensor: torch.Tensor, device: torch.device | None, dtype: torch.dtype | None) -> bool:
    floating = tensor.is_floating_point() or tensor.is_complex()
    return (device is None or _same(tensor.device, device)) and (dtype is None or not floating or tensor.dtype == dtype)


def _same(has: torch.device, wanted: torch.device) -> bool:
    return has.type == wanted.type and wanted.index in (None, has.index)


class DistributionChecks(Rewrite):
    """Skips the checks of the parameters of distributions. A check tests the values of a tensor, which stops a trace.

    `torch.distributions` checks by default that a scale is positive, a probability at most 1, and raises an error
    otherwise. A graph raises no errors.
    """

    title = "distributions are made without checks of their parameters"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        stack.enter_context(unchecked_distributions())
        return False
