"""Runs are timed where the model runs, on inputs that are sent once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_ir import to_proto

from onnxsmith.base.system import machine, usage
from onnxsmith.graph.files.text import from_text
from onnxsmith.runtimes import base
from onnxsmith.runtimes._isolated import Isolated
from onnxsmith.runtimes._timing import measured
from tests.conftest import Refused

TEXT = '<ir_version: 10, opset_import: ["": 20]> g (float[n] x) => (float[n] y) { y = Exp(x) }'
FEEDS = {"x": np.zeros(3, np.float32)}


def test_a_sample_has_several_calls() -> None:
    calls: list[int] = []
    found = measured(lambda: calls.append(1), runs=5, inner=3)
    assert len(found) == 5
    assert len(calls) == 15
    assert all(one > 0 for one in found)


def test_a_budget_ends_it_after_at_least_one_sample() -> None:
    assert len(measured(lambda: None, runs=10**6, budget=1e-9)) == 1


@pytest.mark.parametrize("name", ["onnxruntime", "openvino", "tract", "reference"])
def test_a_child_times_and_gets_its_inputs_once(name: str, monkeypatch: pytest.MonkeyPatch, refused: Refused) -> None:
    asked: list[tuple[str, int]] = []
    ask = Isolated.ask

    def seen(self: Isolated, request: dict[str, Any], feeds: Any = None, **more: Any) -> Any:
        asked.append((request["do"], len(feeds or ())))
        return ask(self, request, feeds, **more)

    monkeypatch.setattr(Isolated, "ask", seen)
    with base.get(name).prepare(from_text(TEXT)) as session:
        timer = session.timer(FEEDS)
        assert len(timer.samples(4, 2, 0.0)) == 4
        assert len(timer.samples(3, 1, 0.0)) == 3
        np.testing.assert_array_equal(session.run(FEEDS)["y"], np.ones(3, np.float32))
        with refused("run/wrong-dtype"):
            session.timer({"x": np.zeros(3)})
    assert [one for one in asked if one[0] in ("hold", "time")] == [("hold", 1), ("time", 0), ("time", 0)]


@pytest.mark.parametrize(
    ("name", "call"),
    [("onnxruntime", "run_with_iobinding"), ("openvino", "infer of"), ("tract", "run on tensors"), ("web", "in node")],
)
def test_the_call_that_adds_least_is_timed(name: str, call: str) -> None:
    if base.get(name).missing() is not None:
        pytest.skip(f"{name} is not here")
    with base.get(name).prepare(from_text(TEXT)) as session:
        timer = session.timer(FEEDS)
        assert call in timer.where
        assert len(timer.samples(3, 2, 0.0)) == 3
        assert len(timer.samples(10**6, 1, 0.02)) < 10**6


def test_a_timed_run_of_onnxruntime_adds_little() -> None:
    """Beside the library's own loop: a call that makes values for each input and output takes ten times as long."""
    onnxruntime = pytest.importorskip("onnxruntime")
    proto = to_proto(from_text(TEXT))
    plain = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    with base.get("onnxruntime").prepare(from_text(TEXT)) as session:
        timer = session.timer(FEEDS)
        timer.samples(500, 1, 0.0)
        ours = min(timer.samples(3000, 1, 0.0))
        theirs = min(measured(lambda: plain.run(None, FEEDS), runs=3000))
    assert ours < 2 * theirs


@pytest.mark.parametrize("name", ["onnxruntime", "web"])
def test_strings_are_timed_with_their_conversions(name: str) -> None:
    if base.get(name).missing() is not None:
        pytest.skip(f"{name} is not here")
    text = '<ir_version: 10, opset_import: ["": 20]> g (string[n] x) => (string[n] y) { y = Identity(x) }'
    with base.get(name).prepare(from_text(text)) as session:
        timer = session.timer({"x": np.array(["a", "b"], object)})
        assert len(timer.samples(3, 1, 0.0)) == 3


def test_a_runtime_without_a_process_is_timed_from_here() -> None:
    with base.get("fake").prepare(from_text(TEXT)) as session:
        timer = session.timer(FEEDS)
        assert timer.where.startswith("around the whole call")
        assert len(timer.samples(2, 1, 0.0)) == 2


def test_a_preparer_says_which_process_is_its_own() -> None:
    with base.get("onnxruntime").preparer() as preparer:
        process = preparer.start()
        assert process is not None
        assert preparer.start() == process
        if isinstance(usage.HERE, usage.ProcFiles):
            assert (usage.HERE.peak(process) or 0) >= (usage.HERE.resident(process) or 0) > 0
    assert base.get("fake").preparer().start() is None


def test_the_machine() -> None:
    here = machine.HERE
    assert here.cores() >= 1
    assert isinstance(here.processor(), str)
    if isinstance(here, machine.ProcFiles):
        counters = here.counters()
        assert counters is not None
        assert counters.busy > 0
    assert machine.Unknown().counters() is None
