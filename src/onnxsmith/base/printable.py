"""Writes texts so that people see what they say: names in a model, and names of files, come from strangers.

A hidden character can move the cursor, change the colours of a terminal, or let a text be read in another order. A name
of millions of characters would hide the rest, and take minutes to lay out.
"""

from __future__ import annotations

import json
import re
import unicodedata

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Unicode categories of characters that are not seen: control characters, marks that change the direction of text,
halves of characters, unassigned characters, line and paragraph separators. XML allows few of them."""
_UNUSUAL = re.compile(r"[^\x20-\x7e\n\t]")
"""Matches the characters whose category decides."""
_QUOTED = re.compile(r"\"'\"|(?<![\w$])'[^'\n]*'(?!\w)")
"""Matches a word that `shlex.quote` put in quotes, such as a path, and the quoted quote that it writes inside one."""
_BYTES = range(0xDC80, 0xDD00)
"""Halves of characters that Python writes for the bytes of a file name that is not UTF-8 (PEP 383)."""


_WORD, LINE, _PARAGRAPH, _LINES = 1_000, 4_000, 8_000, 30
"""Limit the characters of a word, of a line and of a paragraph, and the lines of a paragraph, in a terminal. A choice:
a report is far below, and a paragraph at the limit fills two screens."""
_LONG = re.compile(rf"(?<!\S)\S{{{_WORD + 1},}}")
VERBATIM = 100_000
"""Limits the characters of a line of a text that is shown as it is, such as a model as text, and of a line in a page.
A choice: a browser lays it out in a second."""
DATA = 1_000_000
"""Limits the characters of a line of a text in JSON. A choice: a text of several lines, such as a model as text, is
whole."""


def paragraph(text: str) -> str:
    """Returns a text from a file as a terminal shows it: with a limited length, and with every character seen."""
    if len(text) > _WORD or text.count("\n") >= _LINES:
        whole = len(text)
        text = limited(_LONG.sub(lambda word: _cut(word[0], _WORD // 5, len(word[0])), text), LINE)
        lines = text.split("\n")[:_LINES]
        if len(text) > _PARAGRAPH or len("\n".join(lines)) < len(text):
            text = _cut("\n".join(lines), _PARAGRAPH, whole)
    return printable(text)


def limited(text: str, most: int) -> str:
    """Returns the text with at most so many characters in a line. A longer line says how many it has."""
    if len(text) <= most:
        return text
    return "\n".join(cut(line, most) for line in text.split("\n"))


def cut(text: str, most: int) -> str:
    """Returns the text, or the first half of so many characters of a longer one with the count of all."""
    return text if len(text) <= most else _cut(text, most // 2, len(text))


def _cut(text: str, most: int, whole: int) -> str:
    return f"{text[:most]}… ({whole:,} characters)"


def printable(text: str) -> str:
    """Returns the text with every hidden character as its escape, such as `\\x1b`. Line breaks and tabs stay. In quoted
    words the escapes are those of bash and zsh, `$'a\\x1b.onnx'`, so that a command can be pasted."""
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    text = text.replace("\r\n", "\n")
    return _UNUSUAL.sub(_escaped, _QUOTED.sub(_in_shell, text))


def one_line(text: str) -> str:
    """Returns a text that stands on one line, such as a name in a table, with each line break as its escape. Otherwise
    a name could print a line that looks like one of the report."""
    return text.replace("\n", r"\n")


def below(text: str) -> str:
    """Returns a text of several lines so that its further lines stand indented below their label."""
    return text.replace("\n", "\n    ")


def json_printable(text: str) -> str:
    """Returns a text in JSON with every hidden character as `\\uXXXX`, which means the same."""
    return _UNUSUAL.sub(lambda one: json.dumps(one[0])[1:-1] if _is_hidden(one[0]) else one[0], text)


def _is_hidden(one: str) -> bool:
    return unicodedata.category(one) in _HIDDEN


def _escaped(one: re.Match[str]) -> str:
    return one[0].encode("unicode_escape").decode() if _is_hidden(one[0]) else one[0]


def _in_shell(word: re.Match[str]) -> str:
    """Returns a quoted word as the shell reads it, with escapes in place of hidden characters."""
    if not any(map(_is_hidden, _UNUSUAL.findall(word[0]))):
        return word[0]
    body = word[0][1:-1].replace("\\", r"\\")
    return f"$'{_UNUSUAL.sub(lambda one: _shell_escape(one[0]) if _is_hidden(one[0]) else one[0], body)}'"


def _shell_escape(one: str) -> str:
    code = ord(one)
    if code in _BYTES:
        return f"\\x{code & 0xFF:02x}"
    return f"\\x{code:02x}" if code <= 0x7F else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
