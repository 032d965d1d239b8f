"""Each problem's fix is carried out by a case, or a line of `not_run.txt` says why none is."""

from __future__ import annotations

import importlib
from pathlib import Path

from tests.fixes.harness import Call, Case
from tests.test_pages import page_files

HERE = Path(__file__).parent


def cases() -> list[Case | Call]:
    modules = [importlib.import_module(f"tests.fixes.{file.stem}") for file in sorted(HERE.glob("test_*_fixes.py"))]
    return [one for module in modules for one in module.CASES]


def not_run() -> dict[str, str]:
    lines = (HERE / "not_run.txt").read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines if line and not line.startswith("#"))


def test_every_problem_is_in_a_case_or_has_a_reason() -> None:
    run = {one.id for one in cases()}
    assert not page_files().keys() - run - not_run().keys(), "add a case to tests/fixes/"
    assert not run & not_run().keys(), "a case carries these out: take them out of not_run.txt"
    assert not not_run().keys() - page_files().keys(), "no such problem"
    assert all(not_run().values())
