"""A keep-list is light: where one layer holds most of the weights, others stay wide instead, if that will do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from onnxsmith.precision.methods.base import Layer
from onnxsmith.precision.schemes import Schemes

TABLE, SMALL, OTHER = Layer("table", "Gather", 1000), Layer("small", "MatMul", 10), Layer("other", "MatMul", 20)


class Seen:
    """Stands in for `Evaluations`. `good` are the keep-lists that meet the budget."""

    def __init__(self, good: list[set[str]], most: int) -> None:
        self.good, self.most, self.curve = good, most, list[frozenset[str]]()
        self.work = SimpleNamespace(kept_as="", scheme="", always=frozenset(), is_asked=False)
        self.method = SimpleNamespace(stored=lambda work, keep: frozenset())

    @property
    def is_spent(self) -> bool:
        return len(self.curve) >= self.most

    def damage(self, layers: Any, always: Any) -> dict[str, float]:
        return {"table": 3.0, "small": 2.0, "other": 1.0}

    def meets(self, keep: frozenset[str]) -> bool:
        self.curve.append(keep)
        return any(one <= keep for one in self.good)


def schemes(good: list[set[str]], most: int = 20) -> Schemes:
    """Layers of which the table has the largest error."""
    seen: Any = Seen(good, most)
    return Schemes(seen, [TABLE, SMALL, OTHER])


@pytest.mark.parametrize(
    ("good", "most", "kept"),
    [
        ([{"table"}, {"small", "other"}], 20, {"small", "other"}),
        ([{"table"}], 20, {"table"}),
        ([{"table"}, {"small"}], 1, {"table"}),  # no evaluations are left for a second search
    ],
)
def test_small_layers_stay_in_place_of_a_large_one(good: list[set[str]], most: int, kept: set[str]) -> None:
    found = schemes(good, most)._searched(frozenset())
    assert found == kept
