"""Losses."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import torch
from torch.nn import functional

from onnxsmith.base.library_versions import Lifetime
from onnxsmith.base.seams.torch.operators import composite
from onnxsmith.exporter.translations._loops import loop
from onnxsmith.exporter.translations._tensors import constant
from onnxsmith.exporter.translations.base import Sample, Translation


class CrossEntropyLoss(Translation, targets="aten::cross_entropy_loss"):
    """Computes `cross_entropy_loss` with probabilities as targets, or with smoothed labels, by PyTorch's decomposition.

    It is a log-softmax, then sums over classes or the losses of single labels. Calls with one label a row are left to
    PyTorch's exporter, which writes SoftmaxCrossEntropyLoss.
    """

    def decompose(self, x: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
        smoothing = args[3] if len(args) > 3 else kwargs.get("label_smoothing", 0.0)
        if not target.dtype.is_floating_point and not smoothing and x.dim() > 1:
            return NotImplemented
        return composite(torch.ops.aten.cross_entropy_loss.default, x, target, *args, **kwargs)

    def samples(self) -> Iterator[Sample]:
        for reduction in (0, 1, 2):
            for weight in (None, torch.rand(5)):
                for shape in ((4, 5), (2, 5, 3)):
                    x = torch.randn(shape)
                    yield Sample((x, torch.randn(shape).softmax(1), weight, reduction))
                    yield Sample((x, torch.randn(shape).softmax(1), weight, reduction, -100, 0.2))
                    target = torch.randint(0, 5, (shape[0], *shape[2:]))
                    yield Sample((x, target, weight, reduction, 3, 0.2))
                    yield Sample((x, target, weight, reduction, 3))
                yield Sample((torch.randn(5), torch.tensor(2), weight, reduction))
                yield Sample((torch.randn(5), torch.randn(5).softmax(0), weight, reduction))
        dynamic = {0: {0: "n"}, 1: {0: "n"}}
        yield Sample((torch.randn(4, 5), torch.randn(4, 5).softmax(1)), dynamic=dynamic)
        yield Sample((torch.randn(4, 5), torch.randint(0, 5, (4,)), None, 1, 3, 0.1), dynamic=dynamic)


def _existing(place: Any, *names: str) -> tuple[Callable[..., Any], ...]:
    """Returns the functions of these names that the installed PyTorch has in `place`."""
    return tuple(getattr(place, name) for name in names if hasattr(place, name))


class LinearCrossEntropy(Translation, functions=_existing(functional, "linear_cross_entropy")):
    """Computes the cross entropy of a linear layer without the chunks of the batch that `options` ask for.

    Chunks save memory for gradients, which a graph does not compute. Calls without `options` are left to PyTorch's
    exporter.
    """

    lifetimes: ClassVar = {"torch.nn.functional:linear_cross_entropy": Lifetime(added="2.13")}

    def decompose(self, *args: Any, options: Any = None, **kwargs: Any) -> Any:
        if options is None:
            return NotImplemented
        return functional.linear_cross_entropy(*args, **kwargs)

    def samples(self) -> Iterator[Sample]:
        x, weight, target = torch.randn(5, 3), torch.randn(4, 3), torch.tensor([0, 3, 1, 2, 2])
        options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
        for reduction in ("mean", "sum", "none"):
            yield Sample((x, weight, target), {"reduction": reduction, "options": options})
        yield Sample((x, weight, target), {"options": options, "ignore_index": 2, "linear_bias": torch.randn(4)})
        yield Sample((x, weight, target), {"options": options}, dynamic={0: {0: "n"}, 2: {0: "n"}})


_REDUCTIONS = ("none", "mean", "sum")


class CtcLoss(Translation, functions=(functional.ctc_loss, torch.ctc_loss)):
    """Computes `ctc_loss`, the negative log-likelihood of labels over all alignments with a sequence, in one loop over
    steps.

    Follows the forward recursion of Graves et al. 2006 (section 4.1) on logarithms, with a state for each label and
    each blank around them: [batch, 2·labels + 1]. PyTorch refuses lengths that are too long; the graph does not check
    them, because this depends on values.
    """

    def decompose(
        self, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0,
        reduction: str | int = "mean", zero_infinity: bool = False,
    ) -> Any:  # fmt: skip
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
    """Splits the concatenated labels of all texts into one row for each text. Elements after the end of a text are
    arbitrary."""
    begin = counts.cumsum(0) - counts
    places = begin[:, None] + torch.arange(labels.shape[0])
    return labels.index_select(0, places.clamp(max=labels.shape[0] - 1).reshape(-1)).reshape(places.shape)


def _negative_log_likelihood(
    steps: torch.Tensor, labels: torch.Tensor, lengths: torch.Tensor, counts: torch.Tensor, blank: int
) -> torch.Tensor:
    """Returns the loss of each batch element. `steps` [steps, batch, classes], `labels` [batch, labels]."""
    gaps = torch.full_like(labels, blank)
    states = torch.cat([torch.stack([gaps, labels], -1).flatten(1), gaps[:, :1]], 1)
    nothing = torch.full_like(states, 0, dtype=torch.float64) - math.inf
    same = torch.cat([torch.ones_like(states[:, :2], dtype=torch.bool), states[:, 2:] == states[:, :-2]], 1)
    first = torch.cat([steps[0].gather(1, states[:, :2]), nothing[:, 2:]], 1)
    # a text without labels cannot start with a label
    first = torch.where((torch.arange(first.shape[1]) == 1) & (counts == 0)[:, None], -math.inf, first)

    def step(
        index: torch.Tensor, now: torch.Tensor, steps: torch.Tensor, states: torch.Tensor, same: Any, lengths: Any
    ) -> tuple[Any, ...]:
        nothing = torch.full_like(now[:, :2], -math.inf)
        before = torch.cat([nothing[:, :1], now[:, :-1]], 1)
        # no path skips a state to reach a blank, or a label equal to the label before it
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
    """Returns log Σ e^term; minus infinity if all terms are."""
    top = terms[0]
    for term in terms[1:]:
        top = torch.maximum(top, term)
    base = torch.where(top == -math.inf, 0.0, top)
    total = torch.zeros_like(base)
    for term in terms:
        total = total + (term - base).exp()
    return total.log() + base


_REDUCED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {"mean": torch.mean, "sum": torch.sum}


class GaussianNllLoss(Translation, functions=(functional.gaussian_nll_loss,)):
    """Computes `gaussian_nll_loss`, ½ (log σ² + (x - y)² / σ²), plus ½ log 2π if `full`.

    PyTorch refuses a negative variance, which depends on values; the graph uses `eps` in its place.
    """

    def decompose(
        self,
        input: Any,  # noqa: A002
        target: Any,
        var: Any,
        full: bool = False,
        eps: float = 1e-6,
        reduction: str = "mean",
    ) -> Any:
        if not isinstance(var, torch.Tensor):
            var = torch.full_like(input, var)
        elif var.shape != input.shape and var.shape == input.shape[:-1]:
            var = var.unsqueeze(-1)
        var = var.clamp(min=eps)
        loss = 0.5 * (var.log() + (input - target) ** 2 / var)
        if full:
            loss = loss + 0.5 * math.log(2 * math.pi)
        return _REDUCED[reduction](loss) if reduction in _REDUCED else loss

    def samples(self) -> Iterator[Sample]:
        x, y, variance = torch.randn(4, 3), torch.randn(4, 3), torch.rand(4, 3)
        for reduction in ("mean", "sum", "none"):
            yield Sample((x, y, variance), {"reduction": reduction, "full": reduction != "sum"})
        yield Sample((x, y, variance[:, 0]), {"eps": 0.5})
        yield Sample((x, y, 0.25))
        yield Sample((x, y, variance), dynamic={0: {0: "n"}, 1: {0: "n"}, 2: {0: "n"}})


class MultilabelMarginLoss(Translation, targets="aten::multilabel_margin_loss"):
    """Computes `multilabel_margin_loss`: Σ max(0, 1 - (x[j] - x[i])) / classes over target classes j and other classes
    i.

    The target classes are those before the first -1 of a row of targets. PyTorch's decomposition takes class 0 for each
    missing target.
    """

    def decompose(self, x: Any, target: Any, reduction: int = 1) -> Any:
        rows, wanted = (one.reshape(-1, x.shape[-1] if x.dim() else 1) for one in (x, target))
        classes = torch.arange(rows.shape[1])
        first = torch.where(wanted == -1, classes, rows.shape[1]).amin(-1, keepdim=True)
        is_there = classes < first
        chosen = torch.where(is_there, wanted, 0)
        is_target = ((chosen.unsqueeze(-1) == classes) & is_there.unsqueeze(-1)).any(1)
        margins = (1 - rows.gather(1, chosen).unsqueeze(-1) + rows.unsqueeze(1)).clamp(min=0)
        counted = is_there.unsqueeze(-1) & ~is_target.unsqueeze(1)
        found = torch.where(counted, margins, torch.zeros((), dtype=x.dtype)).sum((1, 2)) / rows.shape[1]
        if reduction == 0:
            return found if x.dim() == 2 else found.reshape(())
        return found.mean() if reduction == 1 else found.sum()

    def samples(self) -> Iterator[Sample]:
        target = torch.tensor([[3, 0, -1, 1], [-1, 2, 1, 0], [2, 1, 0, 3]])
        for reduction in (0, 1, 2):
            yield Sample((torch.randn(3, 4), target, reduction))
        yield Sample((torch.randn(4), target[0]))
        yield Sample((torch.randn(4), target[1], 0))
        yield Sample((torch.randn(3, 4), target, 0), dynamic={0: {0: "n"}, 1: {0: "n"}})
