"""`build`: the file is checked, run, and only then written; mistakes are refused at their line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import onnxsmith
from onnxsmith import OnnxsmithError


def test_a_small_model(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    with onnxsmith.build(file) as g:
        x = g.input("x", "float32", ["batch", 3])
        scaled = g.Mul(x, g.weight("scale", np.array([1, 2, 3], np.float32)))
        g.output("y", scaled + 1)
    x_ = np.ones((2, 3), np.float32)
    assert onnxsmith.run(file, {"x": x_}).outputs["y"].tolist() == [[2, 3, 4]] * 2
    assert g.result.path == file
    assert g.result.report.headline.endswith("2 nodes, runs on onnxruntime")
    assert [value.name for value in onnx.load(file).graph.initializer] == ["scale", "add.B"]


def test_without_a_file() -> None:
    with onnxsmith.build(opset=17, name="net") as g:
        g.output("y", -g.input("x", "float16", [2]))
    assert g.model.graph.name == "net"
    assert g.model.opset_imports == {"": 17}
    assert g.model.ir_version == 8
    assert g.result.path is None


def test_close_in_place_of_a_block() -> None:
    g = onnxsmith.build()
    g.output("y", g.Relu(g.input("x", "float32", [2])))
    assert g.close().model is g.model


def test_an_error_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    file.write_bytes(b"old")
    g = onnxsmith.build(file)

    def make() -> None:
        with g:
            g.output("y", g.Relu(g.input("x", "float32", [2])))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        make()
    assert file.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]
    with pytest.raises(OnnxsmithError, match="ended with an error"):
        _ = g.result


def test_a_model_that_no_runtime_knows_is_written_only_without_verification(tmp_path: Path) -> None:
    def make(**options: Any) -> None:
        with onnxsmith.build(tmp_path / "m.onnx", **options) as g:
            x = g.input("x", "float32", [2])
            g.output("y", g.node("com.example::Odd", x).declare("float32", [2]))

    with pytest.raises(OnnxsmithError) as refused:
        make()
    assert refused.value.problem.id == "build/refused"
    assert "verify=False" in refused.value.problem.fix
    assert not list(tmp_path.iterdir())
    make(verify=False)
    assert (tmp_path / "m.onnx").is_file()


def test_notes() -> None:
    with onnxsmith.build() as g:
        x = g.input("x", "float32", ["n", 2])
        g.input("idle", "int64", [])
        g.Neg(x)
        g.output("same", x)
        g.output("y", x * 2)
    notes = " | ".join(g.result.report.notes)
    assert "1 input that no node reads: idle" in notes
    assert "1 node that no output needs: neg (" in notes
    assert "test_build.py:" in notes
    assert "the output 'same' is the input 'x'" in notes
    assert "run at n=2, too" in notes


def test_sizes_that_clash_at_run_time_are_in_the_report() -> None:
    with onnxsmith.build() as g:
        g.output("y", g.input("a", "float32", ["n", "m"]) + g.input("b", "float32", ["m", "n"]))
    assert any(note.startswith("refused at n=2, m=3") for note in g.result.report.notes)


def test_a_shape_that_only_onnx_disputes() -> None:
    """onnx 1.23 infers the length of the window for the number of frequencies of STFT."""

    def make(**options: Any) -> Any:
        with onnxsmith.build(**options) as g:
            x = g.input("x", "float32", ["n", 400, 1])
            g.output("y", g.STFT(x, 100, g.HannWindow(200), 200))
        return g

    made = make()
    assert made.model.graph.outputs[0].shape == ["n", 3, 101, 2]
    assert any("shape inference reports an error" in note for note in made.result.report.notes)
    with pytest.raises(OnnxsmithError, match="build/invalid"):
        make(verify=False)


def test_a_false_declaration() -> None:
    g = onnxsmith.build()
    x = g.input("x", "float32", [2, 4])
    known = g.node("com.microsoft::FusedMatMul", x, np.ones((4, 4), np.float32))
    with pytest.raises(OnnxsmithError, match="its operator decides its shape"):
        known.declare("float32", [2, 3])
    unknown = g.node("com.microsoft::CDist", x, np.ones((3, 4), np.float32), metric="euclidean")
    g.output("y", unknown.declare("float32", [2, 2]))
    with pytest.raises(OnnxsmithError) as refused:
        g.close()
    assert refused.value.problem.id == "build/declared"
    assert "[2, 3]" in refused.value.problem.what


@pytest.mark.parametrize(
    "dtype", [np.float32, "bfloat16", "fp16", "string", bool, "int4", "float8e4m3fn", "seq(float32)"]
)
def test_dtypes_and_sizes(dtype: Any) -> None:
    with onnxsmith.build(opset=24) as g:
        for index, shape in enumerate(([0, None, "n"], [])):
            g.output(f"y{index}", g.Identity(g.input(f"x{index}", dtype, shape)))
    assert g.result.ok
    assert g.model.ir_version >= 10


def test_an_output_keeps_a_chosen_name() -> None:
    with onnxsmith.build() as g:
        x = g.input("x", "float32", [2])
        y = g.Relu(x, outputs=["chosen"])
        g.output("y", y)
        g.output(y)
        g.output("again", y)
    assert [value.name for value in g.model.graph.outputs] == ["y", "chosen", "again"]


def test_scopes_and_a_table_for_notebooks() -> None:
    with onnxsmith.build() as g:
        x = g.input("x", "float32", [2])
        with g.scope("head"):
            y = g.Relu(x * g.weight("scale", np.ones(2, np.float32)))
        g.output("y", y)
    assert list(g.model.graph.initializers) == ["head.scale"]
    assert [node.name for node in g.model.graph] == ["head.mul", "head.relu"]
    assert "<td>Relu</td>" in g._repr_html_()


def _twice(g: Any, x: Any) -> None:
    g.output("y", x * 2)
    g.output("y", x * 3)


REFUSED: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "no output": (lambda g, x: x * 2, "build/no-output"),
    "an output twice": (_twice, "build/output"),
    "two tensors as one output": (lambda g, x: g.output("y", (x, x)), "build/output"),
    "an array as output": (lambda g, x: g.output("y", np.ones(3)), "build/output"),
    "another order": (lambda g, x: g.output(x, "y"), "build/output"),
    "the name of an input": (lambda g, x: g.output("x", x * 2), "build/name"),
    "an input of a taken name": (lambda g, x: g.input("x", "float32", []), "build/name"),
    "a negative size": (lambda g, x: g.input("z", "float32", [-1]), "build/input"),
    "a shape that is no list": (lambda g, x: g.input("z", "float32", 3), "build/input"),
    "no shape": (lambda g, x: g.input("z", "float32"), "build/input"),
    "an unknown dtype": (lambda g, x: g.input("z", "float33", [1]), "build/dtype"),
    "an unknown type as output": (lambda g, x: g.output("y", g.node("a.b::C", x)), "build/output"),
    "an input in a branch": (
        lambda g, x: g.If(g.constant(True), lambda: g.input("z", "float32", []), lambda: x), "build/input",
    ),
    "an output in a branch": (
        lambda g, x: g.If(g.constant(True), lambda: g.output("z", x * 2), lambda: x), "build/output",
    ),
    "the model before the end": (lambda g, x: g.model, "build/open"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, tmp_path: Path) -> None:
    call, id_ = REFUSED[case]
    with pytest.raises(OnnxsmithError) as refused, onnxsmith.build(tmp_path / "m.onnx") as g:
        call(g, g.input("x", "float32", [2, 3]))
    assert refused.value.problem.id == id_
    assert "test_build.py:" in refused.value.problem.where
    assert refused.value.problem.fix
    assert not list(tmp_path.iterdir())


def test_an_impossible_target_is_refused_before_the_work(tmp_path: Path) -> None:
    for target in (tmp_path / "absent" / "m.onnx", tmp_path, tmp_path / "m.onnxtxt"):
        with pytest.raises(OnnxsmithError, match="save/"):
            onnxsmith.build(target)
    assert not list(tmp_path.iterdir())


def test_a_line_after_the_end() -> None:
    with onnxsmith.build() as g:
        x = g.input("x", "float32", [2])
        g.output("y", g.Relu(x))
    for call in (lambda: g.Relu(x), lambda: x + 1, lambda: g.input("z", "float32", []), lambda: g.weight("w", 1.0)):
        with pytest.raises(OnnxsmithError, match="build/closed"):
            call()


@pytest.mark.parametrize("options", [{"opset": 99}, {"opset": 5}, {"opset": "21"}, {"imports": {"ai.onnx.ml": 99}}])
def test_opsets(options: Any) -> None:
    with pytest.raises(OnnxsmithError, match="build/opset"):
        onnxsmith.build(**options)
