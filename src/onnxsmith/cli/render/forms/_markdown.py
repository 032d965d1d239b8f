"""Writes texts as Markdown that GitHub and GitLab show as they are: names in a model come from strangers.

A plain word stays. A word with any other character goes into `<code>`, in which neither markup nor mentions, numbers of
issues and addresses mean anything. Inside, the characters of markup are written as numbers: `&#42;` is never markup.
"""

from __future__ import annotations

import re

from onnxsmith.cli.render.printable import printable

_PLAIN = re.compile(r"""[("']*[^\W_](?:[^\W_]|[.,;:()"'/+=%→±…-])*[.,;:?!)"']*|[→±…]""")
"""Matches a word that means the same in Markdown."""
_LINKED = re.compile(r"(?i)//|www\.|:[\w+-]+:|^\W*gh-\d|^[0-9a-f]{7,40}$")
"""Finds words that GitHub or GitLab would link or replace: addresses, `:emoji:`, issues, commits."""
_LIST = re.compile(r"\d+[.)]")
"""Matches a first word that would begin a list."""
_QUOTED = re.compile(r"(`[^`\n]+`)")
_KEPT = re.compile(r"""[^\W_]|[ .,:;()=+'"/-]""")
"""Matches a character that means nothing in `<code>`, unless it belongs to an address."""

_LETTER = re.compile(r"[^\W_]")


def inline(text: str) -> str:
    """Returns a text for a cell, a heading or a paragraph, on one line. Commands in backquotes become code."""
    parts = _QUOTED.split(printable(text).replace("\t", " "))
    return "".join(
        code(part[1:-1]) if _QUOTED.fullmatch(part) else _words(part, is_first=not at) for at, part in enumerate(parts)
    ).strip()


def code(text: str) -> str:
    """Returns a text as code inside a line."""
    kept = _LETTER if _LINKED.search(text) else _KEPT
    shown = (one if kept.fullmatch(one) else f"&#{ord(one)};" for one in printable(text))
    return f"<code>{''.join(shown)}</code>"


def block(text: str) -> str:
    """Returns a text of several lines as a block of code."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{printable(text)}\n{fence}"


def _words(text: str, *, is_first: bool) -> str:
    shown: list[str] = []
    for word in text.replace("\n", " ").split(" "):
        may_begin = not (is_first and not any(shown) and _LIST.fullmatch(word))
        is_plain = _PLAIN.fullmatch(word) and not _LINKED.search(word) and may_begin
        shown.append(word if is_plain or not word else code(word))
    return " ".join(shown)
