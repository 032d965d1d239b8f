"""Holds the young layout library to what `viewing/layout` relies on."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest
from fast_sugiyama import from_edges

QUICK = {"ranking_type": "up", "transpose": False}


def rooms() -> Iterator[list[tuple[int, int]]]:
    draw = random.Random(0)
    for count in (2, 5, 30, 200):
        for reach in (2, 10):
            edges = {(max(0, at - draw.randint(1, reach)), at) for at in range(1, count) for _ in range(2)}
            yield sorted(edges)


@pytest.mark.parametrize("how", [{}, QUICK], ids=["minimize", "quick"])
def test_rows_dummies_and_distances(how: dict[str, object]) -> None:
    for edges in rooms():
        found = from_edges(edges, vertex_spacing=100, dummy_vertices=True, check_layout=False, **how)
        assert len(found) == 1, "one component gives one layout"
        positions, _, _, given = found[0]
        place = dict(positions)
        count = max(other for _, other in edges) + 1
        assert set(range(count)) <= set(place), "vertices keep their numbers"
        assert all(y % 100 == 0 for _, y in place.values()), "rows are a spacing apart"
        for one, other in given:
            assert place[one][1] - place[other][1] == 100, "with dummies, each edge goes to the next row down"
        ways = dict[int, list[int]]()
        for one, other in given:
            ways.setdefault(one, []).append(other)
        ends = set()
        for one in range(count):
            for other in ways.get(one, ()):
                while other >= count:
                    (other,) = ways[other]
                ends.add((one, other))
        assert ends == set(edges), "a chain of dummies stands for each long edge"
        levels = dict[float, list[tuple[float, bool]]]()
        for vertex, (x, y) in place.items():
            levels.setdefault(y, []).append((x, vertex < count))
        for level in levels.values():
            level.sort()
            for (a, is_item), (b, is_other) in itertools.pairwise(level):
                assert b - a >= (99.9 if is_item and is_other else 50 if is_item or is_other else 25)


def test_equal_edges_give_equal_places() -> None:
    edges = list(rooms())[-1]
    assert len({str(sorted(from_edges(edges, dummy_vertices=True)[0][0])) for _ in range(4)}) == 1


def test_no_edges() -> None:
    assert list(from_edges([], dummy_vertices=True)) == []
