"""Which cases `make test` runs, and which of them a shard has."""

from __future__ import annotations

import pytest

from tests.tiers.choosing import LIMIT, ROWS, first_tier, shard

CHEAP = [f"tests/a/test_a.py::test_rows[{row}]" for row in range(100)]
DEAR = ["tests/a/test_b.py::test_dear", "tests/b/test_c.py::test_dear_rows[1]", "tests/b/test_c.py::test_dear_rows[2]"]


def test_cheap_cases_are_in_and_dear_ones_are_not() -> None:
    costs = dict.fromkeys(DEAR, 2 * LIMIT)
    cases = [*CHEAP[:3], *DEAR]
    assert first_tier(cases, costs, [], "seed") == set(CHEAP[:3])


def test_a_case_that_nobody_measured_is_in() -> None:
    assert first_tier(["tests/a/test_new.py::test_new"], {}, [], "seed") == {"tests/a/test_new.py::test_new"}


def test_rows_that_add_up_are_sampled_and_another_seed_takes_others() -> None:
    costs = dict.fromkeys(CHEAP, LIMIT)
    first, again, other = (first_tier(CHEAP, costs, [], seed) for seed in ("1", "1", "2"))
    assert len(first) == ROWS / LIMIT
    assert first == again
    assert first != other


def test_every_row_is_taken_by_some_seed() -> None:
    costs = dict.fromkeys(CHEAP, LIMIT)
    assert set().union(*(first_tier(CHEAP, costs, [], str(seed)) for seed in range(100))) == set(CHEAP)


def test_a_listed_function_gives_one_row_however_dear() -> None:
    costs = dict.fromkeys(DEAR, 60.0)
    found = first_tier(DEAR, costs, ["tests/b/test_c.py::test_dear_rows"], "seed")
    assert len(found) == 1
    assert found < set(DEAR[1:])


def test_a_listed_row_is_taken_with_the_cheap_ones() -> None:
    costs = {DEAR[1]: 60.0}
    assert first_tier(DEAR, costs, [DEAR[1]], "seed") == set(DEAR)


def test_all_rows_are_taken_where_the_list_says_so() -> None:
    costs = dict.fromkeys(CHEAP[:50], LIMIT) | dict.fromkeys(CHEAP[50:], 60.0)
    assert first_tier(CHEAP, costs, ["tests/a/test_a.py::test_rows[*]"], "seed") == set(CHEAP)


@pytest.mark.parametrize("of", [1, 2, 3, 7])
def test_shards_have_every_case_once(of: int) -> None:
    cases = [*CHEAP, *DEAR]
    costs = dict.fromkeys(DEAR, 5.0)
    shards = [shard(cases, costs, number, of) for number in range(1, of + 1)]
    assert sorted(case for its in shards for case in its) == sorted(cases)


def test_shards_take_about_as_long_as_each_other() -> None:
    cases = [f"tests/x/test_{file}.py::test_{case}" for file in range(20) for case in range(file)]
    costs = {case: 1.0 + len(case) % 3 for case in cases}
    loads = [sum(costs[case] for case in shard(cases, costs, number, 4)) for number in range(1, 5)]
    assert max(loads) < 1.2 * min(loads)


def test_a_file_stays_together_unless_it_is_longer_than_a_shard() -> None:
    small = [f"tests/x/test_{file}.py::test_{case}" for file in range(8) for case in range(5)]
    for number in (1, 2):
        files = {case.partition("::")[0] for case in shard(small, {}, number, 2)}
        assert len(shard(small, {}, number, 2)) == 5 * len(files)
    assert len(shard(CHEAP, {}, 1, 2)) == 50
