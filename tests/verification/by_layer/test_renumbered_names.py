"""Names that torch numbered anew pair no tensors of different operators."""

from __future__ import annotations

from onnxsmith.verification.by_layer.alignment import align
from onnxsmith.verification.by_layer.side_outline import Outline, Step
from onnxsmith.verification.by_layer.tensor_pairs import Matches

OPERATORS = ("Add", "MatMul", "Sigmoid", "Mul", "Tanh", "Neg", "Exp", "Abs", "Sqrt", "Log", "Relu", "Sin")
NAMES = [f"t{at}" for at in range(len(OPERATORS))]


def outline(names: list[str]) -> Outline:
    """A chain of operators whose results have these names."""
    steps = [
        Step(op, op, (before,), (after,))
        for op, before, after in zip(OPERATORS, ["x", *names[:-1]], names, strict=True)
    ]
    return Outline(tuple(steps), ("x",), (names[-1],))


def test_a_name_of_another_operator_pairs_nothing() -> None:
    names = list(NAMES)
    names[1:3] = ["t2", "t20"]  # one number more, of a tensor that has no counterpart
    matches = Matches(tuple(zip(NAMES, names, strict=True)))
    found = align(outline(NAMES), outline(names), {"x": "x", NAMES[-1]: names[-1]}, lambda: matches)
    assert [(pair.reference, pair.candidate) for pair in found.pairs] == list(zip(NAMES, names, strict=True))
