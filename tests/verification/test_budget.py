"""What a verification leaves out to save time, and that it still finds what is wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.settings import Verify
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.verification import budget
from onnxsmith.verification.budget import Budget
from onnxsmith.verification.detection_power import LEAST, MOST
from onnxsmith.verification.sessions import verify_models

LAYERS = 30


def layers(factor: float = 1.0) -> ir.Model:
    """Thirty products and sums in a row; `factor` changes one element of one weight."""
    rng = np.random.default_rng(3)
    weights = [rng.normal(size=4).astype(np.float32) + 2 for _ in range(LAYERS)]
    weights[17][2] *= factor
    held = ", ".join(f"float[4] w{at} = {{{', '.join(map(str, one))}}}" for at, one in enumerate(weights))
    steps = " ".join(f"p{at} = Mul(x, w{at})" for at in range(LAYERS))
    sums = " ".join(f"s{at} = Add({'p0' if at == 1 else f's{at - 1}'}, p{at})" for at in range(1, LAYERS))
    text = '<ir_version: 10, opset_import: ["": 20]> g (float[n,4] x) => (float[n,4] y) '
    return from_text(f"{text}<{held}> {{ {steps} {sums} y = Relu(s{LAYERS - 1}) }}")


@pytest.fixture
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes every piece of further evidence too dear."""
    monkeypatch.setattr(budget, "_LEAST_SECONDS", 0.0)
    monkeypatch.setattr(budget, "_OF_PLAIN", 0.0)


@pytest.mark.usefixtures("no_time")
def test_few_faults_are_planted_without_time_and_the_report_says_so() -> None:
    found = verify_models(layers(), layers())
    assert found.equal
    assert found.power is not None
    assert found.power.tried == 1 + LEAST
    left = MOST - 1 - LEAST
    said = (
        f"left out to save time (a thorough verification includes this: --thorough): {left} of {MOST - 1} faults "
        "in weights"
    )
    assert said in found.notes


@pytest.mark.usefixtures("no_time")
def test_a_thorough_verification_leaves_nothing_out() -> None:
    found = verify_models(layers(), layers(), Verify(thorough=True))
    assert found.power is not None
    assert found.power.tried == MOST
    assert not any("left out to save time" in note for note in found.notes)


@pytest.mark.parametrize("thorough", [False, True])
@pytest.mark.usefixtures("no_time")
def test_a_wrong_model_differs_however_little_time_there_is(thorough: bool) -> None:
    found = verify_models(layers(), layers(factor=1.02), Verify(thorough=thorough))
    assert found.differs
    assert not found.outputs[0].equal


def test_a_wrong_file_differs_by_default(tmp_path: Path) -> None:
    files = [tmp_path / "a.onnx", tmp_path / "b.onnx"]
    save(layers(), files[0])
    save(layers(factor=1.02), files[1])
    report = onnxsmith.compare(*files).report
    assert report.verdict.value == "different"


SWAPPED = '<ir_version: 10, opset_import: ["": 20]> g (float[n,2] x) => (float[n,2] y) '
SWAPPED += "<float[2] z = {0, 0}> { a = Op(x) p = Mul(a, z) y = Add(p, x) }"


@pytest.mark.usefixtures("no_time")
def test_nodes_that_differ_are_looked_at_however_little_time_there_is(tmp_path: Path) -> None:
    files = [tmp_path / "a.onnx", tmp_path / "b.onnx"]
    for file, op in zip(files, ("Sin", "Cos"), strict=True):
        save(from_text(SWAPPED.replace("Op", op)), file)
    default, thorough = (onnxsmith.compare(*files, thorough=one).report for one in (False, True))
    assert default.verdict.value == thorough.verdict.value == "cannot-tell"
    assert "is Cos in one model and Sin in the other" in default.problems[0].what


def test_items_are_chosen_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(budget, "_seconds", lambda: now[0])
    plan = Budget()
    now[0] = 3.0
    plan.starts()
    assert plan.spent() == 0
    assert list(plan.few(range(101), 0.6, 2, "numbers")) == [0, 11, 22, 33, 44, 55, 66, 77, 88, 100]
    assert "91 of 101 numbers" in plan.notes()[0]
