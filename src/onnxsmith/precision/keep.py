"""Reads and writes a keep-list: the names of the nodes that stay in float32, one on each line, or as JSON.

A line that begins with `#` is a comment. `*` in a name stands for any characters. A name that would be misread is
written as a JSON string. `weights-alone: ` before a name means that the layer's weights become narrow, its activations
do not; `quantize --to int8` takes that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from onnxsmith.problem import OnnxsmithError, problem

ALONE = "weights-alone: "
"""Before the name of a layer whose weights alone become narrow."""


def text(names: Sequence[str], to: str, *, as_json: bool = False) -> str:
    """The file's content."""
    if as_json:
        return json.dumps({"to": to, "keep": list(names)}, ensure_ascii=False, indent=2) + "\n"
    head = f"# nodes that stay in float32 while the rest of the model is {to}\n"
    return head + "".join(f"{_line(name)}\n" for name in names)


def read(path: str | Path) -> tuple[str, ...]:
    """Reads the names from a keep-list.

    Raises:
        OnnxsmithError: `input/unreadable` without such a file, `bisect/keep-list` if it is no keep-list.
    """
    file = Path(path)
    if not file.is_file():
        raise problem(
            "input/unreadable",
            "there is no such keep-list" if not file.exists() else "the keep-list is no file",
            where=str(path),
            why="a keep-list is a file with the name of a node on each line",
            fix="correct the path; `quantize --keep-list FILE` and `bisect -o FILE` write one",
        )
    try:
        content = file.read_text(encoding="utf-8")
        if file.suffix == ".json":
            return _names(_listed(json.loads(content)))
        lines = [line.strip() for line in content.split("\n")]
        return _names([_name(line) for line in lines if line and not line.startswith("#")])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise unreadable(file, str(error)) from error


def _listed(content: object) -> object:
    """The names in a JSON keep-list."""
    if isinstance(content, dict) and "keep" in content:
        return content["keep"]
    if isinstance(content, dict) and content and all(isinstance(axes, dict) for axes in content.values()):
        raise ValueError(
            "it is what `onnxsmith prune --keep-list` wrote: the indices that stayed of each weight, for "
            "`onnxsmith.shrink`; it names no layers to keep"
        )
    raise ValueError('it has no list "keep" of names')


def matching(pattern: str, names: Iterable[str]) -> set[str]:
    """The names that an entry of a keep-list means: the name itself, or those that fit it, where `*` stands for any
    characters."""
    return {name for name in names if name == pattern or fnmatchcase(name, pattern)}


def unreadable(file: Path, why: str) -> OnnxsmithError:
    """The problem of a file that is no keep-list."""
    return problem(
        "bisect/keep-list",
        "this file is not a keep-list",
        where=str(file),
        why=why,
        fix='write the name of a node on each line, or {"keep": ["name", …]} into a .json file',
    )


def _names(found: object) -> tuple[str, ...]:
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise ValueError("the names are not a list of strings")
    return tuple(found)


def bare(entry: str) -> str:
    """The name or pattern of an entry, without `weights-alone: `."""
    return entry.removeprefix(ALONE)


def _line(name: str) -> str:
    if name.startswith(ALONE):
        return ALONE + _line(bare(name))
    plain = name == name.strip() and name.isprintable() and name and name[0] not in '#"'
    return name if plain else json.dumps(name)


def _name(line: str) -> str:
    if line.startswith(ALONE):
        return ALONE + _name(bare(line).strip())
    return str(json.loads(line)) if line.startswith('"') else line
