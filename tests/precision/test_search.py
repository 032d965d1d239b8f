"""The search gives a set that passes, and none of its members can go."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from onnxsmith.precision.keep_list_search import by_groups, minimal

Sets = st.sets(st.integers(0, 30), max_size=6)


def counted(passes: Callable[[frozenset[int]], bool]) -> tuple[Callable[[frozenset[int]], bool], set[frozenset[int]]]:
    asked: set[frozenset[int]] = set()

    def ask(keep: frozenset[int]) -> bool:
        asked.add(keep)
        return passes(keep)

    return ask, asked


@given(Sets, st.permutations(range(31)))
def test_what_is_planted_is_found(planted: set[int], order: list[int]) -> None:
    ask, asked = counted(lambda keep: planted <= keep)
    assert set(minimal(order, ask) or ()) == planted
    assert all(frozenset(planted - {one}) in asked for one in planted), "that none can go was not tried"


@given(st.lists(Sets.filter(bool), min_size=1, max_size=5), st.permutations(range(31)))
def test_one_way_of_several_is_enough(ways: list[set[int]], order: list[int]) -> None:
    def passes(keep: frozenset[int]) -> bool:
        return any(way <= keep for way in ways)

    found = frozenset(minimal(order, passes) or ())
    assert passes(found)
    assert not any(passes(found - {one}) for one in found)


@given(st.sets(st.frozensets(st.integers(0, 4), min_size=1)), st.permutations(range(5)))
def test_more_need_not_be_better(good: set[frozenset[int]], order: list[int]) -> None:
    """Whichever sets pass, what is found does, and nothing with one member less."""
    found = minimal(order, lambda keep: keep in good)
    if found is None:
        return
    assert frozenset(found) in good
    assert not any(frozenset(found) - {one} in good for one in found)


def test_a_good_order_needs_few_tries() -> None:
    ask, asked = counted(lambda keep: {0, 1, 2} <= keep)
    assert minimal(range(1000), ask) == (0, 1, 2)
    assert len(asked) < 12


def test_nothing_passes() -> None:
    assert minimal(range(5), lambda keep: False) is None
    assert minimal([], lambda keep: True) == ()


@given(Sets, st.permutations(range(31)))
def test_groups_find_what_is_planted(planted: set[int], order: list[int]) -> None:
    assert set(by_groups(order, lambda keep: planted <= keep) or ()) == planted


def test_a_wrong_order_needs_few_tries() -> None:
    """The elements that count are the last ones."""
    ask, asked = counted(lambda keep: {37, 38, 39} <= keep)
    assert by_groups(range(40), ask) == (37, 38, 39)
    assert len(asked) < 25


@given(st.integers(1, 25), st.sets(st.integers(0, 19), min_size=1))
def test_groups_that_were_not_all_tried_pass_as_well(most: int, planted: set[int]) -> None:
    asked: set[frozenset[int]] = set()

    def passes(keep: frozenset[int]) -> bool:
        if len(keep) == 20:
            return True
        if keep not in asked and len(asked) >= most:
            return False
        asked.add(keep)
        return planted <= keep

    found = by_groups(range(20), passes)
    assert found is not None
    assert planted <= set(found)


def test_groups_of_which_none_passes() -> None:
    assert by_groups(range(5), lambda keep: False) is None
    assert by_groups([], lambda keep: True) == ()
