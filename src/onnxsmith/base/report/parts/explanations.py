"""Parts of `explain`: a page, a cause, an answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Facts, Part, Text, facts


@dataclass(frozen=True)
class Answer(Part):
    """The answer to `--why`, for one rule at one node."""

    title = "Why"

    rule: str
    where: str
    fired: bool
    reason: str

    def blocks(self) -> Iterator[Block]:
        fired = "fired" if self.fired else "did not fire"
        yield Facts((("rule", self.rule), ("at", self.where), (fired, self.reason)))


@dataclass(frozen=True)
class Advice:
    """One thing that helps. `run` is a command or the name of a Python function, "" if there is none."""

    say: str
    run: str


@dataclass(frozen=True)
class MessageCause(Part):
    """A known cause that a message matched.

    `names` are read from the message: `node`, `op`, `tensor` and so on. `matched` is the recognised part of the
    message. `links` are threads in which users reported it.
    """

    title = "Cause"

    id: str
    tool: str
    what: str
    why: str
    names: dict[str, str]
    matched: str
    helps: tuple[Advice, ...]
    links: tuple[str, ...]

    def blocks(self) -> Iterator[Block]:
        yield Text(self.what)
        yield facts([("message of", self.tool), *self.names.items(), ("recognised by", self.matched)])
        yield Text(self.why)
        yield Text("\n".join(_advice(one) for one in self.helps), verbatim=True)
        yield Text("\n".join(("reported in:", *(f"  {link}" for link in self.links))), verbatim=True)


def _advice(one: Advice) -> str:
    return f"- {one.say}" + (f"\n    {one.run}" if one.run else "")


@dataclass(frozen=True)
class Page(Part):
    """The page of a rule or a problem, as Markdown."""

    title = "Page"

    id: str
    text: str

    def blocks(self) -> Iterator[Block]:
        yield Text(self.text, verbatim=True)
