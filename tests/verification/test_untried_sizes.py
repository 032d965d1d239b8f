"""The clauses that say which sizes were not tried."""

from __future__ import annotations

import pytest

from onnxsmith.verification.explore import untried_clauses
from onnxsmith.verification.input_search import Run
from onnxsmith.verification.inputs.generate import Feed


def runs(**sizes: list[int]) -> list[Run]:
    """A run for each place of the lists."""
    count = max(len(one) for one in sizes.values())
    each = [{symbol: found[min(place, len(found) - 1)] for symbol, found in sizes.items()} for place in range(count)]
    return [Run(Feed("any", one, {}), {}) for one in each]


@pytest.mark.parametrize(
    ("taken", "refused", "said"),
    [
        ([0], [], "n was tried at 0 only"),
        ([7], [], "n was tried at 7 only"),
        ([7, 0], [8], "n was tried at 7 only"),
        ([7, 5], [], ""),
        ([7, 5], [8], "n was refused above 7"),
        ([5, 7], [8, 9], "n was refused above 7"),
        ([5, 7], [9, 11], "n was accepted up to 7 and refused at 9"),
        ([5, 7], [0, 8], "n was refused above 7"),  # 0 is no size that anybody misses
        ([5, 7, 8], [8, 6], ""),  # 8 was taken after all
        ([5, 7], [3, 6], ""),
        ([5, 7], [3, 8], ""),
        ([5, 7], [3, 4, 8], "n was accepted at 5 and 7 only"),
        ([5, 6, 7], [3, 4, 8], ""),
        ([5, 7], [1, 3, 4], ""),
    ],
)
def test_what_is_said_of_one_symbol(taken: list[int], refused: list[int], said: str) -> None:
    found = runs(n=taken)
    assert untried_clauses(found, found[0], [({"n": size}, False) for size in refused]) == ([said] if said else [])


def test_a_refusal_counts_for_the_symbol_that_moved_alone_or_with_those_that_are_tied_to_it() -> None:
    found = runs(n=[5, 7], m=[3, 4])
    both = [({"n": 8, "m": 5}, False)]
    assert untried_clauses(found, found[0], both) == []
    assert untried_clauses(found, found[0], both, tied=[["n", "m"]]) == [
        "n was refused above 7",
        "m was refused above 4",
    ]
    assert untried_clauses(found, found[0], [({"n": 8, "m": 3}, False)]) == ["n was refused above 7"]
    assert untried_clauses(found, found[0], [({"n": 8, "m": 3}, True)]) == []
    assert untried_clauses(found, None, [({"n": 8, "m": 3}, False)]) == []


@pytest.mark.parametrize(
    ("symbols", "said"),
    [
        (["a"], ["a was tried at 2 only"]),
        (["a", "b"], ["a, b was tried at 2 only"]),
        (["a", "b", "c", "d"], ["a, b, c, d was tried at 2 only"]),
        (["a", "b", "c", "d", "e"], ["a, b, c and 2 more was tried at 2 only"]),
    ],
)
def test_symbols_with_the_same_clause_share_it(symbols: list[str], said: list[str]) -> None:
    found = runs(**{symbol: [2] for symbol in symbols})
    assert untried_clauses(found, found[0], []) == said
    assert untried_clauses(found, found[0], [], named=["a", 3]) == ["a was tried at 2 only"]


def test_three_clauses_are_shown_and_the_symbols_of_the_others_counted() -> None:
    sizes = {"a": [1], "b": [2], "c": [3], "d": [4], "e": [4], "f": [5]}
    shown = [f"{symbol} was tried at {size} only" for symbol, size in (("a", 1), ("b", 2), ("c", 3))]
    found = runs(**sizes)
    assert untried_clauses(found, found[0], []) == [*shown, "3 other axes were also limited"]
    three = runs(a=[1], b=[2], c=[3])
    assert untried_clauses(three, three[0], []) == shown
