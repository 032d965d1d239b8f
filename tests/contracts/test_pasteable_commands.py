"""Commands in messages can be pasted: they hold real names, or the sentence says what stands for what."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import onnxsmith

SOURCE = Path(onnxsmith.__file__).parent
FILLED = {"MODEL", "FIRST", "SECOND", "REFERENCE", "CANDIDATE", "OUT"}
"""The command line puts its own files in the place of these."""
COMMAND = re.compile(r"`(?:onnxsmith|dask|echo|python) [^`]*`")
WORD = re.compile(r"\b[A-Z][A-Z_]+\b")


def texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yields the line and the text of each string but the docstrings; `{}` stands for a value."""
    skipped = {one.value for one in ast.walk(tree) if isinstance(one, ast.Expr)}
    skipped |= {part for one in ast.walk(tree) if isinstance(one, ast.JoinedStr) for part in one.values}
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.JoinedStr):
            parts = [str(one.value) if isinstance(one, ast.Constant) else "{}" for one in node.values]
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def placeholders(text: str) -> set[str]:
    """The words in commands of a text that a reader would have to replace, and of which nothing is said."""
    inside = {word for command in COMMAND.findall(text) for word in WORD.findall(command)}
    return inside - FILLED - set(WORD.findall(COMMAND.sub("", text)))


def test_commands_hold_real_names_or_explain_their_placeholders() -> None:
    found = []
    for file in sorted(SOURCE.rglob("*.py")):
        if "cli/commands" in file.as_posix():  # help and examples, which have the names of the arguments
            continue
        for line, text in texts(ast.parse(file.read_text(encoding="utf-8"))):
            found += [f"{file.relative_to(SOURCE)}:{line}: {word}" for word in sorted(placeholders(text))]
    assert not found


def test_a_placeholder_is_noticed() -> None:
    assert placeholders("try `onnxsmith replace MODEL 'Det(x)' 'OPERATOR(x)'`") == {"OPERATOR"}
    assert placeholders("`onnxsmith rename MODEL a NEW`, with the new name in the place of NEW") == set()
