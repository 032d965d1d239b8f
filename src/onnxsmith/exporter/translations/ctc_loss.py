"""`ctc_loss`: the likelihood of a text over all its alignments with a sequence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.nn import functional

from onnxsmith.exporter.translations._constants import constant
from onnxsmith.exporter.translations._loops import loop
from onnxsmith.exporter.translations.base import Sample, Translation

_REDUCTIONS = ("none", "mean", "sum")


class CtcLoss(Translation):
    """The forward recursion of Graves et al. 2006 (section 4.1) on logarithms: a state for each label and each blank
    around them, [batch, 2·labels + 1], from step to step. Every number of steps is one loop. Whether a length is too
    long, which PyTorch refuses, is a question about values and not asked here."""

    targets = ()
    functions = (functional.ctc_loss, torch.ctc_loss)

    def decompose(
        self,
        log_probs: Any,
        targets: Any,
        input_lengths: Any,
        target_lengths: Any,
        blank: int = 0,
        reduction: str | int = "mean",
        zero_infinity: bool = False,
    ) -> Any:
        batched = log_probs.dim() == 3
        steps = (log_probs if batched else log_probs.unsqueeze(1)).to(torch.float64)
        lengths, counts = (_numbers(one) for one in (input_lengths, target_lengths))
        labels = targets if batched else targets.reshape(1, -1)
        labels = (labels if labels.dim() == 2 else _apart(labels, counts)).to(torch.int64)
        found = _negative_log_likelihood(steps, labels, lengths, counts, blank)
        if zero_infinity:
            found = torch.where(found == math.inf, 0.0, found)
        found = found.to(log_probs.dtype)
        how = reduction if isinstance(reduction, str) else _REDUCTIONS[reduction]
        if how == "mean":
            return (found / counts.clamp(min=1).to(found.dtype)).mean()
        return found.sum() if how == "sum" else found if batched else found.squeeze(0)

    def samples(self) -> Iterator[Sample]:
        x = torch.randn(7, 3, 5).log_softmax(-1)
        labels, counts = torch.tensor([[1, 2, 2, 4], [3, 1, 4, 4], [2, 1, 1, 1]]), torch.tensor([4, 2, 0])
        lengths = torch.tensor([7, 5, 6])
        yield Sample((x, labels, lengths, counts))
        yield Sample((x.double(), labels, [7, 5, 6], [4, 2, 0]), {"reduction": "sum"})
        yield Sample((x, labels[:, :2].reshape(-1)[:5], (7, 7, 7), (2, 1, 2)), {"reduction": "none", "blank": 4})
        yield Sample((x, labels, torch.tensor([4, 2, 1]), counts), {"reduction": "none", "zero_infinity": True})
        yield Sample((x[:, 0], labels[0], torch.tensor(7), torch.tensor(4)), {"reduction": "none"})
        yield Sample((x, labels, lengths, counts), dynamic={0: {0: "t", 1: "n"}, 1: {0: "n"}, 2: {0: "n"}, 3: {0: "n"}})


def _numbers(lengths: torch.Tensor | Sequence[int] | int) -> torch.Tensor:
    if isinstance(lengths, torch.Tensor):
        return lengths.reshape(-1).to(torch.int64)
    return constant([lengths] if isinstance(lengths, int) else list(lengths), torch.int64)


def _apart(labels: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """The concatenated labels of all texts as one row for each text; elements after a text's end are arbitrary."""
    begin = counts.cumsum(0) - counts
    places = begin[:, None] + torch.arange(labels.shape[0])
    return labels.index_select(0, places.clamp(max=labels.shape[0] - 1).reshape(-1)).reshape(places.shape)


def _negative_log_likelihood(
    steps: torch.Tensor, labels: torch.Tensor, lengths: torch.Tensor, counts: torch.Tensor, blank: int
) -> torch.Tensor:
    """For each of the batch. `steps` [steps, batch, classes], `labels` [batch, labels]."""
    gaps = torch.full_like(labels, blank)
    states = torch.cat([torch.stack([gaps, labels], -1).flatten(1), gaps[:, :1]], 1)
    nothing = torch.full_like(states, 0, dtype=torch.float64) - math.inf
    same = torch.cat([torch.ones_like(states[:, :2], dtype=torch.bool), states[:, 2:] == states[:, :-2]], 1)
    first = torch.cat([steps[0].gather(1, states[:, :2]), nothing[:, 2:]], 1)
    first = torch.where((torch.arange(first.shape[1]) == 1) & (counts == 0)[:, None], -math.inf, first)

    def step(
        index: torch.Tensor, now: torch.Tensor, steps: torch.Tensor, states: torch.Tensor, same: Any, lengths: Any
    ) -> tuple[Any, ...]:
        nothing = torch.full_like(now[:, :2], -math.inf)
        before = torch.cat([nothing[:, :1], now[:, :-1]], 1)
        skipped = torch.where(same, -math.inf, torch.cat([nothing, now[:, :-2]], 1))
        said = steps.index_select(0, index.reshape(1)).squeeze(0).gather(1, states)
        following = _log_sum_exp(now, before, skipped) + said
        return index + 1, torch.where((index < lengths)[:, None], following, now)

    def goes_on(index: torch.Tensor, _: Any, steps: torch.Tensor, *__: Any) -> torch.Tensor:
        return index < steps.shape[0]

    index = torch.ones((), dtype=torch.int64)
    now = loop(goes_on, step, [index, first], (steps, states, same, lengths))[1]
    last = now.gather(1, (2 * counts)[:, None])
    label = now.gather(1, (2 * counts - 1).clamp(min=0)[:, None])
    label = torch.where(counts[:, None] == 0, -math.inf, label)
    return -_log_sum_exp(last, label).squeeze(1)


def _log_sum_exp(*terms: torch.Tensor) -> torch.Tensor:
    """log Σ e^term; minus infinity if all terms are."""
    top = terms[0]
    for term in terms[1:]:
        top = torch.maximum(top, term)
    base = torch.where(top == -math.inf, 0.0, top)
    total = torch.zeros_like(base)
    for term in terms:
        total = total + (term - base).exp()
    return total.log() + base
