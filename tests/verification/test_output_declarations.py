"""What a file declares for its outputs is what its runs give."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import parser

import onnxsmith
from onnxsmith.base.report.parts.verification import Misdeclared
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure.signature import Port, Signature
from onnxsmith.verification.output_declarations import Declarations, corrected

SPREAD = """<ir_version: 8, opset_import: ["": 17]> g (float[batch,10] x) => (float[batch,10] y)
<int64[1] zero = {0}, int64[1] ten = {10}> {
    m = ReduceMean<axes = [0]>(x)
    s = Shape(x)
    n = Gather(s, zero)
    t = Concat<axis = 0>(n, ten)
    [spread] y = Expand(m, t)
}"""
WRONG = """<ir_version: 8, opset_import: ["": 17]> g (float[batch,6] x) => (float[batch,3] y, float[batch,2] z)
<float[6,2] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, int64[2] target = {-1, 3}> {
    r = Reshape(x, target)
    y = Relu(r)
    z = MatMul(x, w)
}"""


def saved(text: str, tmp_path: Path) -> Path:
    onnx.save(parser.parse_model(text), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def declared(file: Path) -> list[list[str | int]]:
    outputs = onnx.load(file).graph.output
    return [[dim.dim_param or dim.dim_value for dim in one.type.tensor_type.shape.dim] for one in outputs]


def test_an_edit_that_fixes_a_size_declares_it(tmp_path: Path) -> None:
    out = tmp_path / "n.onnx"
    with onnxsmith.edit(saved(SPREAD, tmp_path), out) as m:
        m.wire("spread", input="shape", tensor=np.array([1, 10]))
    assert declared(out) == [[1, 10]]


def test_simplify_corrects_what_the_file_declares(tmp_path: Path) -> None:
    out = tmp_path / "n.onnx"
    report = onnxsmith.simplify(saved(WRONG, tmp_path), out).report
    (y, z) = declared(out)
    assert y in (["2*batch", 3], [0, 3]), "the name batch is wrong for twice the batch"
    assert z == ["batch", 2]
    assert "y was declared as float[batch,3], but is [" in report.headline


def test_a_right_declaration_is_left_alone(tmp_path: Path) -> None:
    out = tmp_path / "n.onnx"
    report = onnxsmith.simplify(saved(SPREAD, tmp_path), out).report
    assert declared(out) == [["batch", 10]]
    assert "declared" not in report.headline


def port(name: str, *shape: int | str) -> Port:
    return Port(name, "float", shape)


def compared(outputs: list[Port], *runs: tuple[int, tuple[tuple[int, ...], ...]]) -> dict[str, Misdeclared]:
    found = Declarations(Signature((port("x", "n", 4),), tuple(outputs)))
    for size, shapes in runs:
        values = {one.name: np.zeros(shape, np.float32) for one, shape in zip(outputs, shapes, strict=True)}
        found.add({"x": np.zeros((size, 4))}, values)
    return {one.name: one for one in found.wrong()}


def test_each_kind_of_contradiction_is_found() -> None:
    outputs = [
        port("size", "n", 3),
        port("rank", "n"),
        port("name", "n"),
        port("sum", "2*n + 1"),
        port("right", "n", 4),
    ]
    found = compared(outputs, (2, ((2, 5), (2, 1), (3,), (6,), (2, 4))))
    assert {name: one.axes for name, one in found.items()} == {"size": (1,), "rank": None, "name": (0,), "sum": (0,)}


def test_names_of_no_input_are_bound_by_the_first_output() -> None:
    outputs = [port("boxes", "found", 4), port("scores", "found"), port("labels", "found")]
    assert list(compared(outputs, (2, ((7, 4), (7,), (6,))), (3, ((1, 4), (1,), (1,))))) == ["labels"]


def test_a_scalar_a_sequence_and_an_unknown_rank_are_no_contradiction() -> None:
    found = Declarations(
        Signature((port("x", "n"),), (port("a"), Port("b", "float", None), Port("c", "float", (3,), "sequence")))
    )
    found.add({"x": np.zeros(2)}, {"a": np.float32(1), "b": np.zeros((1, 2), np.float32), "c": [np.zeros(2)]})
    assert found.wrong() == ()


@pytest.mark.parametrize("axes", [(1,), None])
def test_what_inference_does_not_know_stays_open(axes: tuple[int, ...] | None, tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[n,4] x) => (int64[n,m] y) { y = NonZero(x) }"""
    model = load(saved(text, tmp_path))
    wrong = Misdeclared("y", "int64[n,m]", axes, (({"n": 2}, (2, 8)), ({"n": 3}, (2, 5))))
    (clause,) = corrected(model, [wrong])
    assert clause.startswith("y was declared as int64[n,m], but is [2, 8] at n = 2; now declared as ")
    shape = model.graph.outputs[0].shape
    assert shape is not None
    assert not isinstance(shape[1], int)
    assert str(shape[1]) in ("None", "?")


def test_a_run_of_another_dtype_is_a_contradiction() -> None:
    found = Declarations(Signature((port("x", "n"),), (port("a", "n"), Port("b", "int64", ("n",)), port("c", "n"))))
    found.add({"x": np.zeros(2)}, {"a": np.zeros(2, np.float32), "b": np.zeros(2, np.int32), "c": np.zeros(2)})
    assert {one.name: (one.dtype, one.axes) for one in found.wrong()} == {"b": ("int32", ()), "c": ("double", ())}


@pytest.mark.parametrize(
    ("given", "clause", "now"),
    [
        (
            "int64",
            "y was declared as float[n,m], but is int64[2, 8] at n = 2; now declared as int64[n,m]",
            ir.DataType.INT64,
        ),
        (
            "int32",  # the runtime may be the one that errs
            (
                "y was declared as float[n,m], but is int32[2, 8] at n = 2; the declared dtype float was not "
                "changed, because "
                "shape inference does not find int32"
            ),
            ir.DataType.FLOAT,
        ),
    ],
)
def test_a_wrong_dtype_is_said(given: str, clause: str, now: ir.DataType) -> None:
    model = from_text(
        """<ir_version: 8, opset_import: ["": 17]> g (float[n,4] x) => (float[n,m] y) { y = NonZero(x) }"""
    )
    wrong = Misdeclared("y", "float[n,m]", (), (({"n": 2}, (2, 8)),), given)
    assert corrected(model, [wrong]) == [clause]
    assert model.graph.outputs[0].dtype == now


def test_runs_that_give_different_numbers_of_axes(tmp_path: Path) -> None:
    """Squeeze without axes removes each axis of size 1, so that the rank depends on the sizes."""
    text = '<ir_version: 10, opset_import: ["": 20]> g (float[n,1,8] x) => (float[n,5] y) { y = Squeeze(x) }'
    save(from_text(text), tmp_path / "m.onnx")
    result = onnxsmith.simplify(tmp_path / "m.onnx", tmp_path / "o.onnx")
    assert result.report.verdict is Verdict.DONE
    assert "the declared shape was not changed, because runs give different numbers of axes" in result.report.headline
