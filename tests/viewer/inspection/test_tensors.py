"""Tensors of every dtype: their statistics and values."""

from __future__ import annotations

import math
import tracemalloc
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.item_views import Statistics, TensorRow, TensorTable, TensorView
from onnxsmith.graph.reading.statistics import statistics
from onnxsmith.viewer.inspection.inspect import inspect


def holding(proto: onnx.TensorProto) -> onnx.ModelProto:
    """A model that gives out the initializer `proto`, called `w`."""
    proto.name = "w"
    value = helper.make_tensor_value_info("y", proto.data_type, list(proto.dims))
    node = helper.make_node("Identity", ["w"], ["y"], name="pass")
    graph = helper.make_graph([node], "holder", [], [value], [proto])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)


def tensor(array: np.ndarray) -> onnx.TensorProto:
    return ir.to_proto(ir.Tensor(array, name="w"))


def seen(proto: onnx.TensorProto) -> tuple[TensorRow, TensorView]:
    """The tensor's line in the table, and its own view, both through JSON."""
    report = inspect(holding(proto), tensors=True)
    view = inspect(holding(proto), name="w")
    for each in (report, view):
        assert Report.from_json(each.to_json()) == each
        assert all(list(part.blocks()) for part in each.parts)
    (row,) = report.part(TensorTable).rows
    return row, view.part(TensorView)


FLOATS = [0.0, -0.0, 0.5, -1.5, math.nan, math.inf, -math.inf]


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2], ids=lambda d: d.__name__
)
def test_floats_with_everything(dtype: type) -> None:
    row, view = seen(tensor(np.array(FLOATS, dtype=dtype)))
    assert row.statistics == Statistics(-1.5, 0.5, -0.25, pytest.approx(0.75), nan=1, inf=2, zero=2)
    assert view.statistics == row.statistics
    assert view.values == ("0.0", "-0.0", "0.5", "-1.5", "nan", "inf", "-inf")
    assert row.where == view.where == "inline"


@pytest.mark.parametrize(
    ("dtype", "values", "shown"),
    [
        (ml_dtypes.float8_e4m3fn, [448, -0.001953125, math.nan], ("448.0", "-0.001953125", "nan")),
        (ml_dtypes.float8_e4m3fnuz, [240, 0.5, math.nan], ("240.0", "0.5", "nan")),
        (ml_dtypes.float8_e5m2fnuz, [57344, 0.5, math.nan], ("57344.0", "0.5", "nan")),
        (ml_dtypes.float8_e8m0fnu, [2.0**-127, 4, math.nan], ("5.877471754111438e-39", "4.0", "nan")),
        (ml_dtypes.float4_e2m1fn, [6, -0.5, 1.5], ("6.0", "-0.5", "1.5")),
        (ml_dtypes.int4, [-8, 7, 0], ("-8", "7", "0")),
        (ml_dtypes.uint4, [15, 0, 3], ("15", "0", "3")),
        (ml_dtypes.int2, [-2, 1, 0], ("-2", "1", "0")),
        (ml_dtypes.uint2, [3, 0, 1], ("3", "0", "1")),
        (np.int64, [2**63 - 1, -(2**63), 0], ("9223372036854775807", "-9223372036854775808", "0")),
        (np.uint64, [2**64 - 1, 1, 0], ("18446744073709551615", "1", "0")),
        (np.int8, [-128, 127, 0], ("-128", "127", "0")),
        (np.bool_, [True, False, True], ("true", "false", "true")),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_narrow_and_wide_dtypes(dtype: type, values: list[float], shown: tuple[str, ...]) -> None:
    row, view = seen(tensor(np.array(values).astype(dtype) if dtype is not np.uint64 else np.array(values, dtype)))
    assert view.values == shown
    finite = [value for value in values if math.isfinite(value)]
    stats = row.statistics
    assert stats is not None
    assert (stats.min, stats.max) == (min(finite), max(finite))
    assert stats.mean == pytest.approx(np.mean(np.array(finite, dtype=float)))
    assert stats.std == pytest.approx(np.std(np.array(finite, dtype=float)))
    assert (stats.nan, stats.zero) == (len(values) - len(finite), finite.count(0))


def test_every_value_reads_back_exactly() -> None:
    drawn = np.random.default_rng(0).standard_normal(64).astype(np.float32)
    _, view = seen(tensor(drawn))
    assert [float(text) for text in view.values] == drawn.astype(np.float64).tolist()


def test_complex_statistics_are_of_magnitudes() -> None:
    row, view = seen(tensor(np.array([3 + 4j, 0, complex(math.nan, 1), complex(1, math.inf)], dtype=np.complex64)))
    assert row.statistics == Statistics(0.0, 5.0, 2.5, 2.5, nan=1, inf=1, zero=1)
    assert view.values == ("(3+4j)", "0j", "(nan+1j)", "(1+infj)")


def test_strings_have_values_and_no_statistics() -> None:
    texts = onnx.TensorProto(data_type=TensorProto.STRING, dims=[2, 2])
    texts.string_data.extend([b"a\0", "ü".encode(), b"\xff", b""])
    row, view = seen(texts)
    assert (row.dtype, row.shape, row.bytes, row.statistics, row.trouble) == ("string", (2, 2), 5, None, "")
    assert view.values == ("'a\\x00'", "'ü'", "b'\\xff'", "''")


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, ml_dtypes.int4, np.complex64, np.bool_])
def test_empty_and_scalar(dtype: type) -> None:
    row, view = seen(tensor(np.empty((0, 3), dtype=dtype)))
    assert row.shape == (0, 3)
    assert row.statistics == Statistics(None, None, None, None, nan=0, inf=0, zero=0)
    assert (view.values, view.elements) == ((), 0)
    row, view = seen(tensor(np.array(1, dtype=dtype)))
    assert row.shape == ()
    assert row.statistics == Statistics(1, 1, 1.0, 0.0, nan=0, inf=0, zero=0)
    assert len(view.values) == view.elements == 1


