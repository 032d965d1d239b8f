"""`tools/repeat.py`: a test that fails now and then is named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parent.parent / "tools" / "repeat.py"
TESTS = """
from pathlib import Path

def test_steady(): ...

def test_flaky():
    runs = Path("runs.txt")
    runs.write_text((runs.read_text() if runs.exists() else "") + "x")
    assert len(runs.read_text()) != 2
"""


def repeated(folder: Path, *arguments: str) -> tuple[int, str]:
    command = [sys.executable, str(TOOL), "--times", "3", "--load", "1", *arguments]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


@pytest.mark.parametrize("processes", [[], ["-n", "1"]], ids=["one", "workers"])
def test_what_fails_once_is_named(tmp_path: Path, processes: list[str]) -> None:
    (tmp_path / "test_some.py").write_text(TESTS, encoding="utf-8")
    status, said = repeated(tmp_path, "test_some.py", *processes)
    assert status == 1
    assert "failed 1 of 3 times: test_some.py::test_flaky" in said
    assert "2 cases, 3 times under a load of 1: 1 flaky" in said


def test_what_passes_always_is_not(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS, encoding="utf-8")
    status, said = repeated(tmp_path, "test_some.py", "-k", "steady")
    assert status == 0
    assert said.endswith("\n1 cases, 3 times under a load of 1: 0 flaky\n")


def test_a_run_without_a_case_is_no_pass(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS, encoding="utf-8")
    status, said = repeated(tmp_path, "test_some.py", "-k", "nothing")
    assert status == 1
    assert "the whole run: exit status 5" in said
