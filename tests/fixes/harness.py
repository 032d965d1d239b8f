"""Does what the fix of a problem says, as its reader would, and looks whether it helps.

A case is a command that fails with a problem. What can be pasted is taken from the problem's remedies, so that the case
holds no copy of it: options are added to the command, a command is run and the failed one is run again. For words, the
case gives the command or the files that a reader makes of them, and the part of the fix that says so.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.remedies import Remedy
from onnxsmith.cli import application
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from tests import gallery

Content = str | bytes | Mapping[str, Any] | Callable[[Path], object]
"""What a file holds: text (for `.onnx`: a model in ONNX's text form), bytes, arrays by name (`.npz`), or a function
that writes it."""


@dataclass(frozen=True)
class Case:
    """A command that fails with the problem `id`, and what its reader does then.

    `nth` counts the remedy that is pasted, from 0. `fill` maps words that stand for something (`DATA`) to what the
    reader has. `goes_on` says what follows a pasted command: the failed command again, or nothing, because the pasted
    one does the work; `then` is the failed command as it is after the pasted one, if that wrote a file for it.
    `by_hand` is the command that a reader makes of words, `changes` the files that the reader writes; then `says` are
    the parts of the fix that lead to them.
    """

    id: str
    command: str
    files: Mapping[str, Content] = field(default_factory=dict)
    nth: int = 0
    fill: Mapping[str, str] = field(default_factory=dict)
    goes_on: bool = True
    then: str = ""
    by_hand: str = ""
    changes: Mapping[str, Content] = field(default_factory=dict)
    says: Sequence[str] = ()
    name: str = ""


@dataclass(frozen=True)
class Call:
    """A call in Python that raises the problem `id`, and the call that a reader makes after reading its fix. `says` are
    the parts of the fix that lead to it."""

    id: str
    fails: Callable[[], object]
    works: Callable[[], object]
    says: Sequence[str]
    name: str = ""


_OTHERS = ("python -c ", "printf ", "mkdir ", "cp ", "mv ", "chmod ")
"""Names the commands of other programs that a case carries out."""


def label(one: Case | Call) -> str:
    """The name of a case in the list of tests."""
    return (one.name and f"{one.id}: {one.name}") or one.id


def parameters(cases: Sequence[Case | Call]) -> list[Any]:
    """The cases as parameters of a test."""
    return [pytest.param(one, id=label(one)) for one in cases]


def helps(one: Case | Call, folder: Path) -> None:
    """Fails unless the case fails with its problem, and works after its fix."""
    with gallery.inside(folder, {}):
        if isinstance(one, Call):
            _call(one)
        else:
            _case(one, folder)


def _case(one: Case, folder: Path) -> None:
    _write(one.files, folder)
    found = _problem(one.command, one.id)
    assert found.fix, f"{one.id} has no fix"
    _write(one.changes, folder)
    for command in _next(one, found):
        text, status = _called(command)
        assert status == 0, f"{found}\n\nafter the fix, `{command}` still fails:\n{text}"


def _called(command: str) -> tuple[str, int]:
    """What a command prints, and its exit status. Python runs in this process, programs of the system in a shell."""
    if command.startswith("python -c "):
        before = {path: path.read_bytes() for path in Path.cwd().rglob("*.onnx")}
        exec(compile(shlex.split(command)[2], command, "exec"), {})
        assert all(path.read_bytes() == content for path, content in before.items()), "it overwrites a model"
        return "", 0
    if command.startswith(_OTHERS):
        return gallery.in_bash(command, os.environ)
    return gallery.called(application.main, _split(command))


def _call(one: Call) -> None:
    with pytest.raises(OnnxsmithError) as raised:
        one.fails()
    assert raised.value.problem.id == one.id, str(raised.value)
    _says(raised.value.problem, one.says)
    one.works()


def _problem(command: str, id_: str) -> Problem:
    text, status = gallery.called(application.main, _split(f"{command} --json"))
    assert status, f"`{command}` works"
    begin = text.find('{\n  "schema"')
    assert begin >= 0, text
    data, _ = json.JSONDecoder().raw_decode(text[begin:])
    found = [one for one in data["problems"] if one["id"] == id_]
    assert found, f"{id_} is not among the problems:\n{text}"
    known = {name: found[0][name] for name in ("id", "what", "where", "why", "fix")}
    return Problem(**known)


def _next(one: Case, found: Problem) -> list[str]:
    if one.by_hand or one.changes:
        _says(found, one.says)
        return [one.by_hand or one.command]
    remedy = found.remedies[one.nth]
    pasted = _filled(remedy, one.fill)
    if remedy.kind == "option":
        return [f"{one.command} {pasted}"]
    assert remedy.kind == "command", f"nothing can be pasted: {remedy}"
    if not pasted.startswith(("onnxsmith ", *_OTHERS)):
        pytest.fail(f"a command of another program is not run here: {pasted}")
    first, divider, second = pasted.partition("; onnxsmith ")
    pasted_commands = [first, f"onnxsmith {second}"] if divider else [pasted]
    return [*pasted_commands, one.then or one.command] if one.goes_on else pasted_commands


def _says(found: Problem, parts: Sequence[str]) -> None:
    assert parts, "name the parts of the fix that lead to what is done by hand"
    missing = [part for part in parts if part not in found.fix]
    assert not missing, f"the fix does not say {missing}:\n{found}"


def _filled(remedy: Remedy, fill: Mapping[str, str]) -> str:
    text = remedy.text
    for word, value in fill.items():
        assert word in text, f"{word!r} is not in {text!r}"
        text = text.replace(word, value)
    return text


def _split(command: str) -> list[str]:
    words = shlex.split(command)
    assert words[0] == "onnxsmith", command
    return words[1:]


def _write(files: Mapping[str, Content], folder: Path) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if callable(content):
            content(path)
        elif isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, Mapping):
            np.savez(path, **content)
        elif path.suffix == ".onnx":
            save(from_text(content), path)
        else:
            path.write_text(content)
