"""Defines a fix: a rewrite of a model to another form with the same results, which a target may take."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from typing import ClassVar

import onnx_ir as ir


class Fix(ABC):
    """Defines a rewrite; has no state. The target is asked about the rewritten model, which is also compared with the
    original."""

    rank: ClassVar[int]
    """Orders the fixes: those with a smaller rank are tried first, because they change less."""

    @abstractmethod
    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        """Yields other forms of the model, each with a sentence about the change. `refused` are the refused operators
        (`Det`, `com.microsoft::Gelu`); empty if the file as a whole is refused. The model itself stays as it is."""
