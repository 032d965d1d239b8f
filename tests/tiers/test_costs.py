"""What cases cost: the file, and its renewal on other machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tiers import costs


def test_what_is_written_is_read(tmp_path: Path) -> None:
    found = {"tests/a/test_x.py::test_1": 0.25, "tests/a/test_x.py::test_2[a: b  c]": 12.3, "tests/b.py::test_3": 0.01}
    costs.write(found, tmp_path / "costs.txt")
    assert costs.read(tmp_path / "costs.txt") == {
        "tests/a/test_x.py::test_1": 0.25,
        "tests/a/test_x.py::test_2[a: b  c]": 12.0,
    }


def test_the_file_does_not_depend_on_the_order_of_a_run(tmp_path: Path) -> None:
    found = {f"tests/a.py::test_{n}": 1.0 + n for n in range(9)}
    costs.write(found, tmp_path / "1.txt")
    costs.write(dict(reversed(found.items())), tmp_path / "2.txt")
    assert (tmp_path / "1.txt").read_text() == (tmp_path / "2.txt").read_text()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    names = "\n".join(f"def test_{n}(): ..." for n in range(60))
    (tmp_path / "tests" / "test_a.py").write_text(names, encoding="utf-8")
    return tmp_path


OLD = {f"tests/test_a.py::test_{n}": 1.0 for n in range(50)}


def test_a_slower_machine_changes_no_number(root: Path) -> None:
    assert costs.renewed(OLD, {case: 2.6 * seconds for case, seconds in OLD.items()}, root) == OLD


def test_on_a_slower_machine_a_case_that_became_dearer_is_seen(root: Path) -> None:
    slower = {case: 2.6 * seconds for case, seconds in OLD.items()} | {"tests/test_a.py::test_7": 26.0}
    assert costs.renewed(OLD, slower, root) == OLD | {"tests/test_a.py::test_7": pytest.approx(10.0)}


def test_a_few_cases_do_not_tell_how_fast_a_machine_is(root: Path) -> None:
    found = costs.renewed(OLD, {"tests/test_a.py::test_7": 2.6}, root)
    assert found["tests/test_a.py::test_7"] == 2.6


def test_two_runs_of_a_case_that_differ_a_little_change_nothing(root: Path) -> None:
    assert costs.renewed(OLD, {"tests/test_a.py::test_7": 1.4}, root) == OLD


def test_new_cases_are_added_and_those_that_are_gone_dropped(root: Path) -> None:
    gone = {"tests/test_a.py::test_gone": 3.0, "tests/test_b.py::test_1": 3.0}
    found = costs.renewed(OLD | gone, {"tests/test_a.py::test_55[row]": 0.7}, root)
    assert found == OLD | {"tests/test_a.py::test_55[row]": 0.7}


ROWS = {f"tests/test_a.py::test_9[{row}]": 0.05 for row in range(60)}


def test_many_cheap_rows_have_one_line_with_their_sum(root: Path) -> None:
    found = costs.renewed({}, ROWS, root)
    costs.write(found, root / "costs.txt")
    listed = costs.read(root / "costs.txt")
    assert listed == {"tests/test_a.py::test_9[*]": 3.0}
    assert set(costs.prices(list(ROWS), listed).values()) == {0.05}
    assert costs.renewed(listed, dict.fromkeys(ROWS, 0.001), root)["tests/test_a.py::test_9[*]"] == 0.0
