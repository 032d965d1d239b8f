"""Describes all entries of a keep-list that name no node, with their lines and similar names."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from onnxsmith.base.words import first_few, several
from onnxsmith.precision.keep_list import Entry, bare

_MOST = 10
"""The most entries that are listed. A choice."""
_LOOKED_UP = 3
"""The most entries for which similar names are looked up. A choice: in a list for another model all names are
unknown."""


class Told(NamedTuple):
    """The parts of a Problem that are the same for every keep-list."""

    what: str
    where: str
    near: str
    """Names of the model that are similar to the unknown names, as the end of a sentence; "" if there are none."""


def told(entries: Sequence[str], names: Collection[str], none: str = "no node is called") -> Told:
    """Makes the parts of a Problem on entries that name none of the `names` of a model. `none` begins the sentence for
    a single entry."""
    return Told(_what(entries, none), _where(entries), _near(entries, names))


def _what(entries: Sequence[str], none: str) -> str:
    """Makes the sentence on entries that name nothing. `none` begins the sentence for a single entry."""
    listed = first_few([repr(bare(one)) for one in entries], _MOST)
    if len(entries) == 1:
        return f"{none} {listed}"
    return f"{several(len(entries), 'name')} of the keep-list are unknown: {listed}"


def _where(entries: Sequence[str]) -> str:
    """Returns the file and the lines of the entries; "" if they were not read from a file."""
    read = [one for one in entries if isinstance(one, Entry)]
    if not read:
        return ""
    lines = [str(one.line) for one in read if one.line is not None]
    said = f", line{'s' if len(lines) > 1 else ''} {first_few(lines, _MOST)}" if lines else ""
    return f"{read[0].file}{said}"


def _near(entries: Sequence[str], names: Collection[str]) -> str:
    """Lists names of the model that are similar to the first entries, as the end of a sentence; "" if there are
    none."""
    said = ""
    known = sorted(name for name in names if name)
    for one in entries[:_LOOKED_UP]:
        found = get_close_matches(bare(one), known, n=2)
        said += f"; near to {bare(one)!r}: {', '.join(map(repr, found))}" if found else ""
    return said
