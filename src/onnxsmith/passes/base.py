"""What a pass is: a change to a whole model that keeps its meaning."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import onnx_ir as ir


@dataclass(frozen=True)
class PassResult:
    """The changed model, whether it changed, and one line for each place where it did."""

    model: ir.Model
    changed: bool
    where: Sequence[str] = ()


May = Callable[[str], bool]
"""Asked before each change, with the place; a change that it denies is not made."""


def always(where: str) -> bool:
    """Allows every change."""
    return True


class Pass(ABC):
    """One pass. It may change the model that it is given; the verb that runs it made a clone before."""

    title: ClassVar[str]

    @abstractmethod
    def run(self, model: ir.Model, may: May = always) -> PassResult:
        """Does it, where it may. A pass that only tidies up does not ask."""
