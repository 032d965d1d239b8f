"""Compares the values of a step with the types of its fields: a patch file may have any value of TOML."""

from __future__ import annotations

import numbers
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

_WORDS = {
    str: "a text",
    int: "a whole number",
    bool: "true or false",
    list: "a list",
    tuple: "",
    Mapping: "a table",
    Callable: "",
    type(None): "",
}
"""Maps types to what a patch file writes for them; "" for a type that only Python has."""


def expected(kind: type, field: str, value: Any) -> str:
    """Returns what the field of a step takes, such as "a text or a list", if the value is none of it; otherwise ""."""
    sides = _sides(typing.get_type_hints(kind)[field])
    if any(_fits(value, side) for side in sides):
        return ""
    words = (_WORDS.get(typing.get_origin(side) or side, "") for side in sides)
    return " or ".join(word for word in words if word)


def _sides(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)


def _fits(value: Any, hint: Any) -> bool:
    kind = typing.get_origin(hint) or hint
    if kind is Any:
        return True
    if kind is int:
        return isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if kind in (list, tuple):
        return isinstance(value, kind) and all(_fits(one, typing.get_args(hint)[0]) for one in value)
    return isinstance(value, kind)
