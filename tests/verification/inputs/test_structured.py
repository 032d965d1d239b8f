"""Inputs are found for valid models that need structured ones, and every axis moves that may."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure.signature import signature
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Preparer
from onnxsmith.verification.explore import Explorer, Plan, tried
from onnxsmith.verification.input_search import has_finite_output
from onnxsmith.verification.inputs.generate import Generator
from tests.verification.inputs.structured import MODELS

UNTRIED = {
    "a table of positions by length": "seq was refused above 16",
    "sizes that only fit a product": "n was tried at 1001 only; m was tried at 1 only",
    "an axis that a constant fixes": "n was accepted at 1 and 23 only",
    "a table that a size indexes": "n was refused above 8",
    "channels of a grouped convolution": "c was tried at 6 only",
    "channels of a normalisation": "c was tried at 20 only",
}
"""What a headline has to say of models that take few sizes; of the others nothing."""


@pytest.fixture(scope="module")
def preparer() -> Iterator[Preparer]:
    with runtimes.get("onnxruntime").preparer() as shared:
        yield shared


@pytest.mark.parametrize("name", MODELS)
def test_inputs_are_found(preparer: Preparer, name: str) -> None:
    known = MODELS[name]
    model = from_text(known.text)
    session = preparer.prepare(model)
    session.run(known.hand)
    generator = replace(Generator.for_model(inferred(model)[0]), signature=signature(model))
    explorer = Explorer(session, Plan(generator), {})
    runs = list(explorer.runs())
    assert sum(has_finite_output(run.outputs) for run in runs) > 1
    assert "; ".join(explorer.untried) == UNTRIED.get(name, "")
    moved = {symbol: set(sizes) - {0} for symbol, sizes in tried(runs).items()}
    assert all(len(sizes) > 2 or name in UNTRIED for sizes in moved.values()), moved
    limits = 8 * any(role.limits for role in generator.roles.values())
    assert len(runs) <= 9 + 3 * len(moved) + 2 * sum(map(len, generator.counted().values())) + limits


def test_the_collection_is_large_enough() -> None:
    assert len(MODELS) >= 60
