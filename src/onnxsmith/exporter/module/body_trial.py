"""Tries whether a trace can follow the Python function of an operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from onnxsmith.base.seams.torch import trees as pytree
from onnxsmith.exporter.causes._message_text import sentence
from onnxsmith.exporter.causes.base import recognise
from onnxsmith.exporter.module.operator_calls import OperatorCall


def refusal(function: Callable[..., Any], call: OperatorCall | None) -> str:
    """Says in a clause why torch.export cannot trace the function on the arguments of the call; "" if it can. Without a
    call the function cannot be tried."""
    if call is None:
        return "the operator was not called, so onnxsmith could not try its code"
    body = _Body(function, call)
    try:
        torch.export.export(body, tuple(body.tensors()), strict=False)
    except Exception as error:  # noqa: BLE001 — any error of the function or of the trace is the answer
        known = recognise(str(error))
        return known.what.replace("forward", "it", 1) if known else f"it raises {_brief(error)}"
    return ""


def _brief(error: Exception) -> str:
    return f"{type(error).__name__}: {sentence(str(error), 100)}".replace('"', "'").replace("\\", "/")


class _Body(torch.nn.Module):
    """The function as a module that takes the tensors of the call."""

    def __init__(self, function: Callable[..., Any], call: OperatorCall) -> None:
        super().__init__()
        self._function = function
        self._leaves, self._spec = pytree.tree_flatten((call.args, dict(call.kwargs)))

    def tensors(self) -> list[torch.Tensor]:
        """Returns the tensors of the call."""
        return [leaf for leaf in self._leaves if isinstance(leaf, torch.Tensor)]

    def forward(self, *tensors: torch.Tensor) -> Any:
        """Calls the function with these tensors in place of those of the call."""
        rest = iter(tensors)
        leaves = [next(rest) if isinstance(leaf, torch.Tensor) else leaf for leaf in self._leaves]
        args, kwargs = pytree.tree_unflatten(leaves, self._spec)
        return self._function(*args, **kwargs)
