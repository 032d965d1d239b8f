"""A child that waits for the next model: taken again, never with what it held, not when it was started otherwise."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator

import numpy as np
import pytest

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.files.text import from_text
from onnxsmith.runtimes import _idle
from onnxsmith.runtimes.base import get

NEG = '<ir_version: 10, opset_import: ["": 20]>\ng (float[n] x) => (float[n] y) { y = Neg(x) }'
X = {"x": np.ones(3, np.float32)}


@pytest.fixture(autouse=True)
def nobody_waits() -> Iterator[None]:
    _idle.end_all()
    yield
    _idle.end_all()


def waiting() -> list[int]:
    return [one.child.pid for present in _idle._waiting.values() for one in present]


def used(text: str = NEG, runtime: str = "reference") -> float:
    with get(runtime).prepare(from_text(text)) as session:
        return float(session.run(X)["y"][0])


@pytest.mark.parametrize("runtime", ["reference", "onnxruntime"])
def test_the_next_model_gets_the_same_process(runtime: str) -> None:
    assert used(runtime=runtime) == -1
    (first,) = waiting()
    assert used(NEG.replace("Neg", "Abs"), runtime) == 1
    assert waiting() == [first]


def test_two_at_once_have_their_own() -> None:
    with get("reference").prepare(from_text(NEG)) as a, get("reference").prepare(from_text(NEG)) as b:
        a.run(X)
        b.run(X)
        assert waiting() == []
    both = waiting()
    assert len(both) == 2
    with get("reference").prepare(from_text(NEG)) as a, get("reference").prepare(from_text(NEG)) as b:
        a.run(X)
        b.run(X)
        assert waiting() == []
    assert sorted(waiting()) == sorted(both)


def test_of_three_at_once_two_wait() -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(get("reference").prepare(from_text(NEG))).run(X)
    assert len(waiting()) == 2


def test_one_that_was_killed_is_not_taken() -> None:
    used()
    (first,) = waiting()
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)  # until it is dead; who started it still sees it end
    assert used() == -1
    assert waiting() != [first]


def test_another_environment_starts_another(monkeypatch: pytest.MonkeyPatch) -> None:
    used()
    (first,) = waiting()
    monkeypatch.setenv("OMP_NUM_THREADS", "1" if os.environ.get("OMP_NUM_THREADS") != "1" else "2")
    used()
    assert len(waiting()) == 1
    assert waiting() != [first]


def test_one_that_grew_large_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_idle, "_LARGEST", 1)
    used()
    assert waiting() == []


def test_it_ends_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_idle, "_PATIENCE", 0.05)
    used()
    until = time.monotonic() + 10
    while waiting() and time.monotonic() < until:
        time.sleep(0.02)
    assert waiting() == []


def test_a_model_that_is_refused_does_no_harm_to_the_next() -> None:
    with pytest.raises(OnnxsmithError):
        used(NEG.replace("Neg(x)", "Nonsense(x)"))
    assert used() == -1
