"""What a suite is: named cases, each with a few calls of a module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch


@dataclass(frozen=True)
class Call:
    """A module, one call of it, and the axes that are to stay dynamic.

    `others` are more arguments of the same structure, other sizes along the dynamic axes; an exported file has to
    answer as the module does on them too. `random` says that values are not to be compared, only dtypes and shapes.
    """

    label: str
    module: torch.nn.Module
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    dynamic: Mapping[int, Mapping[int, str]] = field(default_factory=dict)
    """Number of the tensor among the arguments → axis → name."""
    others: Sequence[tuple[tuple[Any, ...], Mapping[str, Any]]] = ()
    random: bool = False
    opset: int | None = None
    """The opset that is asked for; a file at another one is wrong."""


class Suite(Protocol):
    """A collection of cases."""

    def names(self) -> list[str]:
        """All cases, in a fixed order."""

    def calls(self, name: str) -> Iterator[Call]:
        """The calls of one case. What eager PyTorch itself refuses is left out."""
