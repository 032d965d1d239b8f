"""The sizes at which the reference is run beside the base, and what is said where it refuses them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from onnxsmith.base.problem import problem
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure.signature import signature
from onnxsmith.runtimes.base import Outputs, Session
from onnxsmith.verification.input_search import Plan, Run, Tries
from onnxsmith.verification.inputs.draw_description import Manner
from onnxsmith.verification.inputs.generate import Feed, Generator
from onnxsmith.verification.resized_runs import Resizer

HEAD = '<ir_version: 8, opset_import: ["": 17]> '
ROWS = "g (float[n,3] x) => (float[n,3] y) { y = Neg(x) }"
TWO = "g (float[a] x, float[b] z) => (float[a] y) { y = Neg(x) }"
THREE = "g (float[p] x, float[q] z, float[t] w) => (float[p] y) { y = Neg(x) }"
SLICED = "g (float[n] x) => (float[k] y) <int64[1] a = {-20}, int64[1] e = {99}> { y = Slice(x, a, e) }"


class _Takes(Session):
    """A session that answers inputs of certain sizes, and notes every size."""

    provider = "tests"

    def __init__(self, text: str, takes: Callable[..., bool]) -> None:
        self.signature = signature(from_text(HEAD + text))
        self.takes = takes
        self.tried: list[tuple[int, ...]] = []
        self.largest: list[float] = []

    def run(self, feeds: Mapping[str, Any]) -> Outputs:
        sizes = tuple(size for value in feeds.values() for size in value.shape)
        self.tried.append(sizes)
        self.largest.append(max(float(np.abs(value).max(initial=0)) for value in feeds.values()))
        if not self.takes(*sizes):
            raise problem("runtime/failed", "not this one")
        return {"y": np.zeros(1, np.float32)}


class Resized:
    """The sizes that were run, the sizes that were asked for, and the resizer."""

    def __init__(self, text: str, takes: Callable[..., bool], gives: int = 1, **base: int) -> None:
        self.session = _Takes(text, takes)
        tries = Tries(self.session, Plan(Generator.for_model(inferred(from_text(HEAD + text))[0])))
        run = Run(Feed("base", base, {}), {"y": np.zeros(gives, np.float32)})
        self.resizer = Resizer(tries, run, {}, Manner())
        self.runs = [tuple(found.feed.sizes.values()) for found in self.resizer.runs()]


def test_a_free_size_is_odd_then_one_then_doubled_then_long_then_zero() -> None:
    found = Resized(ROWS, lambda *_: True, n=4)
    assert found.runs == [(5,), (1,), (8,), (257,), (0,)]
    assert (found.resizer.notes, found.resizer.tied, found.resizer.untried) == ([], [], [])
    large = found.session.largest
    assert large[1] < 1e-2 < large[0]  # the second has small values, so that an epsilon has an effect


@pytest.mark.parametrize(("n", "is_short"), [(31, True), (32, False), (63, False)])
def test_a_size_of_64_and_more_is_long_enough(n: int, is_short: bool) -> None:
    assert ((257,) in Resized(ROWS, lambda *_: True, n=n).runs) == is_short  # its double is tried before


@pytest.mark.parametrize(("gives", "is_long"), [(2**20 // 257 * 4, True), (2**20 // 257 * 4 + 8, False)])
def test_a_long_run_is_not_dear(gives: int, is_long: bool) -> None:
    assert ((257,) in Resized(ROWS, lambda *_: True, gives, n=4).runs) == is_long


def test_a_size_that_stays_is_named() -> None:
    found = Resized(ROWS, lambda n, _: n == 4, n=4)
    assert found.runs == []
    assert found.resizer.notes == [
        "dimension n was checked at size 4 only: the reference refused all others that were tried"
    ]
    assert found.resizer.tied == []
    assert [sizes[0] for sizes in found.session.tried] == [5, 1, 8, 5, 8, 1, 3, 7, 2, 257, 0]  # all at once, then alone


def test_multiples_are_found() -> None:
    assert Resized(ROWS, lambda n, _: n % 4 == 0, n=4).runs == [(8,), (0,)]


def test_sizes_that_have_to_be_equal_change_together() -> None:
    found = Resized(TWO, lambda a, b: a == b, a=4, b=4)
    assert found.resizer.tied == [["a", "b"]]
    assert found.resizer.notes == ["dimensions a, b are equal in all runs: the reference refuses different sizes"]
    assert found.runs[:2] == [(5, 5), (8, 8)]  # two sizes are enough
    assert found.runs[-1] == (0, 0)
    alone = [sizes for sizes in found.session.tried if 4 in sizes and sizes != (4, 4)]
    assert len(alone) == 2 * 12  # sizes of one symbol that are tried at most


@pytest.mark.parametrize(
    ("takes", "large"),
    [
        (lambda *_: True, (257, 257, 257)),
        (lambda p, q, t: t < 200, (131, 131, 131)),
        (lambda p, q, t: t % 32 == 0, (320, 320, 320)),
        (lambda p, q, t: p + q == t, (257, 257, 514)),
        (lambda p, q, t: p == q, (257, 257, 257)),
    ],
)
def test_all_are_large_together_once(takes: Callable[..., bool], large: tuple[int, ...]) -> None:
    runs = Resized(THREE, takes, p=32, q=32, t=64).runs
    assert [sizes for sizes in runs if min(sizes) >= 65] == [large]


def test_a_size_that_is_the_sum_of_two_others_stays_it() -> None:
    found = Resized(THREE, lambda p, q, t: p + q == t, p=2, q=3, t=5)
    assert found.resizer.notes == ["dimension t was always chosen as the sum of p and q"]
    assert found.resizer.tied == [["p", "q", "t"]]
    assert {(3, 1, 4), (1, 6, 7), (4, 5, 9)} <= set(found.runs)
    other = Resized(THREE, lambda p, q, t: p + q == t, p=2, q=3, t=4)
    assert other.resizer.tied == []


def test_four_symbols_are_tried_at_zero() -> None:
    found = Resized("g (float[a,b,c,d,e] x) => (float[a,b,c,d,e] y) { y = Neg(x) }", lambda *_: True,
                    a=1, b=2, c=3, d=2, e=2)  # fmt: skip
    assert [sizes for sizes in found.runs if 0 in sizes] == [
        (0, 2, 3, 2, 2),
        (1, 0, 3, 2, 2),
        (1, 2, 0, 2, 2),
        (1, 2, 3, 0, 2),
    ]
    assert (257, 2, 3, 2, 2) in found.runs  # all at once would be too large: one of them


def test_sizes_around_a_number_in_the_graph_are_tried() -> None:
    assert Resized(SLICED, lambda *_: True, n=4).runs == [(101,), (1,), (8,), (99,), (0,)]
    assert Resized(SLICED, lambda n: n <= 100, n=4).runs == [(1,), (8,), (100,), (99,), (0,)]
    assert Resized(SLICED, lambda n: n <= 99, n=4).runs == [(1,), (8,), (99,), (20,), (0,)]
    assert Resized(SLICED, lambda n: n <= 98, n=4).runs == [(1,), (8,), (98,), (0,)]
    assert Resized(SLICED, lambda *_: True, n=99).runs[0] == (101,)
    assert Resized(SLICED, lambda *_: True, n=120).runs == [(121,), (1,), (240,), (99,), (0,)]


@pytest.mark.parametrize(("width", "is_dear"), [(2**22 // 102, False), (2**22 // 102 + 1, True)])
def test_a_number_that_is_too_dear_is_said(width: int, is_dear: bool) -> None:
    """At 101 rows there are 101 of z; the length of y is not known, and counts as 1."""
    text = (
        f"g (float[n,{width}] x) => (float[k,{width}] y) "
        "<int64[1] s = {0}, int64[1] e = {99}, int64[1] a = {0}> { z = Neg(x) y = Slice(z, s, e, a) }"
    )
    found = Resized(text, lambda *_: True, n=1)
    said = "n was not tried above 99, which is a number in the graph: the run would be too large"
    assert (said in found.resizer.untried) == is_dear
