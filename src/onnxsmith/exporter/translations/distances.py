"""Distances, norms and similarities of vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.base.seams.torch.operators import composite
from onnxsmith.exporter.translations.base import Sample, Translation


class Cdist(Translation, targets=("aten::cdist", "aten::_cdist_forward", "aten::_euclidean_dist")):
    """Computes `cdist`, distances between the rows of two matrices, as the p-norm of the difference of every two rows.

    For p = 2 and many rows PyTorch uses a matrix product instead, which suffers cancellation for close rows.
    """

    def decompose(self, x1: Any, x2: Any, p: float = 2.0, compute_mode: int | None = None) -> Any:
        difference = (x1.unsqueeze(-2) - x2.unsqueeze(-3)).abs()
        if p == 0:
            return (difference != 0).to(difference.dtype).sum(-1)
        if p == 1:
            return difference.sum(-1)
        if p == float("inf"):
            return difference.amax(-1) if difference.shape[-1] else difference.sum(-1)
        if p == 2:
            return (difference * difference).sum(-1).sqrt()
        return difference.pow(p).sum(-1).pow(1 / p)

    def samples(self) -> Iterator[Sample]:
        for p in (0.0, 1.0, 2.0, 2.5, float("inf")):
            yield Sample((torch.randn(2, 5, 3), torch.randn(2, 4, 3), p), dynamic={0: {0: "n", 1: "p"}, 1: {0: "n"}})
        yield Sample((torch.randn(3, 0), torch.randn(4, 0), 2.0))
        yield Sample((torch.randn(3, 1, 5, 2), torch.randn(4, 6, 2), 2.0))
        yield Sample((torch.randn(40, 3), torch.randn(30, 3), 2.0, 1), dynamic={0: {0: "n"}, 1: {0: "m"}})


class Pdist(Translation, targets="aten::_pdist_forward"):
    """Computes `pdist`, distances between all pairs of different rows, by `cdist` of the pairs."""

    def decompose(self, x: Any, p: float = 2.0) -> Any:
        count = x.shape[0]
        first, second = torch.triu_indices(count, count, 1)
        return Cdist().decompose(x[first].unsqueeze(1), x[second].unsqueeze(1), p).reshape(-1)

    def samples(self) -> Iterator[Sample]:
        for p in (0.0, 1.0, 2.0, 2.5, float("inf")):
            yield Sample((torch.randn(5, 3), p))
        yield Sample((torch.randn(5, 3, dtype=torch.float64), 2.0), dynamic={0: {1: "k"}})
        yield Sample((torch.randn(1, 3), 2.0))


class CosineSimilarity(Translation, targets="aten::cosine_similarity"):
    """Computes `cosine_similarity` by PyTorch's decomposition. 0-d tensors get an axis first, because norms in ONNX
    need one."""

    def decompose(self, x: Any, y: Any, dim: int = 1, eps: float = 1e-8) -> Any:
        operator = torch.ops.aten.cosine_similarity.default
        if x.dim() == y.dim() == 0:
            return composite(operator, x.reshape(1), y.reshape(1), 0, eps)
        return composite(operator, x, y, dim, eps)

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.tensor(2.0), torch.tensor(-3.0), 0))
        yield Sample((torch.randn(3, 4), torch.randn(3, 4)))
        yield Sample((torch.randn(2, 1, 4), torch.randn(3, 4), -1, 0.5))
        yield Sample((torch.randn(3, 4), torch.randn(3, 4)), dynamic={0: {0: "n"}, 1: {0: "n"}})


class LinalgVectorNorm(Translation, targets="aten::linalg_vector_norm"):
    """Computes `linalg.vector_norm` of a 0-d tensor: the absolute value, or for order 0 whether it is not zero.

    Other tensors are left to PyTorch's exporter.
    """

    def decompose(self, x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:  # noqa: A002
        if x.dim() or x.is_complex():
            return NotImplemented
        x = x if dtype is None else x.to(dtype)
        return (x != 0).to(x.dtype) if ord == 0 else x.abs()

    def samples(self) -> Iterator[Sample]:
        for order in (2, 1, 0, float("inf"), -2.5):
            yield Sample((torch.tensor(-2.5), order, [0]))
        yield Sample((torch.tensor(0.0), 0, [-1], True))
        yield Sample((torch.tensor(-3.5), 2, [0]), {"dtype": torch.float64})
        yield Sample((torch.randn(3, 4), 2, [1]), dynamic={0: {0: "n"}})
