"""Models with states are scored over steps in a row, each model with its own states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.quantisation import Quantisation
from onnxsmith.graph.files.text import from_text
from onnxsmith.precision.quantisation_request import Given, Request, read
from onnxsmith.runtimes import base as runtimes

DRAW = np.random.default_rng(0)
STEPS = 40
CHUNKS = DRAW.standard_normal((STEPS, 1, 2)).astype(np.float32)


def filter_of(kept: float, output: str = "h_new") -> ir.Model:
    """Returns a model with the state h_new = kept·h + x·w, of which y is the double."""
    return from_text(
        '<ir_version: 10, opset_import: ["": 18]> g '
        f"(float[1,2] x, float[1,2] h) => (float[1,2] y, float[1,2] {output}) "
        f"<float[1,2] kept = {{{kept}, {kept}}}, float[2,2] w = {{1.0, 0.5, -0.5, 1.0}}, float two = {{2.0}}> "
        f"{{ a = Mul(h, kept) b = MatMul(x, w) {output} = Add(a, b) y = Mul({output}, two) }}"
    )


MODEL = filter_of(0.99)


def given(model: ir.Model, **options: Any) -> Given:
    with runtimes.get("onnxruntime").prepare(model) as session:
        return read(model, Request(**options), session)


def scored(model: ir.Model, of: Given) -> float:
    with runtimes.get("onnxruntime").prepare(model) as session:
        return of.scoring.of(session).value


def steps_of(found: Given) -> list[Any]:
    return list(found.scoring.limited())


def test_the_state_is_carried_from_sample_to_sample() -> None:
    found = given(MODEL, data=[{"x": one} for one in CHUNKS])
    calibration, test = list(found.calibration), steps_of(found)
    assert len(calibration) == STEPS // 4
    assert len(test) == STEPS - STEPS // 4
    h = np.zeros((1, 2), np.float32)
    w = np.array([[1.0, 0.5], [-0.5, 1.0]], np.float32)
    for chunk, sample in zip(CHUNKS, [*calibration, *test], strict=True):
        np.testing.assert_allclose(sample.feeds["h"], h, atol=1e-5)
        h = np.float32(0.99) * h + chunk @ w
    assert "states are carried (h=h_new): 40 steps were run one after the other" in found.notes[0]


def test_an_error_that_adds_up_counts() -> None:
    wrong = filter_of(0.95)
    losses = {}
    for name, data in {
        "carried": [{"x": one} for one in CHUNKS],
        "given": [{"x": one, "h": np.zeros((1, 2), np.float32)} for one in CHUNKS],
    }.items():
        found = given(MODEL, data=data)
        with runtimes.get("onnxruntime").prepare(MODEL) as session:
            assert found.scoring.first(session).value == 1
        losses[name] = 1 - scored(wrong, found)
    assert losses["given"] == 0
    assert losses["carried"] > 0.02


def test_states_in_the_data_are_used_as_they_are() -> None:
    states = DRAW.standard_normal((STEPS, 1, 2)).astype(np.float32)
    found = given(MODEL, data=[{"x": x, "h": h} for x, h in zip(CHUNKS, states, strict=True)])
    assert all(not sample.carried for sample in steps_of(found))
    assert "each sample is a single step that starts from the states in the data (h)" in found.notes[0]


def test_states_that_were_recorded_are_carried() -> None:
    h, data = np.zeros((1, 2), np.float32), []
    w = np.array([[1.0, 0.5], [-0.5, 1.0]], np.float32)
    for at, chunk in enumerate(CHUNKS):
        h = np.zeros((1, 2), np.float32) if at == 30 else h  # another recording
        data.append({"x": chunk, "h": h})
        h = np.float32(0.99) * h + chunk @ w
    found = given(MODEL, data=data)
    first = STEPS - len(steps_of(found))
    assert [at + first for at, one in enumerate(steps_of(found)) if not one.carried] == [first, 30]
    assert "states are carried" in found.notes[0]
    with runtimes.get("onnxruntime").prepare(MODEL) as session:
        assert found.scoring.first(session).value == 1
    assert 1 - scored(filter_of(0.95), found) > 0.02


def test_a_state_in_a_sample_starts_a_recording() -> None:
    start = np.full((1, 2), 7.0, np.float32)
    found = given(MODEL, data=[{"x": one, **({"h": start} if at == 20 else {})} for at, one in enumerate(CHUNKS)])
    sample = steps_of(found)[20 - STEPS // 4]
    np.testing.assert_array_equal(sample.feeds["h"], start)
    assert not sample.carried


def test_generated_steps_carry_the_state() -> None:
    found = given(MODEL)
    assert [bool(one.carried) for one in steps_of(found)] == [False] + 7 * [True]


PAIR = from_text(
    '<ir_version: 10, opset_import: ["": 18]> g (float[1,2] x, float[1,2] h, float[1,2] c) => '
    "(float[1,2] y, float[1,2] hn, float[1,2] cn) { hn = Add(x, h) cn = Add(hn, c) y = Tanh(cn) }"
)


@pytest.mark.parametrize(
    ("model", "sample", "named"),
    [
        (PAIR, {"h": np.zeros((1, 2), np.float32)}, "a value for 'h' but none for 'c'"),
        (filter_of(0.9, "other"), {}, "there is no value for 'h'"),
    ],
)
def test_a_state_without_its_pair_is_refused(model: ir.Model, sample: dict[str, Any], named: str) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        given(model, data=[{"x": one, **sample} for one in CHUNKS])
    assert caught.value.problem.id == "quantize/data"
    assert named in caught.value.problem.what


def test_a_step_that_the_model_refuses() -> None:
    other = from_text(
        '<ir_version: 10, opset_import: ["": 18]> g (float[1,n] x, float[1,m] past_k) => '
        "(float[1,k] y, float[1,k] present_k) { y = Add(x, past_k) present_k = Identity(y) }"
    )
    data = [{"x": np.zeros((1, size), np.float32)} for size in (3, 2, 4, 4)]
    with pytest.raises(OnnxsmithError) as caught:
        given(other, data=data)
    assert caught.value.problem.id == "quantize/data"
    assert "together with the state that the previous sample returned" in caught.value.problem.what


def test_quantize_says_that_states_were_carried(tmp_path: Path) -> None:
    found = onnxsmith.quantize(
        MODEL, to="float16", data=[{"x": one} for one in CHUNKS], measure_time=False, write_unsure=True
    )
    part = next(one for one in found.report.parts if isinstance(one, Quantisation))
    assert any("states are carried (h=h_new)" in note for note in part.notes)
