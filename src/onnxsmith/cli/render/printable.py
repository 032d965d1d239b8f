"""Makes texts safe for a file that people read: names in a model come from strangers."""

from __future__ import annotations

import unicodedata

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Unicode categories of characters that are not seen: control characters, marks that change the direction of text,
halves of characters, unassigned characters, line and paragraph separators. XML allows few of them."""


def printable(text: str) -> str:
    """Returns the text with every hidden character as its escape, such as `\\x1b`. Line breaks and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(one) for one in text)


def _escaped(one: str) -> str:
    is_seen = one in "\n\t" or unicodedata.category(one) not in _HIDDEN
    return one if is_seen else one.encode("unicode_escape").decode()
