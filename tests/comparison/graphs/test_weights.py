"""Weights in numbers, in every dtype, and in other forms."""

from __future__ import annotations

import math
import tracemalloc
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest

from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.model_changes import WeightChange, WeightChanges
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.comparison.graphs import diff as room
from onnxsmith.comparison.graphs import weight_pairs
from onnxsmith.comparison.graphs.array_differences import differing, figures
from onnxsmith.graph.files.external import forget_pages
from onnxsmith.graph.files.save import save

DTYPES = [
    np.float32, np.float64, np.float16, np.int8, np.int64, np.uint16, np.bool_, np.complex64, np.complex128,
    ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2fnuz, ml_dtypes.int4, ml_dtypes.uint4,
    ml_dtypes.float4_e2m1fn, ml_dtypes.uint2,
]  # fmt: skip


def holding(array: np.ndarray | ir.TensorProtocol, *, constant: bool = False, name: str = "w") -> ir.Model:
    """A model that gives out one weight."""
    tensor = ir.Tensor(array, name=name) if isinstance(array, np.ndarray) else array
    value = ir.Value(name=name, const_value=tensor)
    nodes = []
    if constant:
        made = ir.node("Constant", [], {"value": tensor})
        made.outputs[0].name = name
        nodes, value = [made], made.outputs[0]
    use = ir.node("Identity", [value])
    use.outputs[0].name = "y"
    use.outputs[0].type = ir.TensorType(tensor.dtype)
    held = [] if constant else [value]
    graph = ir.Graph([], use.outputs, nodes=[*nodes, use], initializers=held, opset_imports={"": 25}, name="g")
    return ir.Model(graph, ir_version=13)


def change(old: ir.Model, new: ir.Model) -> WeightChange | None:
    """The only row of the weights, through JSON; None if there is none."""
    report = Report.from_json(room.diff(old, new).report.to_json())
    try:
        (row,) = report.part(WeightChanges).rows
    except LookupError:
        assert report.verdict is Verdict.DONE, report.headline
        return None
    assert report.verdict is Verdict.DIFFERENT
    return row


def numbers(dtype: type, size: int = 24) -> np.ndarray:
    return (np.arange(size) % 2).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_one_element_of_every_dtype(dtype: type) -> None:
    old = numbers(dtype)
    new = old.copy()
    new[3] = np.zeros(1, dtype)[0]
    assert change(holding(old), holding(old.copy())) is None
    row = change(holding(old), holding(new))
    assert row is not None
    assert (row.kind, row.changed, row.max_abs) == ("values", 1 / 24, 1.0)
    assert row.cosine_distance == pytest.approx(1 - math.sqrt(11 / 12), abs=1e-12)


@pytest.mark.parametrize("size", [24, 400_000])
def test_figures_are_numpy_s(size: int) -> None:
    rng = np.random.default_rng(0)
    old = rng.standard_normal(size).astype(np.float32)
    new = old.copy()
    new[:: size // 8] += np.float32(0.25)
    row = change(holding(old), holding(new))
    assert row is not None
    a, b = old.astype(np.float64), new.astype(np.float64)
    assert row.changed == np.mean(old != new)
    assert row.max_abs == np.max(np.abs(a - b))
    assert row.max_rel == pytest.approx(np.max(np.abs(a - b) / (np.abs(a) + np.sqrt(np.mean(a**2)))))
    cosine = float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    assert row.cosine_distance == pytest.approx(1 - cosine, rel=1e-3)


def test_nan_equals_nan_and_the_sign_of_zero_counts() -> None:
    old = np.array([np.nan, 1, 0, np.inf], np.float32)
    other_nan = old.view(np.uint32) + np.array([1, 0, 0, 0], np.uint32)
    assert change(holding(old), holding(other_nan.view(np.float32))) is None
    row = change(holding(old), holding(np.array([np.nan, 1, -0.0, np.inf], np.float32)))
    assert row is not None
    assert (row.changed, row.max_abs) == (0.25, 0.0)
    row = change(holding(old), holding(np.array([2, 1, 0, np.inf], np.float32)))
    assert row is not None
    assert row.changed == 0.25


def test_numbers_that_overflow_when_squared() -> None:
    found = figures(np.array([1e300, 0.0]), np.array([1e300, 1e290]))
    assert found.max_abs == 1e290
    assert found.cosine_distance == pytest.approx(0.5e-20)


def test_strings_and_no_elements() -> None:
    texts = ir.StringTensor([b"a", b"b"], shape=ir.Shape([2]), name="w")
    others = ir.StringTensor([b"a", b"c"], shape=ir.Shape([2]), name="w")
    assert change(holding(texts), holding(ir.StringTensor([b"a", b"b"], shape=ir.Shape([2]), name="w"))) is None
    row = change(holding(texts), holding(others))
    assert row is not None
    assert (row.changed, row.old, row.new) == (0.5, "['a', 'b']", "['a', 'c']")
    empty = np.zeros((0, 3), np.float32)
    assert change(holding(empty), holding(empty.copy())) is None
    row = change(holding(empty), holding(np.zeros((0, 4), np.float32)))
    assert row is not None
    assert (row.kind, row.new_shape) == ("type", (0, 4))


RANDOM = np.random.default_rng(1).standard_normal((6, 6, 5)).astype(np.float32)


@pytest.mark.parametrize(
    ("new", "form"),
    [
        (RANDOM.transpose(1, 0, 2), "transposed (1, 0, 2)"),
        (RANDOM.transpose(2, 0, 1), "transposed (2, 0, 1)"),
        (RANDOM.reshape(36, 5), "reshaped"),
        (RANDOM.reshape(6, 1, 6, 5), "reshaped"),
        (RANDOM.astype(np.float16), "cast"),
        (RANDOM.astype(ml_dtypes.bfloat16), "cast"),
        (RANDOM.astype(np.float16).transpose(2, 1, 0), "transposed (2, 1, 0), cast"),
    ],
)
def test_another_form_of_the_same_weight(new: np.ndarray, form: str) -> None:
    row = change(holding(RANDOM), holding(np.ascontiguousarray(new)))
    assert row is not None
    assert (row.kind, row.form) == ("form", form)
    assert (row.max_rel is not None) == (form == "cast")  # what it rounds


def test_another_form_and_other_values() -> None:
    new = np.ascontiguousarray(RANDOM.transpose(2, 0, 1))
    new[0, 0, 0] += 1
    row = change(holding(RANDOM), holding(new))
    assert row is not None
    assert (row.kind, row.form) == ("type", "transposed (2, 0, 1)")
    assert row.changed == 1 / new.size
    row = change(holding(RANDOM), holding((RANDOM * np.float32(1.01)).astype(np.float16)))
    assert row is not None
    assert (row.kind, row.form) == ("type", "cast")


def test_a_constant_node() -> None:
    row = change(holding(RANDOM), holding(RANDOM.copy(), constant=True))
    assert row is not None
    assert (row.kind, row.form) == ("form", "initializer → Constant")


def sparse(values: list[float]) -> ir.Model:
    """A model that gives out a sparse weight of 10 elements."""
    from onnxsmith.graph.files.load import load

    tensor = onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [len(values)], values)
    places = onnx.helper.make_tensor("places", onnx.TensorProto.INT64, [len(values)], list(range(len(values))))
    message = onnx.helper.make_sparse_tensor(tensor, places, [10])
    result = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [10])
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Identity", ["w"], ["y"])], "g", [], [result], sparse_initializer=[message]
    )
    return load(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=10))


