"""Defines a fix: a rewrite to another form of a model that computes the same, and that a target may take."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from typing import ClassVar

import onnx_ir as ir


class Fix(ABC):
    """A rewrite; stateless. The target is asked about its result, and the result is compared with the original."""

    rank: ClassVar[int]
    """Fixes with a smaller rank are tried first: those that change less."""

    @abstractmethod
    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        """Yields other forms of the model, each with a sentence about the change. `refused` are the refused operators
        (`Det`, `com.microsoft::Gelu`); empty if the file as a whole is refused. The model itself stays as it is."""
