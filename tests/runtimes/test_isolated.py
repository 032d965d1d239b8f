"""One process prepares one model after another, and is there again after a crash or a timeout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes._isolated import Isolated
from onnxsmith.runtimes.base import Options
from onnxsmith.runtimes.fake import Fake
from onnxsmith.runtimes.reference import Reference
from tests.conftest import Refused

HEAD = '<ir_version: 10, opset_import: ["": 20]> g '
NEGATED = from_text(HEAD + "(float[2] x) => (float[2] y) { y = Neg(x) }")
DOUBLED = from_text(HEAD + "(float[2] x) => (float[2] y) { y = Add(x, x) }")
QUOTIENT = from_text(HEAD + "(int64[1] x, int64[1] m) => (int64[1] y) { y = Div(x, m) }")
ENDLESS = from_text(
    HEAD
    + """(bool c, float[2] x) => (float[2] y) {
    y = Loop(, c, x) <body = b (int64 i, bool more, float[2] s) => (bool again, float[2] n) {
        again = Identity(more)
        n = Tanh(s)
    }>
}"""
)
X = {"x": np.array([1, 2], np.float32)}


@pytest.mark.parametrize("name", ["onnxruntime", "openvino", "reference"])
def test_one_model_after_another(name: str) -> None:
    with runtimes.get(name).preparer() as preparer:
        for model, factor in ((NEGATED, -1), (DOUBLED, 2), (NEGATED, -1)):
            np.testing.assert_array_equal(preparer.prepare(model).run(X)["y"], factor * X["x"])


@pytest.mark.parametrize("name", ["onnxruntime", "reference"])
def test_a_model_that_never_ends_is_stopped(name: str, refused: Refused) -> None:
    feeds: dict[str, Any] = {**X, "c": np.array(True)}
    with runtimes.get(name).preparer() as preparer:
        with refused("runtime/timeout"):
            preparer.prepare(ENDLESS, Options(time_limit=3)).run(feeds)
        np.testing.assert_array_equal(preparer.prepare(DOUBLED).run(X)["y"], 2 * X["x"])


def test_a_crash_is_survived(refused: Refused) -> None:
    fatal = {"x": np.array([-(2**63)]), "m": np.array([-1])}
    with runtimes.get("onnxruntime").preparer() as preparer:
        for _ in range(2):
            session = preparer.prepare(QUOTIENT)
            with refused("runtime/died"):
                session.run(fatal)
            with refused("runtime/died"):
                session.run(fatal)
            assert session.run({"x": np.array([12]), "m": np.array([4])})["y"] == [3], "it starts again"
        assert preparer.prepare(QUOTIENT).run({"x": np.array([12]), "m": np.array([4])})["y"] == [3]


def test_a_session_ends_with_the_next_model(refused: Refused) -> None:
    with runtimes.get("onnxruntime").preparer() as preparer:
        first = preparer.prepare(NEGATED)
        preparer.prepare(DOUBLED)
        with refused("runtime/closed"):
            first.run(X)


def test_a_refusal_harms_nobody(refused: Refused) -> None:
    bad = from_text(HEAD + "(float[2] x) => (float[2] y) { y = Geluu(x) }")
    with runtimes.get("onnxruntime").preparer() as preparer:
        with refused("runtime/unknown-operator"):
            preparer.prepare(bad)
        assert preparer.prepare(NEGATED).run(X)["y"][0] == -1


def test_what_openvino_is_not_asked_harms_nobody(refused: Refused) -> None:
    double = from_text(HEAD + "(double[2] x) => (double[2] y) { y = Neg(x) }")
    with runtimes.get("openvino").preparer() as preparer:
        first = preparer.prepare(NEGATED)
        with refused("runtime/dtype-unsupported"):
            preparer.prepare(double)
        assert first.run(X)["y"][0] == -1
        assert preparer.prepare(DOUBLED).run(X)["y"][0] == 2


def test_a_runtime_without_a_process_prepares_one_by_one() -> None:
    with Fake().preparer() as preparer:
        assert preparer.prepare(NEGATED).run(X)["y"].shape == (2,)
        assert preparer.prepare(DOUBLED).run(X)["y"].shape == (2,)


def test_a_trace_passes_over_what_fails(tmp_path: Any) -> None:
    from onnxsmith.graph.files.save import save

    model = from_text(
        HEAD
        + """(float[2] x) => (float[3] z) <float[3] w = {1, 2, 3}> {
        a = Tanh(x)
        bad = Add(a, w)
        lost = Neg(bad)
        z = Neg(w)
    }"""
    )
    save(model, tmp_path / "m.onnx")
    with Reference().preparer() as preparer:
        found = preparer.trace(tmp_path / "m.onnx", X)
    assert set(found) == {"a", "z"}


@pytest.mark.parametrize("name", ["onnxruntime", "openvino", "reference"])
def test_several_sessions_in_one_process(name: str) -> None:
    with runtimes.get(name).preparer(keep=2) as preparer:
        first, second = preparer.prepare(NEGATED), preparer.prepare(DOUBLED)
        for session, factor in ((first, -1), (second, 2), (first, -1)):
            np.testing.assert_array_equal(session.run(X)["y"], factor * X["x"])


def test_the_oldest_session_ends_when_more_are_prepared_than_are_kept(refused: Refused) -> None:
    with runtimes.get("onnxruntime").preparer(keep=2) as preparer:
        first, second, third = (preparer.prepare(model) for model in (NEGATED, DOUBLED, NEGATED))
        with refused("runtime/closed"):
            first.run(X)
        assert second.run(X)["y"][0] == 2
        assert third.run(X)["y"][0] == -1
        second.close()
        assert third.run(X)["y"][0] == -1


def test_two_levels_of_optimisation_in_one_process(refused: Refused) -> None:
    with runtimes.get("onnxruntime").prepare(NEGATED) as session:
        plain = session.at("disable")
        assert session.at("all") is session
        assert session.at("disable") is plain
        assert (session.run(X)["y"][0], plain.run(X)["y"][0]) == (-1, -1)
    with refused("runtime/closed"):
        plain.run(X)


def test_a_runtime_without_levels_has_one_session() -> None:
    with runtimes.get("openvino").prepare(NEGATED) as session:
        assert session.at("disable") is session


def test_a_crash_of_one_session_does_not_end_the_others(refused: Refused) -> None:
    fatal = {"x": np.array([-(2**63)]), "m": np.array([-1])}
    with runtimes.get("onnxruntime").preparer(keep=2) as preparer:
        fragile, other = preparer.prepare(QUOTIENT), preparer.prepare(NEGATED)
        plain = other.at("disable")
        with refused("runtime/died"):
            fragile.run(fatal)
        assert (other.run(X)["y"][0], plain.run(X)["y"][0]) == (-1, -1)
        assert fragile.run({"x": np.array([12]), "m": np.array([4])})["y"] == [3]


def test_a_crash_counts_where_a_session_is_alone_in_its_process() -> None:
    with Isolated("tests.runtimes.fragile", "a fragile runtime", keep=2) as preparer:
        first, second = preparer.prepare(NEGATED), preparer.prepare(DOUBLED)
        np.testing.assert_array_equal(second.run(X)["y"], X["x"])
        np.testing.assert_array_equal(first.run(X)["y"], X["x"])
