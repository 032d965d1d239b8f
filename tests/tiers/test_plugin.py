"""The plugin in runs of pytest of its own: what is run, what is left out, and what is said of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiers import costs
from tests.tiers.choosing import LIMIT

ROOT = Path(__file__).parents[2]
CASES = """
import time
import pytest

@pytest.fixture(scope="module")
def shared():
    time.sleep(0.8)

def test_cheap(): ...
def test_dear(): time.sleep(0.6)
def test_first(shared): ...
def test_second(shared): ...
@pytest.mark.whole
def test_exhaustive(): ...
def test_fails(): assert not FAILS
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A folder with tests, of which the file of costs says that one is dear."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = whole\n", encoding="utf-8")
    (tmp_path / "costs.txt").write_text("tests/test_a.py\n  0.6 test_dear\n", encoding="utf-8")
    write(tmp_path, fails=False)
    return tmp_path


def write(folder: Path, *, fails: bool) -> None:
    (folder / "tests" / "test_a.py").write_text(CASES.replace("FAILS", str(fails)), encoding="utf-8")


def run(folder: Path, *options: str) -> tuple[dict[str, str], str]:
    """The outcome of each case, and what was printed."""
    command = [sys.executable, "-m", "pytest", "-p", "tests.tiers.plugin", "-v", "--costs", "costs.txt", *options]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "ONNXSMITH_"))}
    done = subprocess.run(
        [*command, "tests"],
        cwd=folder,
        env={**kept, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    pattern = r"(?:^|\] )(PASSED|FAILED)? ?tests/test_a.py::(test_\w+) ?(PASSED|FAILED)?"
    found = re.findall(pattern, done.stdout, flags=re.MULTILINE)
    return {name: before or after for before, name, after in found if before or after}, done.stdout + done.stderr


EVERY = {"test_cheap", "test_dear", "test_first", "test_second", "test_exhaustive", "test_fails"}


@pytest.mark.parametrize("processes", [[], ["-n", "2"]], ids=["one", "two"])
def test_the_first_tier_leaves_out_what_is_dear_and_says_so(suite: Path, processes: list[str]) -> None:
    ran, said = run(suite, "--tier", "first", *processes)
    assert set(ran) == EVERY - {"test_dear", "test_exhaustive"}
    assert "4 cases were run" in said
    assert "2 further cases of make test-all were not run: tests/test_a.py 2" in said
    assert "make test-all" in said


@pytest.mark.parametrize("processes", [[], ["-n", "2"]], ids=["one", "two"])
def test_all_is_all(suite: Path, processes: list[str]) -> None:
    ran, said = run(suite, "--tier", "all", *processes)
    assert set(ran) == EVERY
    assert "further" not in said


def test_without_a_tier_all_but_the_exhaustive_is_run(suite: Path) -> None:
    ran, said = run(suite)
    assert set(ran) == EVERY - {"test_exhaustive"}
    assert "cases were run" not in said


def test_what_passed_is_not_run_again_and_what_failed_is(suite: Path) -> None:
    write(suite, fails=True)
    subprocess.run(["git", "init", "-q", str(suite)], check=True)
    ran, _ = run(suite, "--tier", "all", "--passed", "passed.txt", "-n", "2")
    assert ran["test_fails"] == "FAILED"
    ran, _ = run(suite, "--tier", "all", "--passed", "passed.txt", "-n", "2")
    assert set(ran) == {"test_fails"}


def test_shards_have_each_case_once(suite: Path) -> None:
    ran = [set(run(suite, "--tier", "all", "--shard", f"{number}/2")[0]) for number in (1, 2)]
    assert ran[0] | ran[1] == EVERY
    assert not ran[0] & ran[1]


@pytest.mark.parametrize("processes", [[], ["-n", "2"]], ids=["one", "two"])
def test_after_the_time_no_case_is_started(suite: Path, processes: list[str]) -> None:
    ran, said = run(suite, "--tier", "all", "--minutes", "0.000001", *processes)
    assert not ran
    assert "6 were not, as the time was over" in said
    assert "6 further cases" in said


def test_costs_are_measured_and_what_is_shared_is_divided(suite: Path) -> None:
    run(suite, "--tier", "all", "--renew-costs", "-n", "2", "--dist", "loadfile")
    found = costs.read(suite / "costs.txt")
    assert set(found) == {f"tests/test_a.py::test_{name}" for name in ("dear", "first", "second")}
    first, second = (found[f"tests/test_a.py::test_{name}"] for name in ("first", "second"))
    assert first == pytest.approx(second, rel=0.2)
    assert first >= 0.4


def test_a_new_case_that_is_dear_is_named(suite: Path) -> None:
    known = "tests/test_a.py\n  0.6 test_dear\n  0.4 test_first\n  0.4 test_second\n"
    (suite / "costs.txt").write_text(known, encoding="utf-8")
    with (suite / "tests" / "test_a.py").open("a", encoding="utf-8") as file:
        file.write("\ndef test_slow_and_new(): time.sleep(1.2)\n")
    _, said = run(suite, "--tier", "first")
    assert f"\n1 cases cost more than {LIMIT:g} s" in said
    assert "tests/test_a.py::test_slow_and_new" in said
