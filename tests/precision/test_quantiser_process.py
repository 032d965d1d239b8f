"""The process of a quantiser waits for the next model; one that failed does not."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.files.text import from_text
from onnxsmith.precision.quantisation_process import NNCF, ONNXRUNTIME, Arithmetic, Engine
from onnxsmith.runtimes import _idle

TEXT = """<ir_version: 10, opset_import: ["": 20]> g (float[n,4] x) => (float[n,2] y)
    <float[4,2] w = {1, 2, 3, 4, 5, 6, 7, 8}> { y = MatMul(x, w) }"""
needs_nncf = pytest.mark.skipif(importlib.util.find_spec("nncf") is None, reason="nncf is not installed")


@pytest.fixture(autouse=True)
def nobody_waits() -> Iterator[None]:
    _idle.end_all()
    yield
    _idle.end_all()


def process(engine: Engine) -> int:
    """The process that quantises a model, which then waits."""
    with Arithmetic(from_text(TEXT), engine) as arithmetic:
        assert arithmetic._started().ask({"do": "about"}) == ({}, {})
        return arithmetic._started().pid


@pytest.mark.parametrize("engine", [ONNXRUNTIME, pytest.param(NNCF, marks=needs_nncf)], ids=["onnxruntime", "nncf"])
def test_the_next_model_gets_the_same_process(engine: Engine) -> None:
    first = process(engine)
    assert process(engine) == first


def test_one_that_failed_does_not_wait() -> None:
    first = process(ONNXRUNTIME)
    with Arithmetic(from_text(TEXT), ONNXRUNTIME) as arithmetic:
        assert arithmetic._started().pid == first
        with pytest.raises(OnnxsmithError):
            arithmetic.quantised("nonsense", ())
    assert process(ONNXRUNTIME) != first
