"""Text of files and of other programs is read and written in a named encoding: Windows' own depends on the country."""

from __future__ import annotations

import ast
from pathlib import Path

import onnxsmith

ROOT = Path(onnxsmith.__file__).parent
TEXT = {"read_text", "write_text"}


def unnamed(source: str) -> list[int]:
    """The lines of calls that take text in the system's encoding."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            words = {word.arg: word.value for word in node.keywords}
            is_text = isinstance(words.get("text"), ast.Constant) or "universal_newlines" in words
            if (is_text or name in TEXT) and "encoding" not in words:
                found.append(node.lineno)
    return found


def test_every_text_has_an_encoding() -> None:
    """`formatter.write_text` of click writes no file."""
    files = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py")}
    found = {
        name: unnamed(source.replace("formatter.write_text(", "formatter.write(")) for name, source in files.items()
    }
    assert not {name: lines for name, lines in found.items() if lines}


def test_a_call_without_an_encoding_is_found() -> None:
    assert unnamed("p.read_text()\np.write_text(x, encoding='utf-8')\nrun(x, text=True)\nrun(x)") == [1, 3]
