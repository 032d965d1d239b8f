"""Reads the known error messages of other tools, with their causes. Each cause has a file in `viewer/messages/`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

_PLACE = re.compile(r"\{(\w+)(?:\|([^}]*))?\}")


@dataclass(frozen=True)
class Help:
    """Describes a remedy. `run` is a command, or the name of a Python function; "" if there is none."""

    say: str
    run: str


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
    says where a tool stopped; another cause that matches the same text is the better answer.
    """

    id: str
    what: str
    why: str
    patterns: tuple[re.Pattern[str], ...]
    helps: tuple[Help, ...]
    examples: tuple[Example, ...]
    general: bool

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
        lines.append(f"- {one.say}" + (f" `{filled(one.run, {})}`" if one.run else ""))
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
        helps=tuple(Help(one["say"], one.get("run", "")) for one in data["help"]),
        examples=tuple(Example(one["link"], one["text"], one.get("names", {})) for one in data["example"]),
        general=data.get("general", False),
    )
