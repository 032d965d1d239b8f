"""Writes texts so that people see every character: names in a model, and names of files, come from strangers.

A hidden character can move the cursor, change the colours of a terminal, or let a text be read in another order.
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


def printable(text: str) -> str:
    """Returns the text with every hidden character as its escape, such as `\\x1b`. Line breaks and tabs stay. In quoted
    words the escapes are those of bash and zsh, `$'a\\x1b.onnx'`, so that a command can be pasted."""
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    text = text.replace("\r\n", "\n")
    return _UNUSUAL.sub(_escaped, _QUOTED.sub(_in_shell, text))


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