def test_an_empty_string_tensor() -> None:
    row, view = seen(helper.make_tensor("w", TensorProto.STRING, [0], []))
    assert (row.statistics, view.values, view.elements) == (None, (), 0)


def test_only_the_first_values_are_shown() -> None:
    _, view = seen(tensor(np.arange(100, dtype=np.int32)))
    assert view.values == tuple(str(number) for number in range(64))
    assert view.elements == 100


def test_pieces_add_up_to_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = (np.random.default_rng(1).standard_normal(1003) + 1e6).astype(np.float64)
    monkeypatch.setattr("onnxsmith.graph.reading.statistics._PIECE", 64)
    found = statistics(ir.Tensor(drawn, name="w"))
    assert found is not None
    assert found.mean == pytest.approx(drawn.mean(), rel=1e-15)
    assert found.std == pytest.approx(drawn.std(), rel=1e-9)


def test_sums_beyond_float64_are_left_out_and_not_wrong() -> None:
    row, _ = seen(tensor(np.array([1.7e308, 1.7e308, -1.7e308], dtype=np.float64)))
    assert row.statistics is not None
    assert (row.statistics.min, row.statistics.max, row.statistics.std) == (-1.7e308, 1.7e308, None)


def test_large_external_data_is_not_copied(tmp_path: Path) -> None:
    """32 MB of weights are looked at in pieces of 8 MB: the peak stays below the size of the weights."""
    weights = np.ones((8 << 20,), dtype=np.float32)
    (tmp_path / "w.bin").write_bytes(weights.tobytes())
    external = ir.ExternalTensor(
        "w.bin", 0, weights.nbytes, ir.DataType.FLOAT, shape=ir.Shape([8 << 20]), name="w", base_dir=str(tmp_path)
    )
    del weights
    tracemalloc.start()
    found = statistics(external)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == Statistics(1.0, 1.0, 1.0, 0.0, nan=0, inf=0, zero=0)
    assert peak < 32 << 20
    assert external.raw is None, "the file is unmapped again"


def test_constants_are_listed_from_sixteen_elements_on() -> None:
    big, small = tensor(np.arange(16, dtype=np.float32)), tensor(np.arange(15, dtype=np.float32))
    nodes = [
        helper.make_node("Constant", [], ["big"], value=big),
        helper.make_node("Constant", [], ["small"], value=small),
        helper.make_node("Constant", [], ["texts"], value_strings=["é"] * 16),
    ]
    outputs = [helper.make_tensor_value_info("big", 1, [16]), helper.make_tensor_value_info("small", 1, [15])]
    outputs.append(helper.make_tensor_value_info("texts", TensorProto.STRING, [16]))
    graph = helper.make_graph(nodes, "constants", [], outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    table = inspect(model, tensors=True).part(TensorTable)
    assert [(row.name, row.kind, row.dtype) for row in table.rows] == [
        ("big", "constant", "float"),
        ("texts", "constant", "string"),
    ]
    assert table.skipped == 1
    assert inspect(model, name="small").part(TensorView).roles == ("constant", "graph output")
