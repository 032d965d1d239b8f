"""Every problem has a page, every page a problem, and each page says what happened, why, and what helps."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import onnxsmith
from onnxsmith.viewer.inspection.explain import pages

SOURCE = Path(onnxsmith.__file__).parent
PAGES = SOURCE / "viewer" / "pages"
ID = re.compile(r"[a-z]+/[a-z]+(-[a-z]+)*")
SECTIONS = ["## What happened", "## Why", "## What helps"]


def ids_in_source() -> dict[str, str]:
    """Ids that are given to `problem(…)` or `Problem(…)`, as literals or as the branches of a choice, and where."""
    found: dict[str, str] = {}
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and node.args):
                continue
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if name not in ("problem", "Problem"):
                continue
            for part in ast.walk(node.args[0]):
                if isinstance(part, ast.Constant) and isinstance(part.value, str) and ID.fullmatch(part.value):
                    found.setdefault(part.value, f"{file.relative_to(SOURCE)}:{node.lineno}")
    return found


def page_files() -> dict[str, Path]:
    return {f"{file.parent.name}/{file.stem}": file for file in sorted(PAGES.rglob("*.md"))}


def test_there_is_something_to_hold() -> None:
    assert len(ids_in_source()) > 50


def test_every_problem_has_a_page() -> None:
    missing = {id_: where for id_, where in ids_in_source().items() if id_ not in page_files()}
    assert not missing, "write src/onnxsmith/viewer/pages/<id>.md"


def test_every_page_belongs_to_a_problem() -> None:
    assert not page_files().keys() - ids_in_source().keys(), "nothing raises these any more"


@pytest.mark.parametrize("id_", page_files())
def test_a_page_has_its_title_and_sections(id_: str) -> None:
    lines = page_files()[id_].read_text(encoding="utf-8").splitlines()
    assert re.fullmatch(rf"# {re.escape(id_)}: \S.*[^.]", lines[0])
    headings = [line for line in lines if line.startswith("#")]
    assert headings[1:] == SECTIONS
    for heading in SECTIONS:
        start = lines.index(heading) + 1
        below = lines[start : next((n for n in range(start, len(lines)) if lines[n] in SECTIONS), len(lines))]
        assert any(line.strip() for line in below), f"{heading} is empty"
    assert len(lines) <= 40


@pytest.mark.parametrize("id_", page_files())
def test_the_command_line_in_a_page_exists(id_: str) -> None:
    """`onnxsmith COMMAND` and every `--option` of it, as a page shows them, are there."""
    from onnxsmith.base import options, rooms
    from onnxsmith.cli.commands.base import Command

    commands = rooms.classes("onnxsmith.cli.commands", Command)
    shared = {"json", "html", "report", "quiet", "help", "record"}
    families = {command.partition("/")[0] for command in commands if "/" in command}
    for command, rest in re.findall(
        rf"`onnxsmith ((?:(?:{'|'.join(families)}) )?[a-z-]+)((?: [^`]*)?)`",
        page_files()[id_].read_text(encoding="utf-8"),
    ):
        command = command.replace(" ", "/")
        if command in families:
            continue
        assert command in commands
        known = {options.spelled(field).removeprefix("--") for field in options.fields_of(commands[command])} | shared
        assert set(re.findall(r"--([a-z-]+)", rest)) <= known


def test_ids_of_problems_and_rules_do_not_clash() -> None:
    assert len(pages()) > len(page_files())
