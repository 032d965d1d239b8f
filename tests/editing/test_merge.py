"""`merge`: two models in one file, each equal to its part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxsmith
from onnxsmith.editing import merge as room
from onnxsmith.model.files.text import from_text
from onnxsmith.report.parts.edits import Edits
from onnxsmith.report.verdict import Verdict

FIRST = """<ir_version: 8, opset_import: ["": 17]>
g (float[n,4] x) => (float[n,4] y, float[n,4] aux) <float[4] w = {1,2,3,4}> {
  [one] a = Relu(x)
  y = Mul(a, w)
  aux = Neg(a)
}"""
SECOND = """<ir_version: 10, opset_import: ["": 21]>
g (float[m,4] x, float[4] s) => (float[m,4] y) <float[4] w = {5,2,3,4}> {
  [one] a = Sigmoid(x)
  b = Mul(a, w)
  y = Add(b, s)
}"""
X = np.array([[-1.0, 0.5, 2.0, 3.0]], np.float32)


def files(folder: Path, first: str = FIRST, second: str = SECOND) -> tuple[Path, Path]:
    onnxsmith.save(from_text(first), folder / "first.onnx")
    onnxsmith.save(from_text(second), folder / "second.onnx")
    return folder / "first.onnx", folder / "second.onnx"


def test_the_whole_is_one_after_the_other(tmp_path: Path) -> None:
    first, second = files(tmp_path)
    result = onnxsmith.merge(first, second, tmp_path / "both.onnx", wires={"y": "x"})
    assert result.ok, result.report.problems
    assert "opset 17 to 21" in str(result.report.parts[0])
    s = np.ones(4, np.float32)
    middle = onnxsmith.run(first, {"x": X}).outputs
    last = onnxsmith.run(second, {"x": middle["y"], "s": s}).outputs["y"]
    found = onnxsmith.run(tmp_path / "both.onnx", {"x": X, "s": s}).outputs
    assert next(iter(found)) == "aux"
    assert np.array_equal(found["aux"], middle["aux"])
    assert np.array_equal(list(found.values())[1], last)
    kept = onnxsmith.merge(first, second, wires={"y": "x"}, keep=True)
    assert kept.model is not None
    assert len(kept.model.graph.outputs) == 3


def test_a_wrong_whole_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = files(tmp_path)
    right = room.joined

    def wrong(*given: Any) -> Any:
        made = right(*given)
        made.graph.initializers["w_1"].const_value = made.graph.initializers["w"].const_value
        return made

    monkeypatch.setattr(room, "joined", wrong)
    result = onnxsmith.merge(first, second, tmp_path / "both.onnx", wires={"y": "x"})
    assert result.report.verdict is Verdict.DIFFERENT
    assert not (tmp_path / "both.onnx").exists()


@pytest.mark.parametrize(
    ("first", "second", "wires", "id_"),
    [
        (FIRST, SECOND, {}, "merge/no-joint"),
        (FIRST, SECOND, {"z": "x"}, "merge/no-port"),
        (FIRST, SECOND, {"y": "w"}, "merge/no-port"),
        (FIRST, SECOND.replace("float[m,4] x", "float16[m,4] x"), {"y": "x"}, "merge/types"),
        (FIRST, SECOND.replace("float[m,4] x", "float[m,5] x"), {"y": "x"}, "merge/types"),
        (
            FIRST.replace('["": 17]', '["": 17, "ai.onnx.ml": 3]'),
            SECOND.replace('["": 21]', '["": 21, "ai.onnx.ml": 4]'),
            {"y": "x"},
            "merge/versions",
        ),
    ],
)
def test_what_does_not_fit(tmp_path: Path, first: str, second: str, wires: dict[str, str], id_: str) -> None:
    paths = files(tmp_path, first, second)
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.merge(*paths, tmp_path / "both.onnx", wires=wires)
    assert caught.value.problem.id == id_
    assert caught.value.problem.fix
    assert not (tmp_path / "both.onnx").exists()


def test_dimensions_of_the_second_get_the_names_of_the_first(tmp_path: Path) -> None:
    head = '<ir_version: 10, opset_import: ["": 21]> '
    first = from_text(head + "a (float[batch,4] x) => (float[batch,4] u) { u = Relu(x) }")
    body = "{ y = Neg(v) z = Abs(w) }"
    second = from_text(head + f"b (float[n,4] v, float[m,4] w) => (float[n,4] y, float[m,4] z) {body}")
    result = onnxsmith.merge(first, second, tmp_path / "both.onnx", wires={"u": "v"})
    whole = onnxsmith.load(tmp_path / "both.onnx")
    assert [str(value.shape) for value in (*whole.graph.inputs, *whole.graph.outputs)] == [
        "[batch,4]", "[m,4]", "[batch,4]", "[m,4]",
    ]  # fmt: skip
    assert "dimension n of the second model is batch" in result.report.part(Edits).notes
    assert [str(value.shape) for value in second.graph.inputs] == ["[n,4]", "[m,4]"]


def test_a_model_behind_itself_keeps_its_interface(tmp_path: Path) -> None:
    half = from_text(
        '<ir_version: 10, opset_import: ["": 21]> h (float[n] x) => (float[n] y) { a = Neg(x) y = Exp(a) }'
    )
    result = onnxsmith.merge(half, half, tmp_path / "both.onnx", wires={"y": "x"})
    whole = onnxsmith.load(tmp_path / "both.onnx")
    assert [value.name for value in (*whole.graph.inputs, *whole.graph.outputs)] == ["x", "y"]
    assert any("y_of_the_first" in note for note in result.report.part(Edits).notes)
    kept = onnxsmith.merge(half, half, tmp_path / "kept.onnx", wires={"y": "x"}, keep=True)
    assert [value.name for value in onnxsmith.load(tmp_path / "kept.onnx").graph.outputs] == ["y", "y_1"]
    assert any("is called y_1" in note for note in kept.report.part(Edits).notes)


def test_prefixes_keep_the_names_of_both_models_apart(tmp_path: Path) -> None:
    first, second = files(tmp_path)
    result = onnxsmith.merge(
        first, second, tmp_path / "both.onnx", wires={"y": "x"}, prefixes=("enc/", "dec/"), keep=True
    )
    assert result.ok, result.report.problems
    whole = onnxsmith.load(tmp_path / "both.onnx")
    assert [value.name for value in whole.graph.inputs] == ["enc/x", "dec/s"]
    assert [value.name for value in whole.graph.outputs] == ["enc/y", "enc/aux", "dec/y"]
    assert set(whole.graph.initializers) == {"enc/w", "dec/w"}
    assert {node.name for node in whole.graph if node.name} >= {"enc/one", "dec/one"}
    s = np.ones(4, np.float32)
    middle = onnxsmith.run(first, {"x": X}).outputs["y"]
    found = onnxsmith.run(tmp_path / "both.onnx", {"enc/x": X, "dec/s": s}).outputs
    assert np.array_equal(found["dec/y"], onnxsmith.run(second, {"x": middle, "s": s}).outputs["y"])


def test_prefixes_go_into_branches(tmp_path: Path) -> None:
    branches = from_text(
        '<ir_version: 10, opset_import: ["": 21]> f (float[n] x, bool c) => (float[n] y) '
        "{ w = Abs(x) y = If(c) <then_branch = t () => (float[n] a) { a = Neg(w) }, "
        "else_branch = e () => (float[n] b) { b = Exp(w) }> }"
    )
    result = onnxsmith.merge(branches, branches, tmp_path / "both.onnx", wires={"y": "x"}, prefixes=("", "second_"))
    assert result.ok, result.report.problems
    assert [value.name for value in onnxsmith.load(tmp_path / "both.onnx").graph.inputs] == ["x", "c", "second_c"]


def test_a_fixed_size_of_the_first_meets_a_symbol_of_the_second(tmp_path: Path) -> None:
    head = '<ir_version: 10, opset_import: ["": 21]> '
    first = from_text(head + "a (float[2,4] x) => (float[2,4] u) { u = Relu(x) }")
    second = from_text(head + "b (float[n,4] v, float[n] w) => (float[n,4] y, float[n] z) { y = Neg(v) z = Abs(w) }")
    result = onnxsmith.merge(first, second, tmp_path / "both.onnx", wires={"u": "v"})
    assert result.ok, result.report.problems
    whole = onnxsmith.load(tmp_path / "both.onnx")
    assert [str(value.shape) for value in (*whole.graph.inputs, *whole.graph.outputs)] == [
        "[2,4]", "[2]", "[2,4]", "[2]",
    ]  # fmt: skip
    assert "dimension n of the second model is 2, as in the first" in result.report.part(Edits).notes
    assert [str(value.shape) for value in second.graph.inputs] == ["[n,4]", "[n]"]


def test_one_symbol_of_the_second_meets_two_sizes(tmp_path: Path) -> None:
    head = '<ir_version: 10, opset_import: ["": 21]> '
    first = from_text(head + "a (float[2] x, float[3] t) => (float[2] u, float[3] s) { u = Relu(x) s = Abs(t) }")
    second = from_text(head + "b (float[n] v, float[n] w) => (float[n] y) { y = Add(v, w) }")
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.merge(first, second, tmp_path / "both.onnx", wires={"u": "v", "s": "w"})
    assert caught.value.problem.id == "merge/types"
    assert not (tmp_path / "both.onnx").exists()
