"""Tries the fix of a failed command before the user reads it.

A fix that names options or a command of onnxsmith is carried out with the same arguments. What it writes goes to a
folder that is removed. It gets the time that the failed command took: a trial must not cost more than what it saves.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from onnxsmith.base import folders, interrupts
from onnxsmith.base.options import called
from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.remedies import Remedy
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli import command_words
from onnxsmith.cli.commands.base import Command

T = TypeVar("T")
Parse = Callable[[type[Command], list[str]], Mapping[str, Any]]
"""Parses words with the options of a command. It returns the values that the words give."""

_LEAST_SECONDS = 1.0
"""Limits trials to commands that took longer. A choice: below it, reading the message takes longer than another try."""
_MOST_TRIALS = 2
"""Limits the trials for one failure. Each may take as long as the failed command."""
_UNTRIED = re.compile(r"--(?:no-verify|write-unsure|as-traced|allow-slower|trust-remote-code)\b")
"""Matches options that switch a check off, of which a trial would show nothing, and the option that runs code of a
stranger, which only the user may give."""
_BLANK = re.compile(r"[A-Z]{3,}|…|\{")
"""Marks words that stand for something that the user has to fill in: `DATA`, `FILE`."""


def tried(found: Problem, command: Command, seconds: float, parse: Parse) -> Problem:
    """Returns the problem with what the trials of its remedies showed: those that help are marked, those that end in
    the same problem are no longer offered. `seconds` is the time that the failed command took."""
    if seconds < _LEAST_SECONDS:
        return found
    helps: list[str] = []
    useless: list[str] = []
    for one in [one for one in found.remedies if _is_complete(one) and not one.tried][:_MOST_TRIALS]:
        try:
            new = changed(command, one, parse, f"{found.what} {found.where}")
        except (OnnxsmithError, ValueError, SystemExit):
            continue
        if new is None:
            continue
        outcome = _outcome(new, seconds)
        if outcome is True:
            helps.append(one.text)
        elif outcome == found.id:
            useless.append(one.words)
    if not helps and not useless:
        return found
    if not useless:
        return dataclasses.replace(found, tried=(*found.tried, *helps))
    kept = [one.words for one in found.remedies if one.words not in useless]
    return dataclasses.replace(found, fix="; or ".join(kept), tried=(*found.tried, *helps))


def _is_complete(one: Remedy) -> bool:
    return one.kind in ("option", "command") and not _BLANK.search(one.text) and not _UNTRIED.search(one.text)


def changed(command: Command, one: Remedy, parse: Parse, said: str = "") -> Command | None:
    """Returns the command as the remedy asks for it; None if the remedy is another verb's, or gives a value that must
    be filled in. A remedy that is a whole command has none of the options that were given. An option takes the place of
    a value that the problem names (`said`)."""
    words = shlex.split(one.text)
    if one.kind == "command":
        verb = ["onnxsmith", *command.name.split()]
        if words[: len(verb)] != verb:
            return None
        given = parse(type(command), words[len(verb) :])
        return _replaced(_without_options(command), given) if given else None
    given = parse(type(command), words)
    return _replaced(command, given, more=True, said=said) if given else None


def _without_options(settings: T) -> T:
    """Returns the dataclass with the defaults of all options, and with the arguments as they are."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(settings):  # type: ignore[arg-type]
        if field.metadata["kind"] == "group":
            values[field.name] = _without_options(getattr(settings, field.name))
        elif field.default is not dataclasses.MISSING:
            values[field.name] = field.default
    return dataclasses.replace(settings, **values)  # type: ignore[type-var]


def _replaced(settings: T, given: Mapping[str, Any], *, more: bool = False, said: str = "") -> T:
    """Returns the dataclass with other values for options. With `more`, an option that may be repeated gets one more,
    in the place of those that the text `said` names."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(settings):  # type: ignore[arg-type]
        held = getattr(settings, field.name)
        if field.metadata["kind"] == "group":
            values[field.name] = _replaced(held, given, more=more, said=said)
        elif called(field) in given:
            value = given[called(field)]
            others = tuple(one for one in held if not _is_named(one, said)) if isinstance(held, tuple) else ()
            values[field.name] = (*others, *value) if more and isinstance(held, tuple) else value
    return dataclasses.replace(settings, **values)  # type: ignore[type-var]


def _is_named(value: Any, said: str) -> bool:
    """Whether a text names the value between spaces, or the value or its part before `=` in quotation marks."""
    if not isinstance(value, str):
        return False
    is_word = re.search(rf"(?<!\S){re.escape(value)}(?!\S)", said) is not None
    return is_word or any(repr(part) in said for part in (value, value.partition("=")[0]))


def _outcome(command: Command, seconds: float) -> bool | str:
    """Returns True if the command works, the id of the problem that stops it, or "" if that is not known in time."""
    with folders.temporary() as folder:
        try:
            with interrupts.limited(seconds):
                report = elsewhere(command, folder).run()
        except OnnxsmithError as error:
            return error.problem.id
        except (Exception, interrupts.TimeUp):  # noqa: BLE001 — a trial must not replace the error that it is about
            return ""
    if report.verdict is Verdict.FAILED:
        return report.problems[0].id if report.problems else ""
    return report.verdict.exit_code == 0


def elsewhere(command: Command, folder: Path) -> Command:
    """Returns the command with its outputs in another folder: under the same names, each in a folder of its option."""
    moved = {option: folder / option / Path(path).name for option, path in command_words.written(command).items()}
    for path in moved.values():
        path.parent.mkdir(parents=True, exist_ok=True)
    return _replaced(command, {option: str(path) for option, path in moved.items()})
