"""Statistics of samples: histograms, counts, covariances and correlations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation
from onnxsmith.exporter.translations.sorting_and_searching import search


def edges(points: Any, bins: Sequence[int], limits: Sequence[float] | None) -> list[Any]:
    """Returns for each column of `points` the edges of `bins` bins of equal width.

    They go from the smallest to the largest element, or as `limits` (low, high, low, high …) say. If both limits are
    equal, each moves outwards by one half. Without points they are 0 and 1.
    """
    found = []
    for axis, count in enumerate(bins):
        column = points[:, axis]
        if limits:
            low, high = (torch.full((), float(v), dtype=points.dtype) for v in limits[2 * axis : 2 * axis + 2])
        elif column.shape[0] == 0:
            low, high = torch.zeros((), dtype=points.dtype), torch.ones((), dtype=points.dtype)
        else:
            low, high = column.amin(0), column.amax(0)
        half = torch.where(low == high, torch.full((), 0.5, dtype=points.dtype), torch.zeros((), dtype=points.dtype))
        found.append(_linspace(low - half, high + half, count + 1))
    return found


def histogram(points: Any, ends: Sequence[Any], weight: Any, density: bool) -> Any:
    """Counts the `points` [points, axes] in each bin between `ends`, or adds their weights. A bin contains its lower
    end; the last bin contains both ends. `density` divides by the sum and by the volumes of the bins."""
    sizes = [end.shape[0] - 1 for end in ends]
    place: Any = None
    inside: Any = None
    for axis, (end, size) in enumerate(zip(ends, sizes, strict=True)):
        column = points[:, axis].contiguous()
        within = (column >= end[0]).logical_and(column <= end[-1])
        number = (search(end.contiguous(), column, right=True) - 1).clamp(0, size - 1)
        place = number if place is None else place * size + number
        inside = within if inside is None else inside.logical_and(within)
    amount = torch.ones_like(points[:, 0]) if weight is None else weight.reshape(-1)
    amount = torch.where(inside, amount, torch.zeros((), dtype=points.dtype))
    counted = torch.zeros((math.prod(sizes),), dtype=points.dtype).scatter_add(0, place, amount).reshape(sizes)
    if not density:
        return counted
    found = counted / counted.sum()
    for axis, end in enumerate(ends):
        found = found / end.diff().reshape([-1 if axis == other else 1 for other in range(len(ends))])
    return found


def _linspace(low: Any, high: Any, count: int) -> Any:
    """Returns `count` numbers, computed from both ends to the middle, as PyTorch's `linspace` rounds."""
    step = (high - low) / (count - 1)
    number = torch.arange(count, dtype=low.dtype)
    return torch.where(number < count // 2, low + step * number, high - step * (count - 1 - number))


class Histogram(Translation, targets=("aten::histogram.bin_ct", "aten::histogram.bins_tensor")):
    """Computes `histogram` of all elements: the counts and the edges of the bins."""

    def decompose(self, x: Any, bins: Any = 100, *, weight: Any = None, density: bool = False, **limits: Any) -> Any:
        points = x.reshape(-1, 1)
        ends = [bins.clone()] if isinstance(bins, torch.Tensor) else edges(points, [bins], limits.get("range"))
        return histogram(points, ends, weight, density), ends[0]

    def samples(self) -> Iterator[Sample]:
        count, given = self.targets
        x = torch.randn(4, 5)
        for density in (False, True):
            for weight in (None, torch.rand(4, 5)):
                options = {"weight": weight, "density": density}
                yield Sample((x, 7), {"range": [-1.0, 1.5], **options}, count)
                yield Sample((x, 20), options, count)
                yield Sample((x, torch.tensor([-1.0, -0.5, 0.0, 2.0])), options, given)
        yield Sample((torch.full((3,), 2.0), 4), {}, count)
        yield Sample((torch.randn(9, dtype=torch.float64), 4), {}, count)
        yield Sample((torch.tensor(0.3), 4), {}, count)


class HistogramddBinEdges(Translation, targets="aten::_histogramdd_bin_edges"):
    """Computes the edges of the bins of `histogramdd`, one tensor for each coordinate."""

    def decompose(self, x: Any, bins: Any, *, weight: Any = None, density: bool = False, **limits: Any) -> Any:
        del weight, density
        return edges(x.reshape(-1, x.shape[-1]), bins, limits.get("range"))

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(4, 5, 2), [3, 4]))
        yield Sample((torch.randn(4, 2), [3, 4]), {"range": [-1.0, 1.5, 0.0, 2.0]})


class Histogramdd(Translation, targets=("aten::_histogramdd_from_bin_cts", "aten::_histogramdd_from_bin_tensors")):
    """Computes the counts of `histogramdd`, given the numbers of bins or their edges. Another operator computes the
    edges."""

    def decompose(self, x: Any, bins: Any, *, weight: Any = None, density: bool = False, **limits: Any) -> Any:
        points = x.reshape(-1, x.shape[-1])
        ends = list(bins) if isinstance(bins[0], torch.Tensor) else edges(points, bins, limits.get("range"))
        return histogram(points, ends, weight, density)

    def samples(self) -> Iterator[Sample]:
        counts, given = self.targets
        x = torch.randn(4, 5, 2)
        for density in (False, True):
            for weight in (None, torch.rand(4, 5)):
                options = {"weight": weight, "density": density}
                yield Sample((x, [3, 4]), {"range": [-1.0, 1.5, -2.0, 2.0], **options}, counts)
                yield Sample((x, [3, 4]), options, counts)
                yield Sample((x, [torch.tensor([-1.0, 0.0, 2.0]), torch.tensor([-1.0, 1.0])]), options, given)
        yield Sample((torch.randn(7, 3, dtype=torch.float64), [2, 3, 4]), {}, counts)


