"""Pairs of what paired operations read."""

from __future__ import annotations

from onnxsmith.verification.by_layer.alignment import Pair, with_operands
from onnxsmith.verification.by_layer.side_outline import Outline, Step


def step(name: str, reads: tuple[str, ...], makes: str, kind: str, origin: str = "") -> Step:
    return Step(name, kind, reads, (makes,), origin=origin, kind=kind)


TRACED = Outline(
    (
        step("conv", ("x",), "conv", "conv", "conv"),
        step("norm", ("conv",), "norm", "norm", "norm"),
        step("relu", ("norm",), "relu", "relu", "relu"),
        step("add", ("relu", "x"), "add", "add", "add"),
    ),
    ("x",),
    ("add",),
)


def outline(*last: str) -> Outline:
    return Outline(
        (
            step("Conv", ("x",), "folded", "conv", "conv"),
            step("Relu", ("folded",), "positive", "relu", "relu"),
            step("Add", last, "sum", "add", "add"),
        ),
        ("x",),
        ("sum",),
    )


def test_the_result_of_a_folded_normalisation_is_paired_with_what_is_read() -> None:
    known = [Pair("conv", "folded", "origin"), Pair("relu", "positive", "origin"), Pair("add", "sum", "port")]
    found = with_operands(TRACED, outline("positive", "x"), known)
    assert found[0] == Pair("norm", "folded", "operand")
    assert found[2] == Pair("add", "sum", "port")


def test_exchanged_operands_replace_no_pair() -> None:
    known = [Pair("relu", "positive", "origin"), Pair("add", "sum", "port")]
    found = with_operands(TRACED, outline("x", "positive"), known)
    assert Pair("relu", "positive", "origin") in found
    assert not any(pair.candidate == "x" for pair in found)


def test_an_operation_that_became_several_says_nothing_of_its_operands() -> None:
    known = [Pair("relu", "positive", "origin")]
    split = Outline(
        (*outline("positive", "x").steps, step("Mul", ("positive",), "more", "relu", "relu")), ("x",), ("sum",)
    )
    assert with_operands(TRACED, split, known) == tuple(known)
