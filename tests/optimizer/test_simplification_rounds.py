"""All of it together: what one step uncovers the next one takes, and a second run finds nothing."""

from __future__ import annotations

from pathlib import Path

import onnx_ir as ir
import pytest

from onnxsmith.base.settings import Verify
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.optimizer.simplification_rounds import simplified
from onnxsmith.verification.sessions import verify_models

DECLARED = """<ir_version: 8, opset_import: ["": 17]> g (float[n,4] x) => (float[n,4] y) {
    b = Exp(x)
    c = Sin(b)
    d = Cos(c)
    y = Tanh(d)
}"""

HEAD = '<ir_version: 10, opset_import: ["": 20]>'

MODELS = {
    "a condition that follows from a size": """(float[N,4] x) => (float[N,4] y) <int64 four = {4}, int64 one = {1}> {
        s = Shape(x)\n d = Gather(s, one)\n c = Equal(d, four)
        y = If(c) <then_branch = t () => (float[A,B] p) { a = Exp(x)\n b = Exp(x)\n p = Add(a, b) },
                   else_branch = e () => (float[A,B] q) { q = Neg(x) }>
    }""",
    "equal results of folding": """(float[2] x) => (float[2] y) <float[2] u = {1, 4}, float[2] w = {1, 4}> {
        a = Sqrt(u)\n b = Sqrt(w)\n c = Add(x, a)\n d = Add(x, b)\n e = Exp(c)\n f = Exp(d)\n y = Mul(e, f)
    }""",
    "a chain of growing expands": """(float[1] x) => (float[M] y)
        <float[1] w = {1}, int64[1] k = {200}, int64[2] l = {2, 200}, int64[3] m = {2, 2, 200}, int64[1] flat = {-1}> {
        a = Expand(w, k)\n b = Expand(a, l)\n c = Expand(b, m)\n d = Reshape(c, flat)\n y = Add(x, d)
    }""",
    "4 MB of zeros": """(float[1] x) => (float[M] y) <int64[1] n = {1000000}> {
        a = ConstantOfShape(n)\n y = Add(x, a)
    }""",
}


@pytest.mark.parametrize("case", MODELS)
def test_a_second_run_changes_nothing(case: str, tmp_path: Path) -> None:
    model = from_text(f"{HEAD} g {MODELS[case]}")
    once, part = simplified(model, max_growth=0)  # each run may grow the file, so that a second run may fold more
    assert part.rounds < 10
    save(once, tmp_path / "once.onnx")
    twice, again = simplified(load(tmp_path / "once.onnx"), max_growth=0)
    save(twice, tmp_path / "twice.onnx")
    assert not again.fired
    assert (tmp_path / "once.onnx").read_bytes() == (tmp_path / "twice.onnx").read_bytes()
    assert (tmp_path / "once.onnx").stat().st_size < 10_000
    assert verify_models(model, once, Verify(runtime="reference")).equal


def test_steps_feed_each_other() -> None:
    wanted = {"a condition that follows from a size": ["Exp", "Add"], "equal results of folding": ["Add", "Exp", "Mul"]}
    for case, ops in wanted.items():
        result, _ = simplified(from_text(f"{HEAD} g {MODELS[case]}"))
        assert [node.op_type for node in result.graph] == ops


def test_zeros_stay_a_computation() -> None:
    result, part = simplified(from_text(f"{HEAD} g {MODELS['4 MB of zeros']}"))
    assert [node.op_type for node in result.graph] == ["ConstantOfShape", "Add"]
    assert any(entry.rule == "fold/constant" and "larger" in entry.why_not for entry in part.refused)


def test_steps_can_be_left_out() -> None:
    model = from_text(f"{HEAD} g {MODELS['equal results of folding']}")
    result, _ = simplified(model, skip=["fold/constant", "share/nodes", "share/initializers"])
    assert len(result.graph) == len(model.graph)


def test_wrong_declarations_are_counted_and_a_wrong_dtype_does_not_mislead() -> None:
    model = from_text(DECLARED)
    wrong: dict[str, tuple[ir.DataType, list[int | str]]] = {
        "b": (ir.DataType.DOUBLE, ["n", 4]),
        "c": (ir.DataType.FLOAT, ["n", 5]),
        "d": (ir.DataType.FLOAT, ["n", 4]),
    }
    for value in (value for node in model.graph for value in node.outputs):
        if value.name in wrong:
            dtype, shape = wrong[value.name]
            value.type, value.shape = ir.TensorType(dtype), ir.Shape(shape)
    simple, part = simplified(model)
    assert part.misdeclared == 2
    kept = {value.name: value for node in simple.graph for value in node.outputs}
    assert kept["b"].dtype == ir.DataType.FLOAT
    assert kept["c"].shape is None
    assert kept["d"].shape == ir.Shape(["n", 4])
    assert simplified(simple)[1].misdeclared == 0
