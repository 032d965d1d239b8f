"""A run goes on where another was stopped, on the same tree only."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.tiers import progress
from tests.tiers.progress import Progress, tree


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / "a.py").write_text("1", encoding="utf-8")
    monkeypatch.setattr(progress, "tree", lambda: tree(folder))
    return folder


def test_what_passed_is_kept_on_the_same_tree(checkout: Path, tmp_path: Path) -> None:
    for case in ("tests/a.py::test_1", "tests/a.py::test_2[x]"):
        at = Progress(tmp_path / "passed")
        at.begin()
        at.add(case)
    assert Progress(tmp_path / "passed").passed() == {"tests/a.py::test_1", "tests/a.py::test_2[x]"}


@pytest.mark.parametrize("name", ["a.py", "new.py"])
def test_another_tree_begins_anew(checkout: Path, tmp_path: Path, name: str) -> None:
    at = Progress(tmp_path / "passed")
    at.begin()
    at.add("tests/a.py::test_1")
    (checkout / name).write_text("2", encoding="utf-8")
    at.begin()
    assert at.passed() == set()


def test_the_costs_that_a_run_writes_are_no_change(checkout: Path) -> None:
    before = tree(checkout)
    (checkout / "costs.txt").write_text("x", encoding="utf-8")
    assert tree(checkout) == before


def test_outside_of_a_checkout_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "tree", lambda: "")
    at = Progress(tmp_path / "passed")
    at.begin()
    at.add("tests/a.py::test_1")
    at.begin()
    assert at.passed() == set()
