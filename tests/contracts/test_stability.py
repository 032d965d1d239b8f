"""`docs/stability.md` lists what the code has."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import re
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer

import onnxsmith
from onnxsmith.base import rooms
from onnxsmith.base.interrupts import INTERRUPTED
from onnxsmith.base.problem import Problem
from onnxsmith.base.report.base import SCHEMA_VERSION, Part, Report
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli import application
from onnxsmith.cli.commands.base import Command
from onnxsmith.cli.render import stage_lines
from onnxsmith.runtimes import _call_limits, _web_package
from onnxsmith.runtimes.base import Runtime
from onnxsmith.verification.by_layer import value_bundle

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "onnxsmith"
PAGE = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")
SHARED = {"--json", "--html", "--report", "--verbose", "-v", "--quiet", "-q"}
SOME = {"--view", "--record"}
COMMANDS = rooms.classes("onnxsmith.cli.commands", Command)  # type: ignore[type-abstract]


def section(heading: str) -> str:
    return PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def rows(text: str) -> Iterator[list[str]]:
    """The cells of each row of the tables in a text, without their headings."""
    for line in text.splitlines():
        if line.startswith("| ") and not line.startswith("| ---"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def words(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_names() -> None:
    listed = [name for row in rows(section("Python")) for name in words(row[1])]
    assert sorted(listed) == onnxsmith.__all__


def test_every_command_is_listed() -> None:
    assert {words(row[0])[0] for row in rows(section("Command line")) if words(row[0])} == {
        id_.replace("/", " ") for id_ in COMMANDS
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_arguments_and_options(name: str) -> None:
    (row,) = (row for row in rows(section("Command line")) if words(row[0]) == [name.replace("/", " ")])
    parser: Any = typer.main.get_command(application.app)
    for word in name.split("/"):
        parser = parser.commands[word]
    parameters = parser.params
    options = [one for one in parameters if one.param_type_name == "option"]
    spelled = {spelling for one in options for spelling in (*one.opts, *one.secondary_opts)}
    assert set(words(row[2])) == spelled - SHARED - SOME
    for option in SOME:
        taken = set(words(section("Command line").partition(f"Commands with `{option}`:")[2].partition(".\n")[0]))
        assert (name in taken) == (option in spelled)
    assert spelled >= SHARED
    arguments = [one.metavar for one in parameters if one.param_type_name == "argument"]
    assert [word for word in row[1].split(", ") if word] == arguments


def test_exit_statuses() -> None:
    listed = {words(row[1])[0]: int(row[0]) for row in rows(section("Command line")) if row[0].isdigit() and row[1]}
    assert listed == {str(verdict): verdict.exit_code for verdict in Verdict}
    assert [int(row[0]) for row in rows(section("Command line")) if row[0].isdigit() and not row[1]] == [INTERRUPTED]


def test_environment_variables() -> None:
    assert set(re.findall(r"`(ONNXSMITH_\w+)`", PAGE)) == {
        _call_limits.MEMORY,
        _call_limits.TIME,
        _web_package.VARIABLE,
        stage_lines.VARIABLE,
    }
    spelled = {
        name
        for path in SOURCE.rglob("*.py")
        for name in re.findall(r'"(ONNXSMITH_\w+)"', path.read_text(encoding="utf-8"))
    }
    assert spelled == {_call_limits.MEMORY, _call_limits.TIME, _web_package.VARIABLE, stage_lines.VARIABLE}


def test_extras() -> None:
    listed = words(section("Command line").partition("so are the extras")[2])
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(listed) == set(extras) - {"dev"}


def test_runtimes() -> None:
    listed = words(section("Command line").partition("runtimes (")[2].partition(")")[0])
    assert listed
    assert set(listed) <= set(rooms.classes("onnxsmith.runtimes", Runtime))  # type: ignore[type-abstract]


def test_reports() -> None:
    text = section("Reports as JSON")
    assert f"`schema` is {SCHEMA_VERSION}." in text
    report = Report("x", Verdict.DONE).to_dict()
    keys, of_a_problem = re.findall(r"(?:keys|has) ((?:`\w+`(?:, | and |,\n|\n)?)+)", text)[:2]
    assert set(words(keys)) == set(report)
    assert words(of_a_problem) == [field.name for field in dataclasses.fields(Problem)]


def test_kinds_of_parts() -> None:
    kinds = words(section("Reports as JSON").partition("kind:\n\n")[2].partition("\n\n")[0])
    parts = rooms.classes("onnxsmith.base.report.parts", Part)  # type: ignore[type-abstract]
    assert kinds == sorted(part.kind() for part in parts.values())


def test_the_format_of_bundles() -> None:
    (row,) = (row for row in rows(section("Files")) if "`dump`" in row[0])
    assert row[1].startswith(f"format {value_bundle.FORMAT};")
    assert all(suffix in row[0] for suffix in value_bundle.SUFFIXES)


def asked_for() -> Iterator[tuple[str, str]]:
    """The entry point groups of the members that the code asks for, and the name of the class that it asks with."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("rooms.classes", "rooms.members"):
                room, base = node.args
                assert isinstance(room, ast.Constant)
                yield rooms.group(str(room.value)), ast.unparse(base)


def test_entry_point_groups() -> None:
    listed = [(words(row[0])[0], words(row[1])[0]) for row in list(rows(section("Members from other packages")))[1:]]
    assert {(group, path.rpartition(".")[2]) for group, path in listed} == set(asked_for())


def test_the_classes_of_members_are_there() -> None:
    for _, where, promise in list(rows(section("Members from other packages")))[1:]:
        module, _, name = words(where)[0].rpartition(".")
        assert promise in ("public", "may change")
        try:
            assert isinstance(getattr(importlib.import_module(module), name), type)
        except ModuleNotFoundError as error:
            if error.name != "torch" or find_spec("torch") is not None:  # rooms of torch, on a Python without it
                raise
