"""The commands, programs and files that a document tells its reader to use, and what it says they print."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

OPTIONAL = "(optional)"
ANYTHING = "…"
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?![\w.])")
TOLERANCE = 0.05
"""How far a printed decimal may be from the document's: other machines round differently. In dB it is not seen."""


@dataclass
class Step:
    """A command with the lines shown below it, a program, or a file to write."""

    kind: str
    text: str
    line: int
    shown: list[str] = field(default_factory=list)
    path: str = ""


@dataclass
class Block:
    """A fenced block, and the path in the line above it (`` `path/of/file.py`: ``), if there is one."""

    language: str
    path: str
    line: int
    lines: list[str] = field(default_factory=list)


def steps(document: str) -> Iterator[Step]:
    """The steps of a document; nothing below a heading that says "(optional)"."""
    for block in blocks(document):
        text = "\n".join(block.lines) + "\n"
        if block.path:
            yield Step("file", text, block.line, path=block.path)
        elif block.language == "console":
            yield from _commands(block.lines, block.line)
        elif block.language == "python":
            yield Step("python", text, block.line)


def blocks(document: str) -> Iterator[Block]:
    """The fenced blocks, but those below an optional heading."""
    block: Block | None = None
    before, depth = "", 0
    for number, line in enumerate(document.splitlines(), 1):
        heading = re.match(r"(#+) .*", line)
        if line.startswith("```") and block is None:
            named = re.fullmatch(r"`(\S+\.\w+)`:", before)
            block = Block(line[3:], named[1] if named else "", number + 1)
        elif line.startswith("```") and block is not None:
            if not depth:
                yield block
            block, before = None, ""
        elif block is not None:
            block.lines.append(line)
        elif heading and (not depth or len(heading[1]) <= depth):
            depth = len(heading[1]) if OPTIONAL in line else 0
        elif line:
            before = line


def _commands(block: list[str], start: int) -> Iterator[Step]:
    step: Step | None = None
    for number, line in enumerate(block, start):
        if line.startswith("$ "):
            if step:
                yield step
            step = Step("command", line[2:], number)
        elif step is not None:
            step.shown.append(line)
    if step:
        yield step


def missing(shown: list[str], printed: str) -> str:
    """The first line of `shown` that was not printed, in any order. Numbers that are close count as equal."""
    lines = [_plain(line) for line in printed.splitlines()]
    wanted = (line for line in shown if line.strip() != ANYTHING)
    return next((line for line in wanted if not any(agree(_plain(line), found) for found in lines)), "")


def differs(shown: list[str], printed: str) -> str:
    """The first line of `shown` that was not printed at its place.

    All lines follow each other, from the first that is printed to the last; a line `…` stands for any number of lines.
    Blank lines do not count.
    """
    lines = [_plain(line) for line in printed.splitlines() if line.strip()]
    places = {0}  # how many printed lines the shown lines so far may be
    for line in [_plain(line) for line in shown if line.strip()]:
        if line == ANYTHING:
            places = set(range(min(places), len(lines) + 1))
        else:
            places = {place + 1 for place in places if place < len(lines) and agree(line, lines[place])}
        if not places:
            return line
    return "" if len(lines) in places else f"nothing after this, but there is: {lines[max(places)]}"


def _plain(line: str) -> str:
    return " ".join(line.split())


def agree(shown: str, printed: str) -> bool:
    """Whether a line says the same: `…` stands for anything without a space, decimals may differ by `TOLERANCE`."""
    pattern = NUMBER.sub("\0", shown)
    pattern = re.escape(pattern).replace("\0", r"([-+]?\d+(?:\.\d+)?)").replace(re.escape(ANYTHING), r"\S*")
    found = re.fullmatch(pattern, printed)
    if found is None:
        return False
    pairs = zip(NUMBER.findall(shown), found.groups(), strict=True)
    return all(a == b or ("." in a and abs(float(a) - float(b)) <= TOLERANCE) for a, b in pairs)


def environment(bin_folder: Path, sources: Path) -> dict[str, str]:
    """Variables in which `python`, `onnxsmith` and `jupyter` are this Python's, with these sources. There are no lines
    of progress, because they depend on the machine."""
    bin_folder.mkdir()
    commands = (("python", ""), ("onnxsmith", " -m onnxsmith"), ("jupyter", " -m jupyter"))
    for name, arguments in commands:
        (bin_folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{arguments} "$@"\n')
        (bin_folder / name).chmod(0o755)
    path = f"{bin_folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(sources), "COLUMNS": "120", "ONNXSMITH_PROGRESS": "none"}
