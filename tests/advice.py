"""What the fix of a problem may name: verbs and options that exist, commands that stand in backquotes."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import typer

from onnxsmith.base.remedies import Remedy, remedies
from onnxsmith.cli import application

_BARE = re.compile(r"(?<![`\w./-])(?:pip (?:un)?install|onnxsmith (?:%s)) ")
_QUOTED = re.compile(r"`[^`]*`")
FOR_OTHER_VERBS = ("doctor", "view", "save")
"""Rooms of problems whose fixes are about other verbs than the one that reports them."""
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


@cache
def options() -> dict[str, frozenset[str]]:
    """The options of each verb, as they are typed. A verb in a group has two words; the group has those of its verbs: a
    fix in the room of the group is about one of them."""

    def walked(group: Any, path: str = "") -> Iterator[tuple[str, frozenset[str]]]:
        for name, command in group.commands.items():
            inner = dict(walked(command, f"{name} ")) if hasattr(command, "commands") else {}
            typed = (text for one in command.params for text in (*one.opts, *one.secondary_opts))
            yield f"{path}{name}", frozenset(typed).union({"--help", "-h"}, *inner.values())
            yield from inner.items()

    return dict(walked(typer.main.get_command(application.app)))


def faults(fix: str, verb: str = "") -> list[str]:
    """What a fix names that does not exist: a verb, an option of a verb, or of `verb` if the fix names none."""
    found = [fault for one in remedies(fix) for fault in _faults(one, verb)]
    bare = re.compile(_BARE.pattern % "|".join(options())).search(_QUOTED.sub("", fix))
    return found + ([f"a command without backquotes: {bare[0]}"] if bare else [])


def _faults(one: Remedy, verb: str) -> Iterator[str]:
    if one.kind == "command" and one.text.startswith("onnxsmith "):
        words = _words(one.text)
        named = words[1] if len(words) > 1 else ""
        if " ".join(words[1:3]) in options():
            named = " ".join(words[1:3])
        if named not in options():
            if not named.startswith(("-", "…")):
                yield f"no verb {named!r}: {one.text}"
            return
        verb, text = named, one.text
    elif one.kind != "command":
        text = _QUOTED.sub("", one.words)
    else:
        return
    everywhere = frozenset().union(*options().values())
    for option in _OPTION.findall(re.sub(r"'[^']*'|\"[^\"]*\"", "", text)):
        if option not in options().get(verb, everywhere):
            yield f"{verb or 'no verb'} has no option {option}: {one.words}"


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def written(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Place, id and text of each fix in the source. A part that is computed is written X."""
    for file in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call):
                for keyword in node.keywords:
                    if keyword.arg == "fix" and (text := _text(keyword.value)):
                        first = _text(node.args[0]) if node.args else ""
                        yield f"{file.relative_to(folder)}:{keyword.value.lineno}", first, text


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) if isinstance(part, ast.Constant) else "X" for part in node.values)
    if isinstance(node, ast.BinOp):
        return _text(node.left) + _text(node.right)
    if isinstance(node, ast.IfExp):
        return _text(node.body) + "; or " + _text(node.orelse)
    return ""


class Watch:
    """Collects the faults in the fixes of every problem that a command of this process reports."""

    def __init__(self, patch: Any) -> None:
        self.found: list[str] = []
        real = application._report

        def watched(command: Any, *arguments: Any, **more: Any) -> Any:
            report = real(command, *arguments, **more)
            for one in report.problems:
                verb = "" if one.id.partition("/")[0] in FOR_OTHER_VERBS else command.name
                self.found += [f"{one.id}: {fault}" for fault in faults(one.fix, verb if verb in options() else "")]
            return report

        patch.setattr(application, "_report", watched)
