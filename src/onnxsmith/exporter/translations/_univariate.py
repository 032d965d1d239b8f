"""The family of special functions of one number, which compute in float64 for every dtype."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import torch

from onnxsmith.exporter.translations.base import Sample, Translation, member


class Univariate(Translation):
    """Computes a function of one real number, element by element. Integers and bools become the default float dtype."""

    points: ClassVar[Sequence[float]]
    """Arguments at which the function is compared with PyTorch."""

    @abstractmethod
    def value(self, x: torch.Tensor) -> torch.Tensor:
        """Computes the function in float64."""

    def decompose(self, self_: Any, *more: Any) -> Any:
        dtype = self_.dtype if self_.is_floating_point() else torch.get_default_dtype()
        return self.value(self_.to(torch.float64), *more).to(dtype)

    def samples(self) -> Iterator[Sample]:
        points = torch.tensor(self.points, dtype=torch.float64)
        yield Sample((points,))
        yield Sample((points.float(),))
        yield Sample((points.float().reshape(-1, 1),), dynamic={0: {0: "n"}})
        yield Sample((points[:4].to(torch.int64),))
        yield Sample((points[1].float(),))
        yield Sample((torch.zeros(0, 3),))


def in_float64(*given: Any) -> tuple[list[torch.Tensor], torch.dtype]:
    """Returns two numbers or tensors, at least one a tensor, as float64, and the dtype of a function of both: floats of
    their common dtype, or the default float dtype for integers."""
    dtype = torch.result_type(*given)
    (device, *_) = (one.device for one in given if isinstance(one, torch.Tensor))
    kind: dict[str, Any] = {"dtype": torch.float64, "device": device}
    tensors = [
        one.to(torch.float64) if isinstance(one, torch.Tensor) else torch.full((), float(one), **kind) for one in given
    ]
    return tensors, dtype if dtype.is_floating_point else torch.get_default_dtype()


def univariate(
    name: str, targets: str | tuple[str, ...], value: Callable[[torch.Tensor], torch.Tensor], points: Sequence[float],
    family: type[Univariate] = Univariate,
) -> type[Univariate]:  # fmt: skip
    """Returns the translation that computes `value`, an entry of the table in its module."""
    return member(family, name, value.__module__, targets, value=value, points=points)