class Bincount(Translation, targets="aten::bincount"):
    """Computes `bincount` with weights: the sum of the weights of each number up to the greatest.

    The result is float32 for float32 weights, int64 for no numbers, otherwise float64. Calls without weights are
    counted here if `minlength` is a computed size, otherwise left to PyTorch's exporter.
    """

    def decompose(self, x: Any, weights: Any = None, minlength: int = 0) -> Any:
        if weights is None and isinstance(minlength, int):
            return NotImplemented
        if weights is None:
            return _counts(x, minlength)
        dtype = torch.float32 if weights.dtype == torch.float32 else torch.float64
        if isinstance(x.shape[0], int) and x.shape[0] == 0:
            return torch.zeros((minlength,), dtype=torch.int64)
        length = (x.amax(0).to(torch.int64) + 1).clamp(min=minlength).item()
        return torch.zeros((length,), dtype=dtype).scatter_add(0, x.to(torch.int64), weights.to(dtype))

    def samples(self) -> Iterator[Sample]:
        x = torch.tensor([3, 0, 3, 7])
        yield Sample((x, torch.rand(4)))
        yield Sample((x.int(), torch.rand(4).double(), 10))
        yield Sample((x, torch.tensor([1, 2, 3, 4]), 3))
        yield Sample((torch.zeros(0).long(), torch.zeros(0), 3))
        yield Sample((x, torch.rand(4)), dynamic={0: {0: "n"}, 1: {0: "n"}})


def _counts(x: Any, minlength: Any) -> Any:
    """Counts each number, up to `minlength` or the greatest number."""
    numbers = x.to(torch.int64)
    greatest = torch.cat([numbers, torch.full((1,), -1)]).amax(0) + 1
    length: Any = torch.maximum(greatest, torch.full((), minlength)).item()
    return torch.zeros((length,), dtype=torch.int64).scatter_add(0, numbers, torch.ones_like(numbers))


class Cov(Translation, targets="aten::cov", functions=(torch.cov, torch.Tensor.cov)):
    """Computes `cov`, the covariance of variables: Σ w (x - μ)(x - μ)ᵀ / (Σ w - correction · Σ w a / Σ w).

    Rows are variables, columns observations. The weight w of an observation is its frequency times its importance a (as
    numpy.cov defines them). PyTorch refuses negative weights; the graph does not check them, because this depends on
    values.
    """

    def decompose(self, x: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
        rows = x.reshape(1, -1) if x.dim() < 2 else x
        dtype = rows.dtype if rows.dtype.is_floating_point or rows.dtype.is_complex else torch.get_default_dtype()
        rows = rows.to(dtype)
        weight = None if fweights is None else fweights.to(dtype)
        if aweights is not None:
            weight = aweights.to(dtype) if weight is None else weight * aweights.to(dtype)
        if weight is None:
            total: Any = torch.full((), rows.shape[1], dtype=dtype)
            centred = rows - rows.mean(1, keepdim=True)
            product = centred @ centred.mT.conj()
        else:
            total = weight.sum()
            centred = rows - (rows * weight).sum(1, keepdim=True) / total
            product = (centred * weight) @ centred.mT.conj()
        lost = correction if aweights is None else correction * (weight * aweights.to(dtype)).sum() / total
        # one divisor for each variable: ONNX Runtime would fuse a single number into the product, as a float32
        return (product / (total - lost).clamp(min=0).expand(rows.shape[0], 1)).squeeze()

    def samples(self) -> Iterator[Sample]:
        x = torch.randn(3, 7)
        yield Sample((x,), dynamic={0: {1: "n"}}, around=torch_cov)
        yield Sample((x.double(),), {"correction": 0}, around=torch_cov)
        yield Sample((torch.randn(5),), around=torch_cov)
        yield Sample((x, torch.rand(7), torch.randint(1, 4, (7,))), around=weighted)
        yield Sample((torch.randint(-5, 5, (2, 4)),), around=torch_cov)


def torch_cov(_: Any, x: torch.Tensor, **options: Any) -> torch.Tensor:
    """Calls `torch.cov`, as models do, instead of the operator."""
    return torch.cov(x, **options)


def weighted(_: Any, x: torch.Tensor, weight: torch.Tensor, often: torch.Tensor) -> torch.Tensor:
    """Calls `torch.cov` with weights that are not negative."""
    return torch.cov(x, aweights=weight.abs() + 0.1, fweights=often.abs() + 1)


class Corrcoef(Translation, targets="aten::corrcoef", functions=(torch.corrcoef, torch.Tensor.corrcoef)):
    """Computes `corrcoef`, the correlation of variables, as the covariance divided by both standard deviations, within
    [-1, 1]."""

    def decompose(self, x: Any) -> Any:
        found = Cov().decompose(x)
        if found.dim() == 0:
            return found / found
        deviation = found.diagonal().sqrt()
        return (found / deviation.unsqueeze(1) / deviation.unsqueeze(0)).clamp(-1, 1)

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(3, 7),), dynamic={0: {1: "n"}}, around=torch_corrcoef)
        yield Sample((torch.randn(4, 5, dtype=torch.float64),), around=torch_corrcoef)
        yield Sample((torch.randn(6),), around=torch_corrcoef)


def torch_corrcoef(_: Any, x: torch.Tensor) -> torch.Tensor:
    """Calls `torch.corrcoef`, as models do, instead of the operator."""
    return torch.corrcoef(x)
