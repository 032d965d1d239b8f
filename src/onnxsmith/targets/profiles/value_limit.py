"""Reads a limit on numbers or texts from a profile: a value, a list of values, or a range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Single = bool | int | float | str
HELP = "write a value, a list such as [1, 2], or a range such as { min = 1, max = 2 }"
"""Lists the forms of a limit, for the fix of a problem."""


@dataclass(frozen=True)
class Limit:
    """Limits a value. `choices` are the allowed values. If `choices` is None, the numbers from `least` to `most` are
    allowed, where None is no bound."""

    choices: tuple[Single, ...] | None = None
    least: float | None = None
    most: float | None = None

    @staticmethod
    def read(raw: Any) -> Limit:
        """Reads a limit from a value of TOML.

        Raises:
            ValueError: if the value has none of the three forms.
        """
        if isinstance(raw, Limit):
            return raw
        if isinstance(raw, Mapping):
            bounds = list(raw.values())
            if not raw or not set(raw) <= {"min", "max"} or not all(_is_number(one) for one in bounds):
                raise ValueError(HELP)
            if len(raw) == 2 and raw["min"] > raw["max"]:
                raise ValueError(f"min is above max; {HELP}")
            return Limit(None, raw.get("min"), raw.get("max"))
        if isinstance(raw, list | tuple):
            if not raw or not all(isinstance(one, Single) for one in raw):
                raise ValueError(HELP)
            return Limit(tuple(raw))
        if isinstance(raw, Single):
            return Limit((raw,))
        raise ValueError(HELP)

    @staticmethod
    def whole(raw: Any) -> Limit:
        """Reads a limit on whole numbers.

        Raises:
            ValueError: if the value is no limit, or is not whole.
        """
        limit = Limit.read(raw)
        held = [*(limit.choices or ()), limit.least, limit.most]
        if not all(one is None or (isinstance(one, int) and not isinstance(one, bool)) for one in held):
            raise ValueError(HELP)
        return limit

    def allows(self, value: Any) -> bool:
        """Whether a value, or each element of a list, is allowed."""
        if isinstance(value, Sequence) and not isinstance(value, str | bytes):
            return all(self.allows(one) for one in value)
        if self.choices is not None:
            return value in self.choices
        if not _is_number(value):
            return False
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)

    def __str__(self) -> str:
        if self.choices is not None:
            texts = [f'"{one}"' if isinstance(one, str) else str(one).lower() for one in self.choices]
            return texts[0] if len(texts) == 1 else f"one of {', '.join(texts)}"
        if self.least is None:
            return f"at most {self.most}"
        return f"at least {self.least}" if self.most is None else f"from {self.least} to {self.most}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
