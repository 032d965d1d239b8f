"""The order of nodes in a graph that changes."""

from __future__ import annotations

import random

import onnx_ir as ir

from onnxsmith.graph.files.text import from_text
from onnxsmith.optimizer.rules import _node_order
from tests.rewrites import head


def graph() -> ir.Graph:
    text = "g (float[N] x) => (float[N] y) { a = Neg(x)\n b = Abs(a)\n c = Exp(b)\n y = Tanh(c) }"
    return from_text(head(17) + text).graph


def test_nodes_that_are_inserted_have_their_place_without_another_count() -> None:
    """Also before nodes that were inserted themselves, at any depth."""
    one = graph()
    first = list(one)
    assert _node_order.first_to_last(reversed(first)) == first
    before = one.meta["onnxsmith.order"]
    draws = random.Random(0)
    for _ in range(60):
        place = draws.choice(list(one))
        fresh = [ir.node("Identity", [first[0].outputs[0]]) for _ in range(draws.randint(1, 3))]
        one.insert_before(place, fresh)
        _node_order.inserted(fresh, place)
    every = list(one)
    shuffled = draws.sample(every, len(every))
    assert _node_order.first_to_last(shuffled) == every
    assert one.meta["onnxsmith.order"] is before
    assert _node_order.last(shuffled) is every[-1]


def test_nodes_that_nobody_noted_are_counted() -> None:
    one = graph()
    first = list(one)
    _node_order.first_to_last(first)
    new = ir.node("Identity", [first[0].outputs[0]])
    one.insert_before(first[2], [new])
    assert _node_order.first_to_last([first[3], new, first[0]]) == [first[0], new, first[3]]
