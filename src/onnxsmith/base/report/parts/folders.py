"""Describes the comparison of a folder of graphs with its original: its graphs, its other files, generated tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Table, Text, Tone
from onnxsmith.base.words import first_few, several


@dataclass(frozen=True)
class FolderPart:
    """A graph that was compared by itself. `calls` counts the inputs; `difference` is the largest one, relative to the
    scale of its output; `allowed` is the largest that rounding explains there."""

    name: str
    role: str
    calls: int
    output: str
    difference: float
    allowed: float
    verdict: str


@dataclass(frozen=True)
class FolderParts(Part):
    """The graphs of a folder, each compared by itself on tensors of the original's run."""

    title = "Graphs"
    recorded = ("layout", "parts", "unread")

    layout: str
    parts: tuple[FolderPart, ...]
    unread: tuple[str, ...] = ()
    """The graphs of the folder that were not compared."""

    def line(self) -> str:
        wrong = [one.name for one in self.parts if one.verdict != "equal"]
        names = first_few(wrong or [one.name for one in self.parts], 4)
        return f"{self.layout}: {names}{' not equal' if wrong else ' equal'}"

    def blocks(self) -> Iterator[Block]:
        yield Table(
            ("graph", "role", "calls", "worst output", "difference", "allowed", "verdict"),
            tuple(
                (
                    one.name,
                    one.role,
                    str(one.calls),
                    one.output,
                    f"{one.difference:.2g}",
                    f"{one.allowed:.2g}",
                    one.verdict,
                )
                for one in self.parts
            ),
            right=(2, 4, 5),
            is_key=True,
        )
        if self.unread:
            yield Text(f"not compared: {first_few(self.unread, 5)}", Tone.WARN)


@dataclass(frozen=True)
class FolderFile:
    """A file beside the graphs. `verdict` is `equal`, `DIFFERENT` or `not compared`."""

    name: str
    verdict: str
    reason: str = ""


@dataclass(frozen=True)
class FolderFiles(Part):
    """The files of the tokenizer and the configuration, compared with those of the original."""

    title = "Other files"
    recorded = ("files",)

    files: tuple[FolderFile, ...]

    def line(self) -> str:
        wrong = [one.name for one in self.files if one.verdict == "DIFFERENT"]
        if wrong:
            return f"DIFFERENT: {first_few(wrong, 3)}"
        equal = [one.name for one in self.files if one.verdict == "equal"]
        return f"{first_few(equal, 3)} equal" if equal else "no tokenizer was compared"

    def blocks(self) -> Iterator[Block]:
        yield Table(
            ("file", "verdict", "reason"),
            tuple((one.name, one.verdict, one.reason) for one in self.files),
            is_key=True,
        )


@dataclass(frozen=True)
class GeneratedText:
    """A generated text. `tokens` are those of the original, `found` those of the folder up to the first difference.
    `first` is the number of the first other token, from 1; 0 if there is none. `near` says that both tokens are as
    likely as rounding can tell."""

    tokens: tuple[int, ...]
    found: tuple[int, ...]
    first: int = 0
    near: bool = False


@dataclass(frozen=True)
class GeneratedTokens(Part):
    """Texts that both generate, each token the likeliest one. `way` names the graphs. `faults` are the faults that were
    planted in the calls, each with whether the comparison noticed it."""

    title = "Generated tokens"
    recorded = ("way", "texts", "faults")

    way: str
    texts: tuple[GeneratedText, ...]
    faults: tuple[tuple[str, bool], ...] = ()

    @property
    def differs(self) -> bool:
        """Whether a text differs by more than rounding explains."""
        return any(one.first and not one.near for one in self.texts)

    def line(self) -> str:
        counts = several(sum(len(one.tokens) for one in self.texts), "token")
        wrong = [one for one in self.texts if one.first]
        return f"{counts} of {several(len(self.texts), 'text')}: " + (
            f"DIFFERENT from token {min(one.first for one in wrong)} on" if wrong else "equal"
        )

    def blocks(self) -> Iterator[Block]:
        yield Table(
            ("text", "original", "folder", "verdict"),
            tuple(
                (
                    str(at),
                    " ".join(map(str, one.tokens)),
                    " ".join(map(str, one.found)),
                    "equal" if not one.first else f"token {one.first} {'is as likely' if one.near else 'DIFFERENT'}",
                )
                for at, one in enumerate(self.texts, 1)
            ),
            is_key=True,
        )
        missed = [name for name, seen in self.faults if not seen]
        if missed:
            yield Text(f"CANNOT TELL: these faults in the calls would not be noticed: {'; '.join(missed)}", Tone.WARN)
        elif self.faults:
            yield Text(f"the comparison would notice these faults in the calls: {'; '.join(dict(self.faults))}")
