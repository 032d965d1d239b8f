"""The text of a dimension has the value that it is written for, or none."""

from __future__ import annotations

import pytest

from onnxsmith.graph.shapes.dims import evaluate, names_in, symbols
from onnxsmith.graph.structure.signature import Port, Signature


@pytest.mark.parametrize(
    ("dim", "wanted"),
    [
        ("n", 6),
        ("Max(0, n - 8)", 0),
        ("Min(n, m)", 2),
        ("Mod(n, 4)", 2),
        ("ceiling(n/4)", 2),
        ("floor((n - 1)/m) + 1", 3),
        ("(n + 1)//2", 3),
        ("n**2", 36),
        ("Broadcast(n, 1)", 6),
        ("Broadcast(n, m)", None),
        ("Broadcast(n, unk__665)", None),
        ("n/4", None),
        ("m - n", None),
        ("n[0]", None),
        ("__import__('os')", None),
        ("9**9**9", None),
        (None, None),
    ],
)
def test_an_expression_has_its_value(dim: str | None, wanted: int | None) -> None:
    assert evaluate(dim, {"n": 6, "m": 2}) == wanted


def test_names_are_those_of_sizes() -> None:
    assert names_in("Max(0, x.0 - past)//2") == ("x.0", "past")


@pytest.mark.parametrize(
    ("dims", "wanted"),
    [
        (("n", "2*n"), ("n",)),
        (("Broadcast(n, unk__665)",), ("n", "unk__665")),
        (("n - 20", "n/7"), ("n",)),
        (("a-b", "x.0"), ("a-b", "x.0")),
        (("some n? of (it", 3), ("n", "of", "it", "some", "some n? of (it")),
    ],
)
def test_every_dimension_gets_a_size_or_follows_from_one(dims: tuple[str | int, ...], wanted: tuple[str, ...]) -> None:
    found = symbols(Signature((Port("x", "float", dims),), ()))
    assert set(wanted) >= set(found)
    assert all(evaluate(dim, dict.fromkeys(found, 720720)) is not None for dim in dims)
