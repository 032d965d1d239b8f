"""`inspect --weights`: the values, names and dtypes of the file, and what it refuses."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest
from safetensors import safe_open

from onnxsmith import inspect
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.written_files import Written
from onnxsmith.cli.commands.inspect import Inspect
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text

NESTED = """
<ir_version: 10, opset_import: ["": 20]>
g (float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}, int64[0] none = {}> {
    a = Add(x, w)
    k = Constant <value = float[16] {0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15}> ()
    s = Constant <value = float {3}> ()
    [choose] y = If(c) <
        then_branch = yes () => (float[2] t) <float[2] v = {3, 4}> { t = Add(a, v) },
        else_branch = no () => (float[2] e) <float[2] v = {5, 6}> { e = Add(a, v) }
    >
}
"""


def model_with(**arrays: Any) -> ir.Model:
    """A model that has these arrays as initializers."""
    model = from_text('<ir_version: 11, opset_import: ["": 23]> g (float[2] x) => (float[2] y) { y = Relu(x) }')
    for name, array in arrays.items():
        tensor = array if isinstance(array, ir.TensorProtocol) else ir.tensor(array, name=name)
        model.graph.register_initializer(ir.Value(name=name, const_value=tensor))
    return model


def read_safetensors(path: Path) -> dict[str, tuple[str, list[int], bytes]]:
    """Reads a file by the format's specification: dtype, shape and bytes of each tensor."""
    whole = path.read_bytes()
    start = 8 + int.from_bytes(whole[:8], "little")
    assert start % 8 == 0
    head = json.loads(whole[8:start])
    ends = [item["data_offsets"][1] for item in head.values()]
    assert max(ends, default=0) == len(whole) - start
    return {
        name: (item["dtype"], item["shape"], whole[start + item["data_offsets"][0] : start + item["data_offsets"][1]])
        for name, item in head.items()
    }


