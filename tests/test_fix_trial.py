"""Fixes that are tried before they are offered: with the options of the command, elsewhere, and within its time."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from onnxsmith.base import rooms
from onnxsmith.base.options import argument, flag, option
from onnxsmith.base.problem import Problem, problem
from onnxsmith.base.remedies import Remedy
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli import application, fix_trial
from onnxsmith.cli.application import _given
from onnxsmith.cli.commands.base import Command
from onnxsmith.cli.commands.simplify import Simplify


@dataclass(frozen=True)
class Fragile(Command):
    """Works with --force or with --size 3; writes its output first."""

    name = "fragile"
    model: str = argument("a model")
    output: str = option("the file to write", default="", writes=True)
    size: tuple[str, ...] = option("a size", default=())
    force: bool = flag("work")
    wait: float = option("seconds", default=0.0)
    against: str = option("a file that is not there", default="")

    def run(self) -> Report:
        Path(self.output).write_text("written")
        time.sleep(self.wait)
        if (self.force or self.size == ("3",)) and not self.against:
            return Report("fragile", Verdict.DONE)
        raise problem("fragile/refused", "refused")


def parse(command: type[Command], words: list[str]) -> dict[str, Any]:
    known = {"--force": {"force": True}, "--size": {"size": tuple(words[1:2])}, "--wait": {"wait": 9.0}}
    return known.get(words[0], {})


def outcome(fix: str, folder: Path, seconds: float = 2.0) -> Problem:
    command = Fragile("m.onnx", str(folder / "out.onnx"))
    return fix_trial.tried(Problem("fragile/refused", "refused", fix=fix), command, seconds, parse)


def test_a_fix_that_helps_is_marked(tmp_path: Path) -> None:
    found = outcome("add --size 3, or --force", tmp_path)
    assert found.tried == ("--size 3", "--force")
    assert found.fix == "add --size 3, or --force"


def test_a_fix_that_ends_in_the_same_problem_is_not_offered(tmp_path: Path) -> None:
    found = outcome("add --size 2, or --force, or stop", tmp_path)
    assert (found.fix, found.tried) == ("--force; or stop", ("--force",))


def test_an_option_takes_the_place_of_the_value_that_the_problem_names(tmp_path: Path) -> None:
    command = Fragile("m.onnx", str(tmp_path / "out.onnx"), ("4",))
    for what, helps in (("'4' is no size", ("--size 3",)), ("there is no size", ())):
        found = fix_trial.tried(Problem("fragile/refused", what, fix="add --size 3"), command, 2.0, parse)
        assert found.tried == helps


def test_a_whole_command_has_none_of_the_options_that_were_given(tmp_path: Path) -> None:
    command = Fragile("m.onnx", str(tmp_path / "out.onnx"), ("4",), against="gone.json")

    def parse_all(_: type[Command], words: list[str]) -> dict[str, Any]:
        return {"model": words[0], "output": words[1], "force": "--force" in words}

    fix = f"`onnxsmith fragile m.onnx {tmp_path / 'made.onnx'} --force`"
    found = fix_trial.tried(Problem("fragile/refused", "gone.json", fix=fix), command, 2.0, parse_all)
    assert len(found.tried) == 1


def test_nothing_is_written_by_a_trial(tmp_path: Path) -> None:
    outcome("add --force", tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_every_command_writes_goes_elsewhere(tmp_path: Path) -> None:
    """No option `-o` of a command keeps its path in a trial, whether or not it is marked as written."""
    for name, command in rooms.classes("onnxsmith.cli.commands", Command).items():  # type: ignore[type-abstract]
        outputs = [one.name for one in dataclasses.fields(command) if one.metadata.get("short") == "-o"]
        needed = {one.name: "x" for one in dataclasses.fields(command) if one.default is dataclasses.MISSING}
        needed = {key: value for key, value in needed.items() if key not in ("verify", "save", "score", "rest")}
        for output in outputs:
            made = fix_trial.elsewhere(command(**{**needed, output: "mine/out"}), tmp_path)
            assert getattr(made, output) == str(tmp_path / output / "out"), name


@pytest.mark.parametrize("option", ["--no-verify", "--write-unsure"])
def test_an_option_that_switches_a_check_off_is_not_tried(option: str) -> None:
    assert not fix_trial._is_complete(Remedy("option", option, option))


def test_an_interrupt_of_a_trial_leaves_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> Problem:
        raise KeyboardInterrupt

    monkeypatch.setattr(fix_trial, "tried", interrupted)
    found = Problem("fragile/refused", "refused", fix="add --force")
    assert application._tried(found, Fragile("m.onnx"), 9.0) == found


def test_a_trial_does_not_outlast_the_failed_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fix_trial, "_LEAST_SECONDS", 0.0)
    begun = time.monotonic()
    found = outcome("add --wait 9", tmp_path, seconds=0.1)
    assert time.monotonic() - begun < 8
    assert (found.fix, found.tried) == ("add --wait 9", ())


@pytest.mark.parametrize(
    "fix", ["add --data DATA", "write it again", "`onnxsmith other m.onnx --force`", "add --new 1"]
)
def test_what_cannot_be_tried_stays_as_it_is(fix: str, tmp_path: Path) -> None:
    assert outcome(fix, tmp_path) == Problem("fragile/refused", "refused", fix=fix)


def test_a_quick_failure_is_not_tried_again(tmp_path: Path) -> None:
    assert outcome("add --force", tmp_path, seconds=0.2).tried == ()


def test_words_are_parsed_as_the_command_parses_them() -> None:
    assert _given(Simplify, ["--no-verify"]) == {"no_verify": True}
    assert _given(Simplify, ["--keep-output", "y"]) == {"keep_output": ("y",)}
    assert _given(Simplify, ["--no-such-option"]) == {}
