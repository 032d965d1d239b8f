"""What a cause is: a message that misleads, and what is really the matter."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import cache
from typing import ClassVar

from onnxsmith import rooms
from onnxsmith.causes._text import line_in, plain, sentence
from onnxsmith.problem import Problem


class Cause(ABC):
    """One thing that a message can mean; stateless."""

    rank: ClassVar[int] = 50
    """Causes are asked in the order of this number, then by name; the first that knows the text answers."""

    @abstractmethod
    def read(self, text: str) -> Problem | None:
        """The problem that the text tells of, or None when it is another one's. The text has no colours."""


@cache
def _causes() -> tuple[Cause, ...]:
    return tuple(sorted(rooms.members("onnxsmith.causes", Cause).values(), key=lambda one: one.rank))


def recognise(text: str, where: str = "") -> Problem | None:
    """What the message means, or None when no cause knows it.

    `where` is the user's line where the caller knows it; otherwise it is read from the text. `why` is the message's
    first sentence where the cause has no better one.
    """
    clean = plain(text)
    for cause in _causes():
        found = cause.read(clean)
        if found is not None:
            return replace(found, where=where or found.where or line_in(clean), why=found.why or sentence(clean))
    return None