def same(report: Report) -> Report:
    assert Report.from_json(report.to_json()) == report
    return report


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_nested_initializers_and_larger_constants_under_their_names(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"w{suffix}"
    report = same(inspect(from_text(NESTED), weights=file))
    assert list(report.part(Written).files.values()) == [file.stat().st_size]
    if suffix == ".npz":
        with np.load(file) as found:
            values = {name: found[name] for name in found.files}
    else:
        values = {
            name: np.frombuffer(data, {"F32": np.float32, "I64": np.int64}[dtype]).reshape(shape)
            for name, (dtype, shape, data) in read_safetensors(file).items()
        }
    expected = {
        "w": [1, 2], "none": [], "k": range(16), "choose/then_branch/v": [3, 4], "choose/else_branch/v": [5, 6],
    }  # fmt: skip
    assert {name: list(value) for name, value in values.items()} == {name: list(v) for name, v in expected.items()}
    assert values["none"].dtype == np.int64
    assert any("2 tensors renamed" in note and "v, v" in note for note in report.notes)


def test_every_dtype_that_safetensors_has(tmp_path: Path) -> None:
    file = tmp_path / "w.safetensors"
    arrays = {
        "b": (np.array([1.5, -2], ml_dtypes.bfloat16), "BF16"),
        "f": (np.array([0.5, 1], ml_dtypes.float8_e4m3fn), "F8_E4M3"),
        "g": (np.array([0.5, 1], ml_dtypes.float8_e5m2), "F8_E5M2"),
        "h": (np.array([[1, 2]], np.float16), "F16"),
        "e": (np.array([0.5, 4], ml_dtypes.float8_e8m0fnu), "F8_E8M0"),
        "n": (np.array([0.5, 1], ml_dtypes.float8_e4m3fnuz), "F8_E4M3FNUZ"),
        "z": (np.array([0.5, 1], ml_dtypes.float8_e5m2fnuz), "F8_E5M2FNUZ"),
        "c": (np.array([1 + 2j], np.complex64), "C64"),
        "t": (np.array(True), "BOOL"),
        "u": (np.array([7], np.uint64), "U64"),
    }
    inspect(model_with(**{name: array for name, (array, _) in arrays.items()}), weights=file)
    found = read_safetensors(file)
    with safe_open(file, "numpy") as opened:  # the library takes the file, too
        assert set(opened.keys()) == set(arrays)
        assert opened.get_tensor("h").tolist() == [[1, 2]]
    assert found == {name: (code, list(array.shape), array.tobytes()) for name, (array, code) in arrays.items()}


def test_floats_of_four_bits_share_bytes_as_in_the_model(tmp_path: Path) -> None:
    file = tmp_path / "w.safetensors"
    array = np.array([[0.5, -6, 3], [-0.0, 1, 1.5]], ml_dtypes.float4_e2m1fn)
    model = model_with(q=array, odd=array[:, :1].reshape(2)[:1])
    report = same(inspect(model, weights=file))
    packed = model.graph.initializers["q"].const_value
    assert packed is not None
    assert read_safetensors(file) == {"q": ("F4", [2, 3], packed.tobytes())}
    with safe_open(file, "numpy") as opened:
        assert list(opened.keys()) == ["q"]
    assert [one.where for one in report.problems] == ["odd"]  # half a byte is left


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_small_integers_become_eight_bits(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"w{suffix}"
    report = inspect(
        model_with(i=np.array([-8, 7, 3], ml_dtypes.int4), u=np.array([0, 15, 9], ml_dtypes.uint4)), weights=file
    )
    assert "stored as 8-bit integers: i, u" in report.notes
    if suffix == ".npz":
        with np.load(file) as found:
            assert (found["i"].tolist(), found["u"].tolist()) == ([-8, 7, 3], [0, 15, 9])
            assert (found["i"].dtype, found["u"].dtype) == (np.int8, np.uint8)
    else:
        assert read_safetensors(file)["i"] == ("I8", [3], np.array([-8, 7, 3], np.int8).tobytes())


def test_a_dtype_of_the_other_format_is_refused_with_a_fix_that_works(tmp_path: Path) -> None:
    model = model_with(w=np.array([1], np.float32), b=np.array([1.5], ml_dtypes.bfloat16))
    with pytest.raises(OnnxsmithError) as caught:
        inspect(model, weights=tmp_path / "w.npz")
    assert caught.value.problem.id == "inspect/weights-dtype"
    assert not list(tmp_path.iterdir())
    inspect(model, weights=caught.value.problem.fix.removeprefix("--weights "))
    assert set(read_safetensors(tmp_path / "w.safetensors")) == {"w", "b"}
    with pytest.raises(OnnxsmithError, match="complex128"):
        inspect(model_with(c=np.array([1j], np.complex128)), weights=tmp_path / "c.safetensors")


def test_a_dtype_of_no_format_is_left_out_and_named(tmp_path: Path) -> None:
    texts = ir.StringTensor([b"a"], shape=ir.Shape([1]), name="s")
    report = same(inspect(model_with(w=np.array([1], np.float32), s=texts), weights=tmp_path / "w.npz"))
    (told,) = [problem for problem in report.problems if problem.id == "inspect/weights-dtype"]
    assert (told.where, "string" in told.what) == ("s", True)
    with np.load(tmp_path / "w.npz") as found:
        assert found.files == ["w"]


def test_external_data_is_not_copied_into_memory(tmp_path: Path) -> None:
    big = np.arange(8 << 20, dtype=np.float32)
    path = tmp_path / "m.onnx"
    save(model_with(big=big), path, external_data=True)
    tracemalloc.start()
    Inspect(str(path), weights=str(tmp_path / "w.npz")).run()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < big.nbytes // 2
    with np.load(tmp_path / "w.npz") as found:
        assert np.array_equal(found["big"], big)


def test_equal_weights_give_equal_files(tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        inspect(from_text(NESTED), weights=tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_odd_names(tmp_path: Path) -> None:
    names = ("/a/b", "../up", "n.npy", "n", "__metadata__", "ü")
    model = model_with(**{name: np.array([index], np.int32) for index, name in enumerate(names)})
    inspect(model, weights=tmp_path / "w.npz")
    with np.load(tmp_path / "w.npz") as found:
        kept = {name: found[name].tolist() for name in found.files}
    assert kept == {"a/b": [0], "_../up": [1], "n.npy#": [2], "n": [3], "__metadata__#2": [4], "ü": [5]}
    assert not (tmp_path.parent / "up.npy").exists()


def test_missing_values_and_wrong_targets_are_refused(tmp_path: Path) -> None:
    model = model_with(w=np.array([1, 2], np.float32))
    model.graph.initializers["w"].const_value = ir.ExternalTensor(
        "nowhere.bin", 0, 8, ir.DataType.FLOAT, shape=ir.Shape([2]), name="w", base_dir=tmp_path
    )
    for source, target, expected in (
        (model, "w.npz", "inspect/weights-missing"),
        (model, "w.bin", "bundle/suffix"),
        (model, "nowhere/w.npz", "save/no-folder"),
        (tmp_path / "absent.onnx", "w.npz", "model/not-found"),
    ):
        with pytest.raises(OnnxsmithError) as caught:
            inspect(source, weights=tmp_path / target)
        assert caught.value.problem.id == expected
    assert not list(tmp_path.iterdir())


def test_the_models_own_data_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    model = model_with(w=np.arange(4, dtype=np.float32))
    model.graph.initializers["w"].const_value = ir.ExternalTensor(
        "d.npz", 0, 16, ir.DataType.FLOAT, shape=ir.Shape([4]), name="w", base_dir=tmp_path
    )
    (tmp_path / "d.npz").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    ir.save(model, path)
    with pytest.raises(OnnxsmithError) as caught:
        inspect(path, weights=tmp_path / "d.npz")
    assert caught.value.problem.id == "save/needed"
