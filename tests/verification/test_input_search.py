"""The sizes that are swept at last, when no usual size is taken."""

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
from onnxsmith.verification import input_search
from onnxsmith.verification.input_search import Plan, Search, Tries
from onnxsmith.verification.inputs.generate import Generator

TWO = "g (float[n,k] x) => (float[n,k] y) { y = Neg(x) }"
FIVE = "g (float[n,a,b,c,d] x) => (float[n,a,b,c,d] y) { y = Neg(x) }"


class _Takes(Session):
    """A session that answers inputs of certain shapes, and notes every shape."""

    provider = "tests"

    def __init__(self, text: str, takes: Callable[[tuple[int, ...]], bool], answer: float = 1.0) -> None:
        self.signature = signature(from_text(f'<ir_version: 8, opset_import: ["": 17]> {text}'))
        self.takes, self.answer = takes, answer
        self.shapes: list[tuple[int, ...]] = []
        self.says: Callable[[tuple[int, ...]], str] = lambda shape: "not this one"

    def run(self, feeds: Mapping[str, Any]) -> Outputs:
        self.shapes.append(feeds["x"].shape)
        if not self.takes(feeds["x"].shape):
            raise problem("runtime/failed", self.says(feeds["x"].shape))
        return {"y": np.full(1, self.answer)}


def search(text: str, session: Session, **known: int) -> Search:
    model, _ = inferred(from_text(f'<ir_version: 8, opset_import: ["": 17]> {text}'))
    return Search(Tries(session, Plan(Generator.for_model(model), known=known)))


def test_the_sweep_ends_at_the_first_size_that_is_taken() -> None:
    session = _Takes(TWO, lambda shape: shape[1] == 37)
    found = search(TWO, session)._swept()
    assert found is not None
    assert found.feed.sizes == {"n": 64, "k": 37}
    assert session.shapes == [(64, size) for size in range(1, 38)]


@pytest.mark.parametrize(("size", "is_found"), [(399, True), (400, False)])
def test_the_sweep_goes_up_to_400(size: int, is_found: bool) -> None:
    session = _Takes(TWO, lambda shape: shape == (64, size))
    assert (search(TWO, session)._swept() is not None) == is_found


def test_the_batch_is_swept_last_and_known_sizes_stay() -> None:
    session = _Takes(TWO, lambda shape: False)
    assert search(TWO, session)._swept() is None
    assert session.shapes == [(64, size) for size in range(1, 400)] + [(size, 64) for size in range(1, 400)]
    session = _Takes(TWO, lambda shape: False)
    assert search(TWO, session, k=5)._swept() is None
    assert session.shapes == [(size, 5) for size in range(1, 400)]


def test_three_symbols_are_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_search, "_SWEPT", 4)
    monkeypatch.setattr(input_search, "_SWEPT_BESIDE", 5)
    session = _Takes(FIVE, lambda shape: False)
    search(FIVE, session, d=2)._swept()
    assert {shape for shape in session.shapes if 3 in shape} == {
        (5, 3, 5, 5, 2),
        (5, 5, 3, 5, 2),
        (5, 5, 5, 3, 2),
    }


def test_the_sweep_ends_after_15_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([100.0, 114.0, 115.0, 115.5, 116.0])
    monkeypatch.setattr(input_search.time, "monotonic", lambda: next(clock))
    session = _Takes(TWO, lambda shape: False)
    assert search(TWO, session)._swept() is None
    assert [shape[1] for shape in session.shapes] == [1, 2, 3]


def test_an_answer_without_a_number_is_kept_while_the_sweep_goes_on() -> None:
    session = _Takes(TWO, lambda shape: shape[1] == 2, answer=np.nan)
    found = search(TWO, session)._swept()
    assert found is not None
    assert found.feed.sizes["k"] == 2
    assert session.shapes[-1] == (399, 64)


def test_48_sizes_that_refusals_suggest_are_tried() -> None:
    session = _Takes(TWO, lambda shape: False)
    session.says = lambda shape: f"Got: {shape[1]} Expected: {shape[1] + 1000}"
    assert search(TWO, session)._by_refusals() is None
    assert len(session.shapes) == 4 + 48
