"""What a probe moves, and by how much."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure.signature import Signature, signature
from onnxsmith.graph.surgery.weights_as_inputs import additions, adjustable
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Outputs, Session
from onnxsmith.verification import probe as room
from onnxsmith.verification.inputs.generate import Feed
from onnxsmith.verification.probe import ADDED, EACH, TABLE, Probe, planted

HEAD = '<ir_version: 10, opset_import: ["": 20]> '
MODEL = HEAD + "g (float[2] x) => (float[2] y) { y = Neg(x) }"


class _Recorder(Session):
    """A session that answers with what it was given."""

    provider = "tests"

    def __init__(self, model: ir.Model) -> None:
        self.signature = signature(model)
        self.given: list[dict[str, Any]] = []

    def run(self, feeds: Mapping[str, Any]) -> Outputs:
        self.given.append(dict(feeds))
        return dict(feeds)


def weighted(**weights: Any) -> ir.Model:
    """A model that adds weights to its input."""
    model = from_text(MODEL)
    last = model.graph.node(0)
    for name, values in weights.items():
        value = ir.Value(name=name, const_value=ir.tensor(np.asarray(values), name=name))
        model.graph.register_initializer(value)
        model.graph.insert_before(last, ir.Node("", "Identity", [value], num_outputs=1))
    return model


def moved(model: ir.Model, x: Any, **how: bool) -> dict[str, Any]:
    """The values that the session got, inputs and weights."""
    with Probe(model, _Recorder) as probe:
        found = probe.moved(Feed("any", {}, {"x": np.asarray(x)}), 0, **how)
    assert found is not None
    return dict(found)


def test_of_many_large_weights_some_move_and_every_small_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_MOST_MOVED", 2**17)
    small = np.ones(2**14, np.float32)  # 64 KiB
    large = np.ones(2**14 + 1, np.float32)
    # 262,156 bytes of weights are 3 times 131,072, rounded up: of the large ones, the first of each three moves
    assert set(moved(weighted(a=large, b=small, c=large, d=large), [1.1, 1.1])) == {"x", "a", "b"}
    # 131,072 bytes are not too many
    assert set(moved(weighted(a=small, b=small), [1.1, 1.1])) == {"x", "a", "b"}


def test_labels_that_are_only_put_somewhere_stay() -> None:
    """A mask that compares regions would come out otherwise if one element of a label moved."""
    model = from_text(
        '<ir_version: 10, opset_import: ["": 20]> g (float[4] x) => (float[9] z) '
        "<float[2] label = {5.0, 5.0}, float[3] fraction = {0.3, 0.3, 0.3}, float[9] scale = "
        "{2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0}>"
        " { y = Concat<axis = 0>(x, label, fraction) z = Mul(y, scale) }"
    )
    with Probe(model, _Recorder) as probe:
        found = probe.moved(Feed("any", {}, {"x": np.float32([1.1, 1.2, 1.3, 1.4])}), 0)
    assert found is not None
    assert (np.asarray(found["label"]) == 5).all()
    assert (np.asarray(found["fraction"]) != np.float32(0.3)).any()
    assert (np.asarray(found["scale"]) != 2).any()


def test_inputs_of_few_digits_stay_unless_everything_moves() -> None:
    x = np.float32([0.1, 2.5, 1 / 256, 1 / 512])
    here = moved(weighted(), x)["x"]
    assert list(here[1:3]) == [2.5, 1 / 256]
    assert np.all(np.abs(here - x) <= np.float32(2**-23) * np.abs(x) * 1.5)
    whole = [moved(weighted(), np.full(100, 2.5, np.float32), whole=flag)["x"] for flag in (False, True)]
    ulps = [set(np.unique((one - 2.5) / np.float32(2**-22))) for one in whole]
    assert ulps == [{0}, {-2, -1, 0, 1, 2}]  # of 2^-22, the distance to the next number; moved by up to 1.5 * 2.5 / 2
    assert np.array_equal(moved(weighted(), x, inputs=False)["x"], x)


# Faults


MANY = np.full(10_000, 2.0, np.float32)


@pytest.mark.parametrize(
    "value",
    [np.zeros(3, np.float32), np.zeros(0, np.float32), np.full(2, np.inf, np.float32), np.ones(2, np.complex64)],
)
def test_nothing_is_planted_where_nothing_can_be_changed(value: Any) -> None:
    assert planted(value, 0.01, False, 0) is None


def test_a_fault_changes_each_element_by_a_share_of_itself() -> None:
    value = np.array([1.0, -4.0, 0.0, np.inf])
    made = planted(value, 0.25, False, 0)
    assert made is not None
    assert list(np.abs(made[:3] - value[:3])) == [0.25, 1.0, 0.0]
    assert made[3] == np.inf
    made = planted(MANY, 0.25, False, 0)
    assert made is not None
    assert set(np.unique(made)) == {1.5, 2.5}
    assert (made == 1.5).mean() == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(("share", "manner", "size"), [(1.0, EACH, 2.0), (4.0, EACH, 2.0), (0.5, ADDED, 1.0)])
def test_a_large_or_an_added_fault_is_measured_by_the_whole_tensor(share: float, manner: str, size: float) -> None:
    value = np.concatenate([np.full(10_000, 2 * 2**0.5), np.zeros(10_000)])  # its root mean square is 2
    made = planted(value, share, False, 0, manner=manner)
    assert made is not None
    for part in (slice(0, 10_000), slice(10_000, None)):
        assert np.std(made[part] - value[part]) == pytest.approx(size, rel=0.03)


@pytest.mark.parametrize(
    ("share", "changed", "by"),
    [(0.005, 0.25, 1), (0.01, 1.0, 1), (0.03, 1.0, 3), (1e-9, 1e-4, 1)],  # 0.5, 1, 3 and no steps; one changes at least
)
def test_levels_change_by_whole_steps(share: float, changed: float, by: int) -> None:
    value = np.full(10_000, 100, np.uint8)
    made = planted(value, share, True, 0)
    assert made is not None
    assert made.dtype == np.uint8
    moves = np.abs(made.astype(int) - 100)
    assert set(np.unique(moves[moves > 0])) == {by}
    assert (moves > 0).mean() == pytest.approx(changed, rel=0.05)


def test_levels_stay_within_their_dtype() -> None:
    made = planted(np.array([127, -128] * 50, np.int8), 0.03, True, 0)
    assert made is not None
    assert set(np.unique(made)) == {
        123,
        127,
        -124,
        -128,
    }  # 0.03 of 127.5 are 4 steps, where there is room


@pytest.mark.parametrize(
    ("table", "is_one"),
    [
        ([0.0, 1.0, 2.0], True),
        ([0.0, -1e9], True),  # a mask
        ([0.25, 0.0, 0.25], True),
        ([0.25, 0.5, 0.25], False),  # two values, neither of them 0
        ([0.25, 0.0, -0.25], False),
        ([3.0, 3.0], False),
        ([3.0], False),
    ],
)
def test_other_values_of_a_table_take_their_place(table: list[float], is_one: bool) -> None:
    value = np.array(table * 20, np.float32)
    value = value if len(table) > 1 else value[:1]
    made = planted(value, 0.5, False, 0, manner=TABLE)
    assert (made is not None) == is_one
    if made is not None:
        assert set(np.unique(made)) <= set(table)
        assert 0.2 < (made != value).mean() < 0.8


def test_a_table_has_one_other_value_at_least() -> None:
    value = np.arange(1000.0)
    made = planted(value, 1e-9, False, 0, manner=TABLE)
    assert made is not None
    assert (made != value).sum() == 1


TWO = HEAD + "g (float[n,2] x) => (float[n,2] y) <float[2,2] a = {1.5, 2.5, 0.5, 3}, float[2] b = {2, 0.5}> "


def test_a_file_is_extended_to_the_same_probe_as_a_rewritten_model(tmp_path: Path) -> None:
    model, file = from_text(TWO + "{ p = MatMul(x, a) y = Add(p, b) }"), tmp_path / "m.onnx"
    save(model, file)
    feed = Feed("any", {}, {"x": np.float32([[1, 2]])})
    preparer = runtimes.get("onnxruntime").preparer(keep=2)

    def extend(read: ir.Model, added: bytes, interface: Signature) -> Session | None:
        return preparer.extended(file, read, added, interface)

    def refused(_: ir.Model) -> Session:
        raise AssertionError("the file was rewritten")

    with preparer, Probe(file, refused, extend=extend) as extended, Probe(model, preparer.prepare) as rewritten:
        answers = [
            [probe.plain(feed), probe.moved(feed, 1), probe.faulty(feed, probe.weights[0], 0.5, 0)]
            for probe in (extended, rewritten)
            if probe.start()
        ]
        assert [one.name for one in extended.weights] == [one.name for one in rewritten.weights] == ["a", "b"]
    values = [[one["y"].tolist() for one in each if one is not None] for each in answers]
    assert values[0] == values[1]
    assert len({str(one) for one in values[0]}) == 3


def test_a_weight_in_a_constant_node_is_not_reached_by_extending_the_file() -> None:
    text = "g (float[2] x) => (float[2] y) { c = Constant <value = float[2] {1.5, 2.5}> () y = Mul(x, c) }"
    model = from_text(HEAD + text)
    assert additions(model) is None
    assert [one.name for one in adjustable(model)[1]] == ["c"]
