"""The sizes of golden data, and what is refused because of sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.cli import application
from onnxsmith.deployment.bundles import golden
from tests import gallery
from tests.deployment.bundles.models import checks, identity, linear, manifest, upscaler, written


def sizes(model: Path, folder: Path, *ranges: str, **how: Any) -> list[dict[str, int]]:
    result = onnxsmith.bundle(model, folder / "o", form="python", dim_ranges=ranges, **how)
    assert checks(result.report)["python runner"].state == "equal"
    return [case["sizes"] for case in manifest(folder / "o")["cases"]]


def refused(model: Path, folder: Path, *ranges: str, **how: Any) -> Problem:
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.bundle(model, folder / "o", form=how.pop("form", "python"), dim_ranges=ranges, **how)
    assert not (folder / "o").exists()
    return caught.value.problem


def test_one_of_several_dimensions_is_declared(tmp_path: Path) -> None:
    found = sizes(upscaler(tmp_path), tmp_path, "height=16:20:64")
    assert [one["height"] for one in found] == [20, 16, 64, 20]
    usual = {name: found[0][name] for name in ("batch", "width")}
    assert all({name: one[name] for name in usual} == usual for one in found[:3])
    assert all(found[3][name] != size for name, size in usual.items()), "dimensions without a range have two sizes"


@pytest.mark.parametrize(
    ("declared", "expected"),
    [("batch=1:1:1", [1]), ("batch=4:4:4", [4]), ("batch=1:4:4", [4, 1]), ("batch=4:4:8", [4, 8]),
     ("batch=7:8:9", [8, 7, 9])],
)  # fmt: skip
def test_equal_sizes_are_recorded_once(tmp_path: Path, declared: str, expected: list[int]) -> None:
    assert [one["batch"] for one in sizes(linear(tmp_path), tmp_path, declared)] == expected


def test_given_inputs_come_with_the_declared_sizes(tmp_path: Path) -> None:
    given = [{"x": np.ones((size, 3), np.float32)} for size in (2, 3)]
    found = sizes(linear(tmp_path), tmp_path, "batch=1:2:8", inputs=given)
    assert [one["batch"] for one in found] == [2, 3, 2, 1, 8]


def test_large_sizes_that_were_declared(tmp_path: Path) -> None:
    """More elements than an input has that nobody asked for."""
    model = identity(tmp_path, ("x", "y", TensorProto.UINT8, ["n", 2**20]))
    assert [one["n"] for one in sizes(model, tmp_path, "n=1:1:17")] == [1, 17]


@pytest.mark.parametrize("form", ["python", "tensorrt", "triton"])
def test_an_input_outside_of_the_range(tmp_path: Path, form: str) -> None:
    found = refused(linear(tmp_path), tmp_path, "batch=4:5:8", form=form, inputs={"x": np.ones((3, 3), np.float32)})
    assert (found.id, found.fix) == ("bundle/dim-range", "--dim batch=3:5:8, or another input")
    assert "'batch' is 3" in found.what


def in_fours(folder: Path) -> Path:
    """Takes multiples of 4 only."""
    shape = numpy_helper.from_array(np.array([-1, 4], np.int64), "s")
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "s"], ["y"])],
        "fours",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["m", 4])],
        [shape],
    )
    return written(folder, graph)


@pytest.mark.parametrize(("declared", "size"), [("n=4:6:8", 6), ("n=3:4:8", 3), ("n=4:8:9", 9)])
def test_a_declared_size_that_the_model_refuses(tmp_path: Path, declared: str, size: int) -> None:
    found = refused(in_fours(tmp_path), tmp_path, declared)
    assert found.id == "bundle/dim-range"
    assert f"n={size}" in found.what
    assert found.why


def test_a_dimension_that_only_an_output_has(tmp_path: Path) -> None:
    found = refused(in_fours(tmp_path), tmp_path, "m=1:2:4")
    assert (found.id, found.fix) == ("bundle/dim-range", "leave --dim m out")


@pytest.mark.parametrize("name", ["x.0", "x, axis 0", "?", "d1"])
def test_a_dimension_without_a_name_can_get_one(tmp_path: Path, name: str) -> None:
    model = identity(tmp_path, ("x", "y", TensorProto.FLOAT, [None, 2]))
    found = refused(model, tmp_path, f"{name}=1:2:4")
    assert found.fix == (
        f"name the dimensions first: `onnxsmith set-dim {model} x:0=d1 -o named.onnx`; then bundle named.onnx with "
        "--dim d1=1:2:4"
    )
    with onnxsmith.edit(model, tmp_path / "named.onnx") as m:
        m.set_dim("x:0=d1")
    assert [one["d1"] for one in sizes(tmp_path / "named.onnx", tmp_path, "d1=1:2:4")] == [2, 1, 4]


def test_golden_data_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(golden, "LARGEST", 200)
    model = identity(tmp_path, ("x", "y", TensorProto.FLOAT, ["n", 10]))
    found = refused(model, tmp_path, "n=1:8:9")
    assert (found.id, found.fix) == ("bundle/too-large", "record smaller sizes: --dim n=2:2:2")
    found = refused(model, tmp_path, "n=1:2:9")
    assert found.id == "bundle/too-large"
    found = refused(model, tmp_path, inputs={"x": np.ones((9, 10), np.float32)})
    assert found.fix == "record a smaller input: --input inputs.npz"
    assert [one["n"] for one in sizes(model, tmp_path, "n=1:2:3")] == [2, 1, 3]


def test_fixed_sizes_are_never_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(golden, "LARGEST", 200)
    model = identity(tmp_path, ("x", "y", TensorProto.FLOAT, [9, 10]))
    assert sizes(model, tmp_path) == [{}]


def test_a_difference_in_the_last_million_elements_is_seen(tmp_path: Path) -> None:
    """Outputs are compared a million elements at a time."""
    import runpy

    model = identity(tmp_path, ("x", "y", TensorProto.FLOAT, [3]))
    assert onnxsmith.bundle(model, tmp_path / "o", form="python").ok
    difference = runpy.run_path(str(tmp_path / "o" / "golden.py"))["difference"]
    value = np.linspace(1, 2, (1 << 20) + 7, dtype=np.float32)
    how = {"value": value, "dtype": "float", "tolerance": 1e-5}
    assert difference(how, value.copy()) == (0.0, "")
    for spoiled, said in ((2.001, "more than"), (np.nan, "NaN"), (np.inf, "NaN")):
        other = value.copy()
        other[-1] = spoiled
        assert said in difference(how, other)[1]
    whole = {"value": np.arange((1 << 20) + 7), "dtype": "int64", "tolerance": None}
    other = whole["value"].copy()  # type: ignore[attr-defined]
    other[-1] = 0
    assert difference(whole, other)[1] == f"1 of {(1 << 20) + 7} elements differ"


def test_the_two_bundles_of_a_model_file_agree(tmp_path: Path) -> None:
    """Nothing of the file is changed by recording."""
    path = linear(tmp_path)
    before = path.read_bytes()
    assert sizes(path, tmp_path, "batch=1:2:3")
    assert path.read_bytes() == before
    assert onnx.load(path).graph.name == "linear"


def test_the_old_option_for_ranges_works_and_names_the_new_one(tmp_path: Path) -> None:
    words = [
        "bundle",
        str(linear(tmp_path)),
        "-o",
        str(tmp_path / "o"),
        "--for",
        "python",
        "--dim-range",
        "batch=1:2:4",
    ]
    text, status = gallery.called(application.main, words)
    assert status == 0, text
    assert "note: --dim-range is deprecated: use --dim, which takes the same values" in text
    assert [case["sizes"]["batch"] for case in manifest(tmp_path / "o")["cases"]] == [2, 1, 4]
    text, _ = gallery.called(application.main, ["bundle", "--help-all"])
    assert "--dim " in text
    assert "--dim-range" not in text
