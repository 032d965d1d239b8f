"""The search for the smallest keep-list: it meets the budget, needs few evaluations, and drops what is not needed."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from onnxsmith.precision.keep_list_search import Search


@given(st.integers(1, 40), st.data())
def test_the_layers_that_are_needed_are_found(count: int, data: st.DataObject) -> None:
    order = [f"l{index}" for index in range(count)]
    needed = frozenset(data.draw(st.lists(st.sampled_from(order), unique=True, max_size=3)))
    search = Search(order, lambda keep: needed <= keep, most=10_000)
    assert search.smallest() == needed


@given(st.integers(1, 300), st.integers(0, 300))
def test_an_order_that_is_right_needs_few_evaluations(count: int, needed: int) -> None:
    needed = min(needed, count)
    order = [f"l{index}" for index in range(count)]
    search = Search(order, lambda keep: set(order[:needed]) <= keep, most=20)
    found = search.smallest()
    assert found is not None
    assert set(order[:needed]) <= found
    assert search.evaluations <= 20
    assert len(found) <= max(needed, math.ceil(count / 2**4)) + needed


def test_a_list_that_is_not_met_is_none() -> None:
    search = Search(["a", "b"], lambda _: False, most=20)
    assert search.smallest() is None
    assert search.evaluations == 3


def test_the_limit_of_evaluations_holds() -> None:
    search = Search([f"l{index}" for index in range(100)], lambda keep: len(keep) > 90, most=3)
    assert search.smallest() is None
    assert search.evaluations == 3


def test_what_is_always_kept_is_in_each_list() -> None:
    seen = []
    search = Search(["a", "b"], lambda keep: seen.append(keep) or "a" in keep, most=9)  # type: ignore[func-returns-value]
    assert search.smallest(frozenset({"z"})) == {"a", "z"}
    assert all("z" in keep for keep in seen)


def test_layers_at_the_end_of_the_order_are_found_in_few_evaluations() -> None:
    """The own error says little of what a layer does to the score."""
    order = [f"l{index}" for index in range(24)]
    needed = frozenset(order[-5:])
    search = Search(order, lambda keep: keep == frozenset(order) or needed <= keep, most=14)
    found = search.smallest()
    assert found is not None
    assert needed <= found
    assert len(found) < 9
