"""Defines named conditions of a profile, for conditions that its other keys cannot express."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from onnxsmith.base import rooms
from onnxsmith.targets.profiles.condition_result import Finding
from onnxsmith.targets.profiles.node_facts import Subject


@dataclass(frozen=True)
class GraphRule(ABC):
    """Defines a condition. The fields of the dataclass are its parameters in the file; the docstring is its
    documentation.

    `operators` restricts it to nodes of these operators; empty for the class's own `anchor`.
    """

    anchor: ClassVar[tuple[str, ...]] = ()
    """Names the operators that the condition is about; empty for every operator."""
    source: ClassVar[str] = ""
    """Is a link to the text that states the condition; "" if only the profile's sources state the condition."""

    operators: tuple[str, ...] = ()

    @abstractmethod
    def judge(self, subject: Subject) -> Finding | None:
        """Returns the finding at a node; None if the node meets the condition."""

    def applies(self, name: str) -> bool:
        """Whether the condition is about this operator."""
        named = self.operators or self.anchor
        return not named or name in named


@cache
def kinds() -> dict[str, type[GraphRule]]:
    """Returns the conditions by name."""
    return rooms.classes("onnxsmith.targets.profiles.rules", GraphRule)
