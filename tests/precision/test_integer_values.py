"""Without data, whole numbers of unknown size stay in float32, and so does what is computed from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import onnxsmith
from onnxsmith.base.report.parts.quantisation import Quantisation
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.precision import declared_ranges
from onnxsmith.precision.integer_values import of_unknown_size
from tests.conftest import Refused

HEAD = '<ir_version: 8, opset_import: ["": 17]> '
MOST, EXACT = 65504 / 2, 2048.0


def wide(text: str, declared: dict[str, tuple[int, int]] | None = None, *, others: bool = True) -> set[str]:
    model = inferred(from_text(HEAD + text))[0]
    return {value.name or "" for value in of_unknown_size(model, MOST, EXACT, declared or {}, others=others)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # of an input, and what is computed from it
        ("g (int64[n] i) => (float[n] y) { a = Cast<to = 1>(i) y = Mul(a, a) }", {"a", "y"}),
        ("g (int64[n] i, float[n] x) => (float[n] y) { a = Cast<to = 1>(i) y = Add(a, x) }", {"a", "y"}),
        (("g (int32[n,k] i) => (float[n] y) <int64[1] one = {1}> { s = ReduceSum<keepdims = 0>(i, one)"
         " y = Cast<to = 1>(s) }"), {"y"}),
        # of a shape, a range, a count
        ("g (float[n,4] x) => (float y) { s = Size(x) y = Cast<to = 1>(s) }", {"y"}),
        (("g (float[n] x) => (float[m] y) <int64 zero = {0}, int64 one = {1}> { s = Size(x) r = Range(zero, s, one)"
         " y = Cast<to = 1>(r) }"), {"y"}),
        (("g (bool[n] b) => (float y) <int64[1] axis = {0}> { a = Cast<to = 1>(b)"
         " y = ReduceSum<keepdims = 0>(a, axis) }"), {"y"}),
        ("g (int64[n] ids, int64[k] i) => (float[k] y) { p = Gather(ids, i) y = Cast<to = 1>(p) }", {"y"}),
        # too large for every whole number to be exact
        ("g (int16[n] i) => (float[n] y) { y = Cast<to = 1>(i) }", {"y"}),
        ("g (uint8[n] i) => (float[n] y) { a = Cast<to = 1>(i) y = Mul(a, a) }", {"y"}),
        ("g (uint8[n] i) => (float[n] y) <float two = {2}> { a = Cast<to = 1>(i) y = Pow(a, two) }", {"y"}),
        # angles need more than their size
        ("g (uint8[n] i) => (float[n] y) <float f = {0.7}> { a = Cast<to = 1>(i) b = Mul(a, f) c = Neg(b) y = Sin(c) }",
         {"b", "c"}),
    ],
)  # fmt: skip
def test_what_may_not_fit(text: str, expected: set[str]) -> None:
    assert wide(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "g (int64[n] i) => (float[n,4] y) <float[2,4] table = {1, 2, 3, 4, 5, 6, 7, 8}> { y = Gather(table, i) }",
        "g (int64[n] i, float[k,4] x) => (float[n,4] y) { y = Gather(x, i) }",
        (
            "g (int64[n] i, float[n] x) => (float[n] y) <int64 zero = {0}, float low = {-10000.0}>"
            " { m = Equal(i, zero) y = Where(m, low, x) }"
        ),
        (
            "g (bool[n] b, float[n] x) => (float[n] y) <float low = {-10000.0}> { a = Cast<to = 1>(b) c = Mul(a, low)"
            " y = Add(c, x) }"
        ),
        "g (uint8[n,3,8,8] i) => (float[n,3,8,8] y) <float scale = {255}> { a = Cast<to = 1>(i) y = Div(a, scale) }",
        (
            "g (float[n,64] x) => (float[n,64] y) <int64 one = {1}> { s = Shape(x) d = Gather(s, one)"
            " f = Cast<to = 1>(d) r = Sqrt(f) y = Div(x, r) }"
        ),
        (
            "g (bool[4,16] b) => (float[4] y) <int64[1] axis = {1}> { a = Cast<to = 1>(b)"
            " y = ReduceSum<keepdims = 0>(a, axis) }"
        ),
    ],
)
def test_what_fits(text: str) -> None:
    assert wide(text) == set()


def test_an_operator_that_forgets_the_size_ends_it() -> None:
    text = """g (int64[n,k] mask, float[n,k] x) => (float[n,k] y) <float low = {-10000.0}> {
        m = Cast<to = 1>(mask) b = Mul(m, low) s = Add(x, b) p = Softmax(s) y = Mul(p, x)
    }"""
    assert wide(text) == {"m", "b", "s"}


def test_a_division_by_a_length_ends_it() -> None:
    text = """g (float[n] x) => (float[n] y) <int64 one = {1}> {
        s = Size(x) c = Max(s, one) d = Cast<to = 1>(c) a = Div(x, d) y = Neg(a)
    }"""
    assert wide(text) == {"d"}


COUNTED = """g (int64[n] i, float[n,64] x) => (float[n] z, float[n,64] y) <float big = {65536}> {
    [count] a = Cast<to = 1>(i)
    [share] b = Div(big, a)
    [z] z = Relu(b)
    [product] y = MatMul(x, w)
}"""


def saved(tmp_path: Path) -> Path:
    made = parser.parse_model(HEAD + COUNTED)
    weight = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    made.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    onnx.save(made, tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_large_numbers_come_out_as_before(tmp_path: Path) -> None:
    out = tmp_path / "n.onnx"
    report = onnxsmith.quantize(saved(tmp_path), out, to="float16", measure_time=False).report
    feeds = {"i": np.array([65536, 13768], np.int64), "x": np.zeros((2, 64), np.float32)}
    assert np.allclose(onnxsmith.run(out, feeds).outputs["z"], [1, 65536 / 13768], rtol=1e-6)
    part = report.part(Quantisation)
    assert {one.name for one in part.kept} == {"count", "share", "z"}
    assert all("whole numbers from input i, of unknown size" in one.kept for one in part.kept)
    assert any(note.startswith("3 nodes stay in float32, because whole numbers of unknown size") for note in part.notes)
    assert "1 of 4 layers became float16" in report.headline


def test_data_shows_that_they_fit(tmp_path: Path) -> None:
    def data() -> object:
        rng = np.random.default_rng(1)
        for _ in range(8):
            yield {"i": np.arange(90, 94), "x": rng.normal(size=(4, 64)).astype(np.float32)}, None

    source = saved(tmp_path)
    report = onnxsmith.quantize(source, to="float16", data=list(data()), measure_time=False).report
    assert not any("whole numbers" in one.kept for one in report.part(Quantisation).layers)


TWO = "g (int64[n] i, int64[n] j) => (float[n] y, float[n] z) { y = Cast<to = 1>(i) z = Cast<to = 1>(j) }"


@pytest.mark.parametrize(
    ("declared", "others", "expected"),
    [
        ({}, True, {"y", "z"}),
        ({"i": (0, 2048)}, True, {"z"}),
        ({"i": (-2049, 0)}, True, {"y", "z"}),
        ({"i": (0, 2048), "j": (5, 6)}, True, set()),
        ({"i": (0, 50000)}, False, {"y"}),
        ({"i": (0, 7)}, False, set()),
    ],
)
def test_a_declared_range_bounds_what_is_made_of_an_input(
    declared: dict[str, tuple[int, int]], others: bool, expected: set[str]
) -> None:
    assert wide(TWO, declared, others=others) == expected


def test_a_declared_range_decides_what_becomes_float16(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    with onnxsmith.build(tmp_path / "m.onnx", opset=17) as g:
        ids = g.Cast(g.input("ids", "int64", ["n", 64]), to="float32")
        hidden = g.Tanh(g.MatMul(ids, g.weight("a", (draw.normal(size=(64, 64)) / 4096).astype(np.float32))))
        g.output("y", g.MatMul(hidden, g.weight("b", draw.normal(size=(64, 64)).astype(np.float32))))

    def narrow(*ranges: str, data: Any = None) -> int:
        result = onnxsmith.quantize(tmp_path / "m.onnx", to="float16", ranges=ranges, data=data, measure_time=False)
        assert result.ok, result.report.problems
        return sum(not layer.kept for layer in result.report.part(Quantisation).layers)

    rows = [({"ids": draw.integers(0, 9, (2, 64))}, None) for _ in range(40)]
    every = narrow("ids=0..2000")
    assert narrow() < every
    assert narrow("ids=0..60000") < every
    assert narrow(data=rows) >= every
    assert narrow("ids=0..60000", data=rows) < narrow(data=rows), (
        "the data has only small numbers, the program has large ones"
    )


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("ids", "--range input_ids=0..50000"),
        ("ids=0-5", "--range input_ids=0..50000"),
        ("id=0..5", "--range ids=0..5"),
        ("ids=5..1", "--range ids=0..50000"),
        ("ids=0..9223372036854775808", "--range ids=0..50000"),
        ("x=0..5", "give --data"),
    ],
)
def test_what_is_no_range_is_refused(text: str, fix: str, refused: Refused) -> None:
    model = from_text(HEAD + "g (int64[n] ids, float[n] x) => (float[n] y) { a = Cast<to = 1>(ids) y = Add(a, x) }")
    with refused("quantize/range") as refusal:
        declared_ranges.read([text], model)
    assert refusal.problem is not None
    assert fix in refusal.problem.fix


def test_a_method_that_uses_no_ranges_refuses_them(refused: Refused) -> None:
    model = from_text(HEAD + "g (int64[n] ids) => (float[n] y) { y = Cast<to = 1>(ids) }")
    with refused("quantize/range"):
        onnxsmith.quantize(model, to="int8", ranges={"ids": (0, 5)})
