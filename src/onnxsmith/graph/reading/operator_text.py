"""Reads the text of an operator in the ONNX specification: as plain text, in a few sentences, and compared."""

from __future__ import annotations

import difflib
import html
import inspect
import re

from onnxsmith.base.words import shortened

_FENCE = re.compile(r"^\s*```")
_TAG = re.compile(r"</?(?:i|b|em|strong|p|code|sub|sup|dl|dt|dd|ul|ol|li|a)(?:\s[^<>]*)?>")
"""Matches the HTML that the specification uses; `Tensor<T>` is no HTML."""
_LINK = re.compile(r"\[([^\[\]]+)\]\((?:[^()\s]+)\)")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`'\"(\[])")
_ENOUGH = 160
"""Sets the characters from which a paragraph alone says what an operator does. A choice: two lines of a terminal."""
_MOST = 480
"""Limits the characters of a summary. A choice: a few lines of a terminal."""
_QUOTED = 80
"""Limits the characters of a quoted change. A choice: a line of a terminal."""
_KEPT = 4
"""Sets the equal words that are quoted before the first different one. A choice: enough to find the place."""
_SAME = 0.95
"""Sets the likeness from which two sentences differ by a slip of the pen only. A choice: corrected typing errors of the
specification are above it."""


def plain(doc: str) -> str:
    """Returns a text of the specification without Markdown and HTML, in its lines. Code is indented."""
    lines, in_code = [], False
    for line in inspect.cleandoc(doc).replace("<br/>", "<br>").replace("<br>", "\n").splitlines():
        if _FENCE.match(line):
            in_code = not in_code
            continue
        lines.append(f"    {line}".rstrip() if in_code else _prose(line).rstrip())
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines))
    return text.strip("\n")


def summary(doc: str) -> str:
    """Returns the first sentences of a text of the specification, on one line: what the operator does."""
    text = ""
    for paragraph in re.split(r"\n\s*\n", plain(doc)):
        more = " ".join(paragraph.split())
        ends = not text or text[-1] in ".:;,!?" or not more[:1].isupper()
        text = f"{text}{'' if ends else '.'} {more}".strip()
        if len(text) >= _ENOUGH and not text.endswith(":"):
            break
    if len(text) <= _MOST:
        return text
    kept = ""
    for sentence in _SENTENCE.split(text):
        if len(kept) + len(sentence) > _MOST:
            break
        kept = f"{kept} {sentence}".strip()
    return f"{kept} …" if len(kept) >= _ENOUGH else f"{text[:_MOST].rpartition(' ')[0]} …"


def change(before: str, now: str) -> str:
    """Says what differs between two descriptions, in words; "" if only the wording of nothing differs: letters, marks,
    typing errors."""
    old, new = _sentences(before), _sentences(now)
    gone, come = _unlike(old, new), _unlike(new, old)
    if come and gone:
        older, newer = " ".join(gone).split(), " ".join(come).split()
        if _alike(_bare(" ".join(older)), _bare(" ".join(newer))):
            return ""
        same = next((at for at, pair in enumerate(zip(older, newer, strict=False)) if pair[0] != pair[1]), 0)
        return f'is "{_quote(newer, same)}" (was "{_quote(older, same)}")'
    if come:
        return f'has the new sentence "{_quote(" ".join(come).split())}"'
    return f'has no longer the sentence "{_quote(" ".join(gone).split())}"' if gone else ""


def _sentences(text: str) -> list[str]:
    return [one for one in _SENTENCE.split(" ".join(plain(text).split())) if one]


def _unlike(some: list[str], others: list[str]) -> list[str]:
    """Returns the sentences to which no other sentence is alike."""
    known = [_bare(one) for one in others]
    return [one for one in some if not any(_alike(_bare(one), other) for other in known)]


def _alike(one: str, other: str) -> bool:
    if one == other:
        return True
    return min(len(one), len(other)) > 1 and difflib.SequenceMatcher(None, one, other).ratio() >= _SAME


def _bare(sentence: str) -> str:
    return re.sub(r"[\W_]+", " ", sentence.lower()).strip()


def _quote(words: list[str], same: int = 0) -> str:
    """Returns the words in the length of a quotation. If the first `same` words are those of the other quotation, and
    there are too many of them, a few of them are left."""
    text = " ".join(words)
    if len(text) > _QUOTED and same > _KEPT and same < len(words):
        text = "… " + " ".join(words[same - _KEPT :])
    return shortened(text.replace('"', "'"), _QUOTED)


def _prose(line: str) -> str:
    line = html.unescape(_LINK.sub(r"\1", _TAG.sub("", line)))
    return line.replace('\\"', '"').replace("\\*", "*").replace("**", "").replace("`", "").replace("$", "")