def test_sparse_weights() -> None:
    assert change(sparse([1, 2]), sparse([1, 2])) is None
    row = change(sparse([1, 2]), sparse([1, 3]))
    assert row is not None
    assert (row.kind, row.changed, row.max_abs) == ("values", 0.1, 1.0)


def test_large_external_weights_in_little_memory(tmp_path: Path) -> None:
    old = np.random.default_rng(0).standard_normal((1000, 4000)).astype(np.float32)
    new = old.copy()
    new[700, 5] += 1
    for name, array in (("a", old), ("b", new), ("c", old)):
        save(holding(array), tmp_path / f"{name}.onnx", external_data=True)
    tracemalloc.start()
    report = room.diff(tmp_path / "a.onnx", tmp_path / "b.onnx").report
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    (row,) = report.part(WeightChanges).rows
    assert (row.changed, row.max_abs) == (1 / old.size, pytest.approx(1, rel=1e-6))
    assert peak < old.nbytes * 1.5  # the arrays are mapped, not read
    assert room.diff(tmp_path / "a.onnx", tmp_path / "c.onnx").report.verdict is Verdict.DONE


def test_weights_that_differ_where_the_sample_does_not_look() -> None:
    old = np.zeros(50_000, np.float32)
    new = old.copy()
    new[5000] = 1
    assert differing(old, new) == 1
    row = change(holding(old), holding(new))
    assert row is not None
    assert row.changed == 1 / 50_000


def test_missing_values_are_not_called_equal() -> None:
    model = holding(RANDOM)
    (value,) = model.graph.initializers.values()
    value.const_value = None
    report = room.diff(model, holding(RANDOM)).report
    assert report.verdict is Verdict.CANNOT_TELL
    assert report.part(WeightChanges).rows[0].kind == "unreadable"
    assert any("missing" in note for note in report.notes)


def external(path: Path, data: Path) -> ir.Model:
    """A model that gives out a weight of an existing data file."""
    tensor = ir.ExternalTensor(
        data.name, 0, 4 * 8192, ir.DataType.FLOAT, shape=ir.Shape([8192]), name="w", base_dir=data.parent
    )
    ir.save(holding(tensor), path)
    return ir.load(path)


def test_weights_of_one_data_file_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "weights.data"
    data.write_bytes(np.arange(8192, dtype=np.float32).tobytes())
    one, other = (external(tmp_path / name, data) for name in ("a.onnx", "b.onnx"))
    with monkeypatch.context() as patched:
        patched.setattr(weight_pairs, "equal", lambda *_: pytest.fail("the weights were read"))
        assert change(one, other) is None
    third = ir.load(tmp_path / "b.onnx")
    assert one.graph.initializers["w"].const_value is not None
    one.graph.initializers["w"].const_value.numpy()
    data.rename(tmp_path / "old.data")
    data.write_bytes(np.zeros(8192, np.float32).tobytes())
    assert change(one, third) is not None  # the first is mapped from the former file


def test_the_memory_of_compared_weights_is_given_back(tmp_path: Path) -> None:
    models = []
    for name in ("a", "b"):
        data = tmp_path / f"{name}.data"
        data.write_bytes(np.arange(8192, dtype=np.float32).tobytes())
        models.append(external(tmp_path / f"{name}.onnx", data))
    given_back: list[ir.TensorProtocol | None] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(weight_pairs, "forget_pages", given_back.append)
        assert change(*models) is None
    tensors = [model.graph.initializers["w"].const_value for model in models]
    assert given_back == tensors
    forget_pages(tensors[0])
    assert tensors[0] is not None
    assert np.array_equal(tensors[0].numpy(), np.arange(8192))
