"""Traces mixtures of experts without branches on the experts that the router chose."""

from __future__ import annotations

import inspect
from contextlib import ExitStack
from typing import Any

import torch

from onnxsmith.exporter.rewrites.base import Rewrite, instead_where

_SAID = ("has_gate", "has_bias", "is_transposed", "has_post_expert_norm")
"""Names attributes of transformers' expert modules that keep the weights of all experts in one parameter."""


class Experts(Rewrite):
    """Traces a mixture of experts whose weights are in one parameter as two batched products, without branches on data.

    Every expert processes every token, and results that the router did not choose are multiplied by 0. This is more
    arithmetic, but needs no sorting and no copies of weights for each token, and allows any number of tokens.
    """

    title = "every expert processes every token, and results that the router did not choose are multiplied by 0"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        return instead_where(_has_batched_weights, module, _batched_forward, stack)


def _has_batched_weights(part: torch.nn.Module) -> bool:
    if not all(hasattr(part, name) for name in (*_SAID, "num_experts", "down_proj")):
        return False
    up = getattr(part, "gate_up_proj" if part.has_gate else "up_proj", None)
    return all(isinstance(w, torch.nn.Parameter) and w.dim() == 3 for w in (up, part.down_proj))


def _batched_forward(
    self: Any, hidden_states: torch.Tensor, top_k_index: torch.Tensor, top_k_weights: torch.Tensor
) -> Any:
    """Computes the mixture. `hidden_states` is [tokens, features]; `top_k_index` are expert indices and `top_k_weights`
    their weights, both [tokens, chosen]."""
    every = torch.arange(self.num_experts, device=hidden_states.device)
    chosen = (top_k_index[..., None] == every).to(top_k_weights.dtype)
    counts = (chosen * top_k_weights[..., None]).sum(1)
    inner = _linear(self, "gate_up_proj" if self.has_gate else "up_proj", hidden_states[None])
    inner = self._apply_gate(inner) if self.has_gate else self.act_fn(inner)
    out = _linear(self, "down_proj", inner)
    if self.has_post_expert_norm:
        out = self.post_expert_norm(out)
    return (out * counts.t()[..., None]).sum(0).to(hidden_states.dtype)


def _linear(self: Any, name: str, x: torch.Tensor) -> torch.Tensor:
    weight = getattr(self, name)
    out = torch.matmul(x, weight if self.is_transposed else weight.transpose(1, 2))
    return out + getattr(self, f"{name}_bias")[:, None] if self.has_bias else out


_TAKES = (["hidden_states", "selected_experts", "routing_weights"], ["hidden_states", "router_mask", "router_probs"])
"""Lists the parameters of forward of transformers' expert dictionaries, whose experts are chosen by index or by a
mask."""


class ExpertModules(Rewrite):
    """Traces a mixture of experts that are modules by running every expert, without branches on data.

    transformers' dictionaries of experts (`expert_0`, `expert_1`, …) loop over the chosen experts, which reads values.
    Experts that keep their weights in one parameter are traced by `Experts`.
    """

    title = "every expert processes every token, and results that the router did not choose are multiplied by 0"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        return instead_where(_has_expert_modules, module, _every_expert, stack)


def _has_expert_modules(part: torch.nn.Module) -> bool:
    count = getattr(part, "num_experts", None)
    if not isinstance(part, torch.nn.ModuleDict) or not isinstance(count, int):
        return False
    takes = list(inspect.signature(part.forward).parameters)
    return takes in _TAKES and all(f"expert_{index}" in part for index in range(count))


def _every_expert(self: Any, hidden_states: torch.Tensor, chosen: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Computes the mixture. `hidden_states` is [tokens, features], `weights` [tokens, choices]; `chosen` is a mask
    [tokens, choices, experts] or expert indices [tokens, choices]."""
    if chosen.dim() == 2:
        chosen = torch.nn.functional.one_hot(chosen, self.num_experts)
    counts = ((chosen != 0).to(weights.dtype) * weights[..., None]).sum(1)
    counts = counts * (1 - getattr(self, "moe_token_dropout", 0))
    out = torch.zeros_like(hidden_states)
    for index in range(self.num_experts):
        out = out + (self[f"expert_{index}"](hidden_states) * counts[:, index, None]).to(out.dtype)
    return out
