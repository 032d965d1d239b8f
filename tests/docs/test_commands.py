"""What the documents tell a reader to do is done: their commands, their Python, in order, in a copy of the tree."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = [str(path.relative_to(ROOT)) for path in ROOT.glob("examples/*/README.md")]
DOCUMENTS = ["README.md", "CONTRIBUTING.md", "docs/building.md", "docs/editing.md", "docs/samples.md", *EXAMPLES]

SKIPPED = ("make ", "pip install ", "git ")
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
        elif step is not None and line.strip() != ANYTHING:
            step.shown.append(line)
    if step:
        yield step


def differs(shown: str, printed: str) -> str:
    """The first line of `shown` that was not printed, numbers that are close to each other being the same."""
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    return next((line for line in shown.splitlines() if not any(_agree(" ".join(line.split()), x) for x in lines)), "")


def _agree(shown: str, printed: str) -> bool:
    """Whether a line says the same: `…` stands for anything without a space, decimals may differ by `TOLERANCE`."""
    pattern = NUMBER.sub("\0", shown)
    pattern = re.escape(pattern).replace("\0", r"([-+]?\d+(?:\.\d+)?)").replace(re.escape(ANYTHING), r"\S*")
    found = re.fullmatch(pattern, printed)
    if found is None:
        return False
    pairs = zip(NUMBER.findall(shown), found.groups(), strict=True)
    return all(a == b or ("." in a and abs(float(a) - float(b)) <= TOLERANCE) for a, b in pairs)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the tree, without what git ignores."""
    ignored = shutil.ignore_patterns(".git", ".venv*", ".*_cache", "__pycache__", ".hypothesis", "*.egg-info", "dist")
    return Path(shutil.copytree(ROOT, tmp_path / "tree", ignore=ignored))


@pytest.fixture
def environment(tmp_path: Path, tree: Path) -> dict[str, str]:
    """`python` and `onnxsmith` are this Python's, with the sources of the copy."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, arguments in (("python", ""), ("onnxsmith", " -m onnxsmith")):
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{arguments} "$@"\n')
        (folder / name).chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(tree / "src"), "COLUMNS": "120"}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_does_what_it_says(name: str, tree: Path, environment: dict[str, str]) -> None:
    done = 0
    for step in steps((tree / name).read_text(encoding="utf-8")):
        where = f"{name}, line {step.line}"
        if step.kind == "file":
            target = tree / step.path
            assert not target.exists(), f"{where}: {target.name} is there already"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(step.text, encoding="utf-8")
            continue
        if step.kind == "command" and step.text.startswith(SKIPPED):
            continue
        command = ["bash", "-c", step.text] if step.kind == "command" else [sys.executable, "-c", step.text]
        found = subprocess.run(
            command, cwd=tree, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        assert found.returncode == 0, f"{where}: {step.text}\n{found.stdout}{found.stderr}"
        missing = differs("\n".join(step.shown), found.stdout) if step.kind == "command" else ""
        assert not missing, f"{where}: not printed: {missing}\n{found.stdout}"
        done += 1
    assert done, f"{name} tells nobody to do anything"


# The test's own parts


def test_commands_are_found_and_optional_ones_left_out() -> None:
    document = "# A\n```console\n$ make x\n$ one\nout\n…\nmore\n```\n## B (optional)\n```console\n$ two\n```\n"
    document += "### C\n```console\n$ three\n```\n## D\n```python\nfour\n```\n`a/b.py`:\n\n```python\nfive\n```\n"
    found = [(step.kind, step.text, step.shown, step.path) for step in steps(document)]
    assert found == [
        ("command", "make x", [], ""),
        ("command", "one", ["out", "more"], ""),
        ("python", "four\n", [], ""),
        ("file", "five\n", [], "a/b.py"),
    ]


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("network 28.19 dB", "network 28.23 dB", True),
        ("network 28.19 dB", "network 28.29 dB", False),
        ("on 10 inputs", "on 11 inputs", False),
        ("gain: +1.12 dB", "gain:  +1.10 dB  ", True),
        ("a → …/b.onnx: done", "a → /x/y/b.onnx: done", True),
        ("a → …/b.onnx: done", "a → /x/y/b.onnx: failed", False),
        ("up.png: 200x133", "up.png: 200x134", False),
    ],
)
def test_lines_are_held_to_each_other(shown: str, printed: str, same: bool) -> None:
    assert (differs(shown, f"first\n{printed}\nlast") == "") is same
