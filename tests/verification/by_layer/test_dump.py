"""Values of tensors, chosen by name, are written and counted."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from onnxsmith import Report, dump
from onnxsmith.base.report.base import Table
from onnxsmith.base.report.parts.layers import ValueRow, Values, bars
from onnxsmith.cli.commands.inspect import Dump
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.verification.by_layer.value_bundle import read
from tests.conftest import Refused

TEXT = """<ir_version: 10, opset_import: ["": 21]>
g (float[n,4] x, int64 t) => (float[n,4] y, string s) <float[4] w = {1, 2, 3, 4}, string s = {"a"}> {
    attention_a = Mul(x, w)
    attention_b = Cast<to = 16>(attention_a)
    q = SequenceConstruct(x, w)
    true = Constant<value = bool {1}>()
    y = Loop(t, true, x) <body = b (int64 i, bool d, float[n,4] v) => (bool e, float[n,4] u) {
        u = Add(v, v)
        e = Identity(d)
    }>
}"""
X = np.array([[1, 0, np.nan, -np.inf]], np.float32)
FEEDS = {"x": X, "t": np.array(2)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save(from_text(TEXT), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def rows(result: Any) -> dict[str, ValueRow]:
    return {row.name: row for row in result.report.part(Values).rows}


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
@pytest.mark.parametrize("runtime", ["reference", "onnxruntime"])
def test_all_of_them(suffix: str, runtime: str, path: Path) -> None:
    target = path.with_suffix(suffix)
    result = dump(f"{path}@{runtime}", target, inputs=FEEDS, seed=5)
    assert result.path == target
    found = read(target)
    assert found.named("input") == ("x", "t")
    assert found.named("output") == ("y", "s")
    assert set(found.entries) == {"x", "t", "attention_a", "attention_b", "q", "y", "u", "e", "s"}
    np.testing.assert_array_equal(found.value("x"), X)
    wanted = (X * np.array([1, 2, 3, 4], np.float32)).astype(ml_dtypes.bfloat16)
    b = found.value("attention_b")
    assert isinstance(b, np.ndarray)
    assert b.dtype == wanted.dtype
    np.testing.assert_array_equal(b.astype(np.float32), wanted.astype(np.float32))
    u = found.value("u")
    assert isinstance(u, list)
    np.testing.assert_array_equal(u, [2 * X, 4 * X])
    assert found.entries["u"].path == ("y/body",)
    assert found.entries["u"].keys == ("u[0]", "u[1]")
    assert found.value("s").tolist() == "a"  # type: ignore[union-attr]
    assert found.about.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (found.about.runtime, found.about.seed) == (runtime, 5)
    assert set(found.about.versions) >= {"onnxsmith", "onnx", "numpy"}


def test_statistics(path: Path) -> None:
    found = rows(dump(path, inputs=FEEDS))
    x = found["x"].statistics
    assert x is not None
    assert (x.min, x.max, x.mean, x.std, x.nan, x.inf, x.zero) == (0, 1, 0.5, 0.5, 1, 1, 1)
    assert (found["x"].histogram[0], found["x"].histogram[-1], sum(found["x"].histogram)) == (1, 1, 2)
    assert found["u"].shapes == ((1, 4), (1, 4))
    assert sum(found["u"].histogram) == 4
    assert found["q"].shapes == ((1, 4), (4,))
    assert found["s"].statistics is None
    assert found["x"].roles == ("input",)


def test_statistics_may_be_left_out(path: Path) -> None:
    assert not any(
        row.statistics for row in rows(dump(path, path.with_suffix(".npz"), inputs=FEEDS, statistics=False)).values()
    )
    report = Dump(str(path)).run()
    assert any(row.statistics for row in report.part(Values).rows), "shown where nothing is written"
    assert not (path.parent / "m.npz.npz").exists()


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        (["attention_a"], ["attention_a"]),
        (["attention_*"], ["attention_a", "attention_b"]),
        (["u", "w"], ["u", "w"]),
        (["?"], ["w", "q", "u", "e", "i", "d", "v"]),
        (["[uv]"], ["v", "u"]),
    ],
)
def test_names_and_patterns(asked: list[str], wanted: list[str], path: Path) -> None:
    found = rows(dump(path, tensors=asked, inputs=FEEDS))
    assert sorted(found.keys() - {"x", "t", "y", "s"}) == sorted(wanted)
    assert {"x", "t", "y", "s"} < found.keys()


@pytest.mark.parametrize("asked", ["atention_a", "*nothing*", "[x", ""])
def test_what_matches_nothing(asked: str, path: Path, refused: Refused) -> None:
    with refused("model/unknown-tensor"):
        dump(path, tensors=[asked], inputs=FEEDS)


def test_inputs_are_generated_from_the_seed(path: Path) -> None:
    one, same, other = (dump(path, sizes={"n": 3}, seed=seed, inputs={"t": FEEDS["t"]}) for seed in (1, 1, 2))
    assert rows(one)["x"].shapes == ((3, 4),)
    assert rows(one)["x"].statistics == rows(same)["x"].statistics != rows(other)["x"].statistics
    given = dump(path, inputs={"x": np.zeros((5, 4), np.float32)})
    assert rows(given)["y"].shapes == ((5, 4),)


def test_the_budget_is_kept_and_told(path: Path) -> None:
    result = dump(path, inputs=FEEDS, budget=20)
    assert result.report.part(Values).runs > 3
    assert any("u is larger" in note for note in result.report.notes)
    assert rows(result).keys() == rows(dump(path, inputs=FEEDS)).keys()


def test_the_report_is_read_back_and_shown(path: Path) -> None:
    report = dump(path, inputs=FEEDS).report
    assert Report.from_json(report.to_json()) == report
    table = next(block for block in report.part(Values).blocks() if isinstance(block, Table))
    assert len(table.rows) == len(report.part(Values).rows)
    assert all(len(row) == len(table.head) for row in table.rows)


def test_bars() -> None:
    row = ValueRow("x", (), (), "", "float", "tensor", (), None, (0, 1, 8, 16))
    assert bars(row) == " ▁▄█"


@pytest.mark.parametrize("value", [0.0, 1e30, 3e38, -1e-45])
def test_constant_and_extreme_values(value: float, path: Path) -> None:
    found = rows(dump(path, inputs={"x": np.full((1, 4), value, np.float32), "t": np.array(0)}))["x"]
    assert found.histogram == (4,)
    assert rows(dump(path, inputs={**FEEDS, "t": np.array(0)}))["u"].shapes == ()


def test_an_input_that_is_refused_gives_way_to_another(tmp_path: Path) -> None:
    save(
        from_text(
            """<ir_version: 10, opset_import: ["": 21]>
g (float[n] x) => (float y) <int64 second = {1}> {
    parts = SplitToSequence<keepdims = 0>(x)
    y = SequenceAt(parts, second)
}"""
        ),
        tmp_path / "m.onnx",
    )
    found = dump(tmp_path / "m.onnx")
    assert found.ok
    assert any("but accepted this one" in note for note in found.report.notes)


def test_dimensions_without_a_name_get_a_size(tmp_path: Path) -> None:
    model = from_text('<ir_version: 10, opset_import: ["": 21]>\ng (float[?,3] x) => (float[?,3] y) { y = Neg(x) }')
    save(model, tmp_path / "m.onnx")
    assert rows(dump(tmp_path / "m.onnx"))["y"].shapes == ((1, 3),)


def test_targets_are_refused_before_anything_runs(path: Path, refused: Refused) -> None:
    with refused("bundle/suffix"):
        dump(path, path.with_suffix(".pt"))
    with refused("save/no-folder"):
        dump(path, path.parent / "nowhere" / "v.npz")
