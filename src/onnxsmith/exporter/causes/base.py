"""The base class of causes: a cause recognises a misleading message and says what is wrong."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import cache
from typing import ClassVar

from onnxsmith.base import rooms
from onnxsmith.base.problem import Problem
from onnxsmith.exporter.causes._message_text import line_in, plain, sentence


class Cause(ABC):
    """Recognises one possible meaning of messages. Stateless."""

    rank: ClassVar[int] = 50
    """Causes are asked in ascending order of this number, then by name. The first that recognises the text answers."""

    @abstractmethod
    def read(self, text: str) -> Problem | None:
        """Returns the problem that the text reports, or None if this cause does not recognise the text, which has no
        colours."""


@cache
def _causes() -> tuple[Cause, ...]:
    return tuple(sorted(rooms.members("onnxsmith.exporter.causes", Cause).values(), key=lambda one: one.rank))


def recognise(text: str, where: str = "") -> Problem | None:
    """Returns the meaning of the message, or None if no cause recognises it.

    `where` is the user's line, if the caller knows it; otherwise it is read from the text. If the cause has no
    explanation, `why` is the start of the message.
    """
    clean = plain(text)
    for cause in _causes():
        found = cause.read(clean)
        if found is not None:
            return replace(found, where=where or found.where or line_in(clean), why=found.why or sentence(clean))
    return None
