"""algebra/transpose-gather: one slice of what was transposed."""

from __future__ import annotations

import pytest

from tests.refusals import refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "algebra/transpose-gather"
TEXT = """g (float[2,3,4] x, int64 j, int64[1] k) => (float y) <int64 i = {-1}> {
    t = Transpose<perm = [PERM]>(x)\n y = Gather<axis = AXIS>(t, INDEX) }"""


def gather(perm: str, axis: int, index: str = "i") -> str:
    return TEXT.replace("PERM", perm).replace("AXIS", str(axis)).replace("INDEX", index)


@pytest.mark.parametrize(
    ("perm", "axis", "taken"), [("1, 0, 2", 0, 1), ("1, 0, 2", 1, 0), ("1, 2, 0", -1, 0), ("2, 0, 1", 0, 2)]
)
@pytest.mark.parametrize("index", ["i", "j"])
def test_the_axis_before(perm: str, axis: int, taken: int, index: str) -> None:
    result = assert_rewritten(RULE, "Gather", gather(perm, axis, index))
    assert result.graph[0].attributes["axis"].as_int() == taken


@refuses(RULE, 1)
def test_the_rest_changes_places() -> None:
    assert_refused(RULE, "change their order", gather("1, 0, 2", 2))


def test_several_indices() -> None:
    assert_left_alone(RULE, gather("1, 0, 2", 1, "k"))
