"""Names of PyTorch that not every supported version has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def existing(place: Any, *names: str) -> tuple[Callable[..., Any], ...]:
    """The functions of these names that the installed PyTorch has in `place`."""
    return tuple(getattr(place, name) for name in names if hasattr(place, name))
