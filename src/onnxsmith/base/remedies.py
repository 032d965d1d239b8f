"""Reads the remedies out of a problem's fix: commands, options, code and words, each as data.

A fix is a sentence for people. Its alternatives are divided by `; ` or `, or `. What can be pasted stands in it as it
is typed: a command in backquotes, an option with its value, code on lines of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["command", "option", "code", "words"]


@dataclass(frozen=True)
class Remedy:
    """One alternative of a fix.

    `text` is what can be pasted: a command line, options with their values, or lines of code. For words it is the
    sentence. `words` is the whole alternative. `tried` says that it was carried out, and that it helped.
    """

    kind: Kind
    text: str
    words: str
    tried: bool = False


_SENTENCE = (
    "if", "or", "and", "for", "to", "too", "alone", "then", "without", "with", "is", "as", "in", "on", "so", "which",
    "that", "first", "instead", "says", "takes", "again", "gives", "keeps", "writes", "where", "when", "of", "by",
    "from", "out", "allows", "has", "does", "names", "a", "the", "it", "not", "once", "may", "can", "needs",
    "brings",
)  # fmt: skip
"""Words that go on with the sentence behind an option. They are not its value."""
_DIVIDERS = re.compile(r"; or |, or |; ")
_QUOTED = re.compile(r"`[^`]*`")
_COMMAND = re.compile(r"`((?:onnxsmith|git|printf|pip|python|npm|make|mkdir|cp|mv|chmod) [^`]+)`")
_VALUE = r"""(?:'[^']*'|"[^"]*"|(?:\[[^\]]*\]|[^\s,;`'"\[]|,(?=\S))+)+"""
_OPTION = rf"(?<![\w-])(?:--[a-z][a-z-]*|-o\b)(?:[ =](?!(?:{'|'.join(_SENTENCE)})(?![\w/=-]|\.\w)|--){_VALUE})?"
_AWAY = re.compile(r"\b(?:leave|remove|drop|without|out of|instead of)\b")
"""Words in front of an option that is to be left out."""
_OPTIONS = re.compile(rf"{_OPTION}(?: {_OPTION})*")


def remedies(fix: str, tried: tuple[str, ...] = ()) -> tuple[Remedy, ...]:
    """Returns the alternatives of a fix in their order. `tried` holds the texts of those that were tried and helped."""
    return tuple(_remedy(part, tried) for part in alternatives(fix))


def alternatives(fix: str) -> list[str]:
    """Divides a fix into its alternatives. Dividers inside commands and code do not count."""
    if "\n" in fix:
        return [fix]
    held = [(match.start(), match.end()) for match in _QUOTED.finditer(fix)]
    parts, start = [], 0
    for match in _DIVIDERS.finditer(fix):
        if not any(low < match.start() < high for low, high in held):
            parts.append(fix[start : match.start()])
            start = match.end()
    return [part for part in (*parts, fix[start:]) if part.strip()]


def _remedy(part: str, tried: tuple[str, ...]) -> Remedy:
    kind, text = _pasted(part)
    return Remedy(kind, text, part, text in tried)


def _pasted(part: str) -> tuple[Kind, str]:
    if "\n" in part:
        return "code", part.partition("\n")[2]
    if command := _COMMAND.search(part):
        return "command", command[1]
    options = _OPTIONS.search(part)
    if options and not _AWAY.search(part[: options.start()]):
        return "option", options[0].rstrip(".:)")
    return "words", part
