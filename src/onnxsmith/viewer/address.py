"""Writes the address of a place on a page of `view`: what stands after `#`.

`viewer/src/url.ts` reads and writes the same format for the page. `tests/viewer/addresses.json` holds both to it."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

_KEPT = "!~*'()/:"
"""Characters that stay as they are, beside letters, digits, `-`, `_` and `.`: those that `url.ts` keeps."""


def fragment(*, room: str = "", opened: Sequence[str] = (), at: str = "", colour: str = "", model: int = 0) -> str:
    """Returns the address of a room by its path. `opened` are paths of opened rooms, `at` is what is selected, such as
    `node:Conv_1`, `colour` the title of the figures, `model` 0 or 1."""
    parts = [_encoded(room)]
    for name, value in (
        ("open", ",".join(map(_encoded, opened))),
        ("at", _encoded(at)),
        ("colour", _encoded(colour)),
        ("model", str(model) if model else ""),
    ):
        if value:
            parts.append(f"{name}={value}")
    return "#" + "&".join(parts)


def _encoded(text: str) -> str:
    return quote(text, safe=_KEPT, errors="replace").replace("%20", "+")
