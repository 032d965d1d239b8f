"""Defines the base class of passes. A pass changes a whole model and keeps its meaning."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import onnx_ir as ir


@dataclass(frozen=True)
class PassResult:
    """The model, whether it changed, and one line for each changed place."""

    model: ir.Model
    changed: bool
    where: Sequence[str] = ()


May = Callable[[str], bool]
"""Is called with the place before each change. If it returns False, the change is not made."""


def always(where: str) -> bool:
    """Allows every change."""
    return True


class Pass(ABC):
    """One pass. It changes the given model in place; the verb that runs it has made a clone."""

    title: ClassVar[str]

    @abstractmethod
    def run(self, model: ir.Model, may: May = always) -> PassResult:
        """Makes the changes that `may` allows. A pass that only removes unused parts does not call `may`."""
