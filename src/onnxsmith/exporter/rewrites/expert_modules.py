"""Traces a mixture of experts that are modules, without branches on which expert gets which token."""

from __future__ import annotations

import inspect
from contextlib import ExitStack
from typing import Any

import torch

from onnxsmith.exporter.rewrites.base import Rewrite, instead_where

_TAKES = (["hidden_states", "selected_experts", "routing_weights"], ["hidden_states", "router_mask", "router_probs"])
"""The parameters of forward of transformers' expert dictionaries: experts chosen by index, or by a mask."""


class ExpertModules(Rewrite):
    """transformers' dictionaries of experts (`expert_0`, `expert_1`, …) loop over the chosen experts, which reads
    values. Here every expert runs. `experts.py` is for experts that keep their weights in one parameter."""

    title = "every expert processes every token, and results that the router did not choose are multiplied by 0"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        return instead_where(_fits, module, _forward, stack)


def _fits(part: torch.nn.Module) -> bool:
    count = getattr(part, "num_experts", None)
    if not isinstance(part, torch.nn.ModuleDict) or not isinstance(count, int):
        return False
    takes = list(inspect.signature(part.forward).parameters)
    return takes in _TAKES and all(f"expert_{index}" in part for index in range(count))


def _forward(self: Any, hidden_states: torch.Tensor, chosen: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """`hidden_states` is [tokens, features], `weights` [tokens, choices]; `chosen` is a mask [tokens, choices, experts]
    or expert indices [tokens, choices]."""
    if chosen.dim() == 2:
        chosen = torch.nn.functional.one_hot(chosen, self.num_experts)
    counts = ((chosen != 0).to(weights.dtype) * weights[..., None]).sum(1)
    counts = counts * (1 - getattr(self, "moe_token_dropout", 0))
    out = torch.zeros_like(hidden_states)
    for index in range(self.num_experts):
        out = out + (self[f"expert_{index}"](hidden_states) * counts[:, index, None]).to(out.dtype)
    return out
