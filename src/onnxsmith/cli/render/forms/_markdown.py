"""Writes texts as Markdown that GitHub and GitLab show as they are: names in a model come from strangers.

A plain word stays. Characters of markup are written as numbers: `&#42;` is never markup. A word that a service would
turn into a mention, a link, an issue or a formula after it has read the Markdown goes into `<code>`, where services
leave everything as it is.
"""

from __future__ import annotations

import re

from onnxsmith.base.printable import printable

_QUOTED = re.compile(r"(`[^`\n]+`)")
_QUIET = re.compile(r"""(?:[^\W_]|[.,;:()"'/+%→±…²√·=^_*\[\]{}<>&|\\-])*[?!]?[)"']*""")
"""Matches a word in which services look for nothing but markup."""
_LINKED = re.compile(r"(?i)//|www\.|:[\w+-]+:|^\W*gh-\d|^[0-9a-f]{7,40}$|^\W*%")
"""Finds words that GitHub or GitLab would link or replace: addresses, `:emoji:`, issues, commits, milestones."""
_LIST = re.compile(r"[-+]|\d+[.)]|-+|=+")
"""Matches a first word that would begin a list, a line or a heading."""
_MARKUP = re.compile(r"(?<![^\W_])_|_(?![^\W_])|[*\[\]<>&|\\]")
"""Finds the characters of markup. An underscore between letters is none."""
_KEPT = re.compile(r"""[^\W_]|[ .,;:()=+'"/-]""")
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
    shown = (one if kept.fullmatch(one) else _number(one) for one in printable(text))
    return f"<code>{''.join(shown)}</code>"


def block(text: str) -> str:
    """Returns a text of several lines as a block of code."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{printable(text)}\n{fence}"


def _words(text: str, *, is_first: bool) -> str:
    shown: list[str] = []
    for word in text.replace("\n", " ").split(" "):
        begins = is_first and not any(shown) and _LIST.fullmatch(word)
        if not word or (_QUIET.fullmatch(word) and not _LINKED.search(word) and not begins):
            shown.append(_MARKUP.sub(lambda found: _number(found[0]), word))
        else:
            shown.append(code(word))
    return " ".join(shown)


def _number(one: str) -> str:
    return f"&#{ord(one)};"
