"""Finds the causes of an error message, in whatever form the message was pasted."""

from __future__ import annotations

import html
import math
import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from onnxsmith.base.words import pasted
from onnxsmith.exporter.causes._message_text import plain

_PLACE = re.compile(r"\{(\w+)(?:\|([^}]*))?\}")


@dataclass(frozen=True)
class Help:
    """Describes a remedy. `run` is a command, or the name of a Python function; "" if there is none. `when` says which
    models it can help: `symbolic-size` or `computed-operand` (an operand of the node is computed); "" for all. `patch`
    has the lines of the patch file that the command reads; "" if it reads none."""

    say: str
    run: str
    when: str = ""
    patch: str = ""

    def command(self, names: Mapping[str, str], model: str = "model.onnx") -> str:
        """Fills in the names and the path of the model. A command that reads a patch file begins with a command that
        writes this file."""
        words = [filled(word, names) for word in shlex.split(self.run)]
        run = " ".join(pasted(model if word == "model.onnx" else word) for word in words)
        if not self.patch:
            return run
        quoted = {name: value.replace("\\", "\\\\").replace('"', '\\"') for name, value in names.items()}
        lines = " ".join(pasted(filled(line, quoted)) for line in self.patch.strip().splitlines())
        return f"printf '%s\\n' {lines} > {next(word for word in words if word.endswith('.toml'))}; {run}"


@dataclass(frozen=True)
class Example:
    """Holds a message as users reported it at `link`, and the names that the pattern has to read from the message."""

    link: str
    text: str
    names: Mapping[str, str]


@dataclass(frozen=True)
class Message:
    """Describes the messages with one cause.

    `id` is `tool/cause`, the path of the file. `what` and the commands have placeholders for names from the message:
    `{op|an operator}` is the name `op`, or the words after the bar if there is no such name. A `general` message only
    says where a tool stopped; another cause that matches the same text is the better answer. `constant_operand` is the
    index of the operand of which the message says that it is a constant.
    """

    id: str
    what: str
    why: str
    patterns: tuple[re.Pattern[str], ...]
    helps: tuple[Help, ...]
    examples: tuple[Example, ...]
    general: bool
    constant_operand: int | None = None

    @property
    def tool(self) -> str:
        """Returns the tool that writes the messages."""
        return self.id.partition("/")[0]

    @property
    def links(self) -> tuple[str, ...]:
        """Returns the threads in which users reported the messages."""
        return tuple(dict.fromkeys(example.link for example in self.examples))


@cache
def known() -> dict[str, Message]:
    """Returns all messages by id, sorted."""
    return {message.id: message for message in sorted(_read(), key=lambda one: one.id)}


def filled(template: str, names: Mapping[str, str]) -> str:
    """Fills names into the placeholders of a template."""
    text = _PLACE.sub(lambda place: names.get(place[1]) or place[2] or "", template)
    return re.sub(r" +", " ", text).replace(" ,", ",").strip()


def page(message: Message) -> str:
    """Returns the message as Markdown, like the page of a problem."""
    lines = [f"# {message.id}: {filled(message.what, {})}", "", "## The message", ""]
    lines += [f"    {line}" for line in message.examples[0].text.strip().splitlines()]
    lines += ["", "## Why", "", message.why, "", "## What helps", ""]
    for one in message.helps:
        lines.append(f"- {one.say}" + (f" `{one.command({})}`" if one.run else ""))
    lines += ["", "## Reported in", "", *(f"- {link}" for link in message.links)]
    return "\n".join(lines)


def _read() -> Iterator[Message]:
    for tool in (files("onnxsmith.viewer") / "messages").iterdir():
        if tool.is_dir():
            yield from (_message(tool, file) for file in tool.iterdir() if file.name.endswith(".toml"))


def _message(tool: Traversable, file: Traversable) -> Message:
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    return Message(
        id=f"{tool.name}/{file.name.removesuffix('.toml')}",
        what=data["what"],
        why=data["why"],
        patterns=tuple(re.compile(pattern, re.IGNORECASE) for pattern in data["patterns"]),
        helps=tuple(Help(**{"run": "", **one}) for one in data["help"]),
        examples=tuple(Example(one["link"], one["text"], one.get("names", {})) for one in data["example"]),
        general=data.get("general", False),
        constant_operand=data.get("constant_operand"),
    )


_LEAD = re.compile(
    r"^(?:E\s{2,}|(?:\s*[>|│❱]\s)+|[\w.-]+\s+\|\s|#\d+ \d+\.\d+ "
    r"|\[?\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-]\d\d:?\d\d)?\]?:?\s+|\[\s?(?:ERROR|WARNING|INFO)\s?\]\s*)+"
)
"""Matches prefixes of lines: from pytest, quotations, frames and docker, and times and log levels."""
_TAIL = re.compile(r"\s*│\s*$")
_QUOTES = str.maketrans("\u2018\u2019\u201a\u201b\u00b4\u201c\u201d\u201e", "'" * 5 + '"' * 3)
"""Replaces quotation marks that word processors, forums and compilers use instead of ' and "."""
_MISSING = (
    re.compile(
        r"cannot import name '?(?P<name>\w+)'? from (?:partially initialized module )?'?(?P<module>\w+(?:\.\w+)*)'?"
    ),
    re.compile(r"No module named '?(?P<module>\w+(?:\.\w+)*)\.(?P<name>\w+)'?"),
    re.compile(r"(?<!module )'(?P<module>\w+(?:\.\w+)+)' has no attribute '(?P<name>\w+)'"),
    re.compile(r"(?P<module>\b\w+(?:\.\w+)*) has no (?:attribute|member|function) '?(?P<name>\w+)'?"),
)
"""Matches the words in which Python and its users say that a module lacks a name."""
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


_KEPT = 200
"""Sets the characters that are kept at both ends of a longer word. A choice: no message names anything longer."""
_LONG = re.compile(rf"\S{{{2 * _KEPT + 1},}}")
"""Matches a word whose middle is left out: a pattern looks for its end from each of its characters."""


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
    escaped `\n` replaced, with HTML unescaped and one kind of quotes, and with one wording of a missing name."""
    lines = _lines(text)
    joined = " ".join("".join(line.removesuffix("\r") for line in lines).split())
    yield " ".join(" ".join(lines).split())
    yield joined
    plainer = re.sub(r"\\+[nrt]", " ", " ".join(lines)).replace('\\"', '"')
    yield " ".join(plainer.split())
    plainest = " ".join(html.unescape(plainer).replace("`", "'").split())
    yield plainest
    yield from (said for one in (plainest, joined) if (said := _one_wording(one)) != one)


def _one_wording(text: str) -> str:
    """Returns the text with every missing name said as `module 'M' has no attribute 'N'`."""
    for form in _MISSING:
        text = form.sub(r"module '\g<module>' has no attribute '\g<name>'", text)
    return text


def _lines(text: str) -> list[str]:
    text = _LONG.sub(lambda word: f"{word[0][:_KEPT]} {word[0][-_KEPT:]}", text)
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
