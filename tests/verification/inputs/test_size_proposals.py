"""Sizes are proposed where models usually live: a small batch, different sizes for different dimensions."""

from __future__ import annotations

import pytest

from onnxsmith.graph.structure.signature import Dim, Port, Signature
from onnxsmith.verification.inputs.size_proposals import bases, others

IMAGE = ("batch", 3, "h", "w")


def of(*shapes: tuple[Dim, ...] | None) -> Signature:
    return Signature(tuple(Port(f"x{n}", "float", shape) for n, shape in enumerate(shapes)), ())


def test_the_first_proposal_has_a_small_batch_and_no_square() -> None:
    first = next(bases(of(IMAGE), {}))
    assert list(first) == ["batch", "h", "w"]
    assert first["batch"] <= 2
    assert len({*first.values()}) == 3


def test_squares_are_proposed_too() -> None:
    assert any(size["h"] == size["w"] for size in bases(of(IMAGE), {}))


def test_a_symbol_equal_to_the_batch_is_proposed() -> None:
    assert any(size["b"] == size["c"] for size in bases(of(("b", "c"), ("c", "b")), {}))


@pytest.mark.parametrize(
    ("shapes", "batch"),
    [([("n", 3)], "n"), ([(3, "my_batch")], "my_batch"), ([("n", 3), ("m", 3)], "m"), ([("n", "t"), ("n",)], "n")],
)
def test_the_first_axis_is_the_batch(shapes: list[tuple[Dim, ...]], batch: str) -> None:
    assert next(bases(of(*shapes), {}))[batch] == 2


def test_the_only_axis_is_no_batch() -> None:
    assert next(bases(of(("t",)), {}))["t"] > 2


@pytest.mark.parametrize("known", [{"batch": 5}, {"batch": 5, "h": 7, "w": 9}])
def test_known_sizes_stay(known: dict[str, int]) -> None:
    for size in bases(of(IMAGE), known):
        assert size | known == size


def test_without_symbols_there_is_one_proposal() -> None:
    assert list(bases(of((2, 3)), {})) == [{}]
    assert list(bases(of(("n",)), {"n": 3})) == [{"n": 3}]


def test_every_symbol_has_a_size() -> None:
    for size in bases(of(("b", "2*s", "x"), ("b", "t")), {}):
        assert set(size) == {"b", "s", "x", "t"}
        assert min(size.values()) > 0


@pytest.mark.parametrize("count", [1, 3, 6, 12])
def test_proposals_are_few_and_come_once(count: int) -> None:
    found = [tuple(sorted(size.items())) for size in bases(of(tuple(f"d{n}" for n in range(count))), {})]
    assert len(found) == len(set(found)) <= 160


def test_an_input_with_a_default_asks_for_no_size() -> None:
    signature = Signature((Port("w", "float", ("m",), default=True),), ())
    assert list(bases(signature, {})) == [{}]


def test_an_unknown_rank_asks_for_no_size() -> None:
    assert list(bases(of(None), {})) == [{}]


@pytest.mark.parametrize("symbol", ["batch", "h"])
def test_other_sizes_are_others(symbol: str) -> None:
    base = {"batch": 2, "h": 64, "w": 32}
    found = list(others(symbol, base, of(IMAGE)))
    assert base[symbol] not in found
    assert len(found) == len(set(found)) > 3
    assert min(found) >= 1


def test_other_sizes_of_an_axis_are_near_and_round() -> None:
    found = list(others("h", {"batch": 2, "h": 64, "w": 32}, of(IMAGE)))
    assert {65, 128} <= set(found[:3])
    assert {63, 96, 32, 1} <= set(found)


def test_a_batch_of_one_is_tried() -> None:
    assert next(others("batch", {"batch": 2, "h": 64, "w": 32}, of(IMAGE))) == 1
