"""Finds the causes of an error message, in whatever form the message was pasted."""

from __future__ import annotations

import html
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from onnxsmith.exporter.causes._message_text import plain
from onnxsmith.viewer.inspection.messages import Message, filled, known

_LEAD = re.compile(
    r"^(?:E\s{2,}|(?:\s*[>|│❱]\s)+|[\w.-]+\s+\|\s|#\d+ \d+\.\d+ "
    r"|\[?\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-]\d\d:?\d\d)?\]?:?\s+|\[\s?(?:ERROR|WARNING|INFO)\s?\]\s*)+"
)
"""Matches prefixes of lines: from pytest, quotations, frames and docker, and times and log levels."""
_TAIL = re.compile(r"\s*│\s*$")
_QUOTES = str.maketrans("\u2018\u2019\u201a\u201b\u00b4\u201c\u201d\u201e", "'" * 5 + '"' * 3)
"""Replaces quotation marks that word processors, forums and compilers use instead of ' and "."""
_SYNTAX = re.compile(r"\(\?P<\w+>(?:[^()\\]|\\.)*\)|\[[^\]]*\]|\{\d*,?\d*\}|\\[a-zA-Z]|[\\^$.|?*+()]")
_WORD = re.compile(r"[a-z][a-z_]{2,}")
_FIELD = re.compile(
    r"onnx|\bort\b|torch|tensorrt|\btrt|openvino|opencv|\bdnn|core ?ml|tflite|tensorflow|keras|opset|quantiz"
    r"|executionprovider|\bop_type|rknn|ncnn|\bmnn|\bqnn|cudnn|cublas",
    re.IGNORECASE,
)
"""Matches words of the field. A message without any of these words comes from another program, and no cause is near
it."""
_NEAREST = 3
"""Limits the causes named for an unknown message. A choice: few enough to read."""
_ALIKE = 0.3
"""Sets the least cosine, between the words of a message and of a cause, from which a cause is named as near. A choice:
most messages of other programs stay below it."""


@dataclass(frozen=True)
class Found:
    """Describes a matching cause. `names` are the names that its pattern read, `text` is the part of the message that
    matched."""

    message: Message
    names: dict[str, str]
    text: str

    @property
    def what(self) -> str:
        """Returns the meaning of the message, with its names filled in."""
        return filled(self.message.what, self.names)


def match(text: str) -> list[Found]:
    """Returns the matching causes, the most specific first and general causes last. If the first cause has no names, it
    gets the names of the general causes."""
    found: list[tuple[int, Found]] = []
    for variant in _variants(text):
        found = sorted(_matching(variant), key=_order) or found
        if found and not found[0][1].message.general:
            break
    return _with_names([one for _, one in found])


def nearest(text: str) -> list[Message]:
    """Returns causes with similar words, the nearest first, as hints rather than as an answer. Empty if no cause is
    similar, or if the message has no word of the field."""
    if not _FIELD.search(text):
        return []
    words, rarity = _counts(" ".join(_lines(text))), _rarity()
    scores = {
        id_: _cosine(words, _counts(" ".join(example.text for example in message.examples)), rarity)
        for id_, message in known().items()
    }
    best = sorted((id_ for id_ in scores if scores[id_] >= _ALIKE), key=lambda id_: -scores[id_])
    return [known()[id_] for id_ in best[:_NEAREST]]


def _variants(text: str) -> Iterator[str]:
    """Yields the message on one line in several variants: as it is, with the lines joined that a terminal broke, with
    escaped `\n` replaced, and with HTML unescaped and one kind of quotes."""
    lines = _lines(text)
    yield " ".join(" ".join(lines).split())
    yield " ".join("".join(line.removesuffix("\r") for line in lines).split())
    plainer = re.sub(r"\\+[nrt]", " ", " ".join(lines)).replace('\\"', '"')
    yield " ".join(plainer.split())
    yield " ".join(html.unescape(plainer).replace("`", "'").split())


def _lines(text: str) -> list[str]:
    return [_TAIL.sub("", _LEAD.sub("", line)) for line in plain(text).translate(_QUOTES).split("\n")]


def _matching(text: str) -> Iterator[tuple[int, Found]]:
    for message in known().values():
        for pattern in message.patterns:
            hit = pattern.search(text)
            if hit:
                yield _fixed(pattern.pattern), Found(message, _names(hit), hit[0])
                break


def _order(one: tuple[int, Found]) -> tuple[bool, int, str]:
    return one[1].message.general, -one[0], one[1].message.id


def _names(hit: re.Match[str]) -> dict[str, str]:
    """Returns the named groups. `node2` is an alternative group for `node`."""
    names: dict[str, str] = {}
    for group, value in hit.groupdict().items():
        if value:
            names.setdefault(group.rstrip("0123456789"), value.strip())
    return names


@cache
def _fixed(pattern: str) -> int:
    """Counts the literal characters of a pattern, as a measure of how specific it is."""
    return len(_SYNTAX.sub("", pattern))


def _with_names(found: list[Found]) -> list[Found]:
    if not found:
        return []
    first = found[0]
    merged = dict(first.names)
    for other in found[1:]:
        if other.message.general and other.message.tool == first.message.tool:
            merged = other.names | merged
    return [Found(first.message, merged, first.text), *found[1:]]


@cache
def _counts(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text.lower()))


@cache
def _rarity() -> dict[str, float]:
    """Returns the weight of each word: the negative logarithm of the share of causes that use it."""
    uses: Counter[str] = Counter()
    for message in known().values():
        uses.update(set(_counts(" ".join(example.text for example in message.examples))))
    return {word: math.log(1 + len(known()) / count) for word, count in uses.items()}


def _cosine(one: Counter[str], other: Counter[str], rarity: dict[str, float]) -> float:
    common = max(rarity.values())
    weights = [{word: rarity.get(word, common) for word in counted} for counted in (one, other)]
    shared = sum(weights[0][word] ** 2 for word in weights[0].keys() & weights[1].keys())
    sizes = [math.sqrt(sum(weight**2 for weight in each.values())) for each in weights]
    return shared / (sizes[0] * sizes[1]) if all(sizes) else 0.0
