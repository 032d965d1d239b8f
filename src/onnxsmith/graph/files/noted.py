"""Collects what a headline says of the files that a block of code reads and writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Noted:
    """`renamed` are the tensors in branches and bodies that have other names in the files that were written: `i → i_1`.
    `left_out` are the parts of the loaded files that a model does not keep, such as training information."""

    renamed: dict[str, None] = field(default_factory=dict)
    left_out: dict[str, None] = field(default_factory=dict)


_HERE: ContextVar[Noted] = ContextVar("the notes of the innermost block")


@contextmanager
def noting() -> Iterator[Noted]:
    """Collects the notes of the block. A block around it gets them, too."""
    found = Noted()
    token = _HERE.set(found)
    try:
        yield found
    finally:
        _HERE.reset(token)
        here().left_out.update(found.left_out)


def here() -> Noted:
    """Returns the notes of the innermost block. Outside of all blocks, nobody reads them."""
    return _HERE.get(Noted())
