"""prune: what the report and refusals say of layers that are not followed, of functions, and of figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.parts.pruning import Pruning
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from tests.conftest import Refused
from tests.precision.pruning import model

BRANCHES = (
    "g (float[n,3,6,6] x, bool c, float[8,3,3,3] w1, float[4,8,1,1] w2, float[4,8,1,1] w3) => (float[n,4,4,4] y) "
    "{ a = Conv(x, w1) r = Relu(a) y = If(c) <then_branch = t () => (float[n,4,4,4] o) { o = Conv(r, w2) }, "
    "else_branch = e () => (float[n,4,4,4] p) { p = Conv(r, w3) }> }"
)
FUSED = (
    "g (float[n,3,6,6] x, float[8,3,3,3] w1, float[8] b1, float[4,8,1,1] w2, float[4,2] w3) => (float[n,4,4,2] y) "
    '{ a = com.microsoft.FusedConv<activation = "Relu">(x, w1, b1) b = Conv(a, w2) y = MatMul(b, w3) }'
)
BOTH = '<ir_version: 10, opset_import: ["": 20, "com.microsoft": 1]>\n'
LOOP = (
    "g (float[n,8] x, float[8,16] w1, float[16,8] w2, float[8,8] w3, float[8,6] w4, float[6,3] w5, int64[1] n_2) "
    "=> (float[n,3] y) { a = MatMul(x, w1) r = Relu(a) b = MatMul(r, w2) k = Squeeze(n_2) "
    "l = Loop(k, , b) <body = body (int64 i, bool c, h) => (bool d, o) { d = Identity(c) o = MatMul(h, w3) }> "
    "m = MatMul(l, w4) s = Relu(m) y = MatMul(s, w5) }"
)


def told(given: ir.Model, folder: Path, **options: Any) -> Pruning:
    save(given, folder / "m.onnx")
    result = onnxsmith.prune(folder / "m.onnx", measure_time=False, **{"share": 0.5, **options})
    return next(one for one in result.report.parts if isinstance(one, Pruning))


def refusal(given: ir.Model, folder: Path, **options: Any) -> Problem:
    save(given, folder / "m.onnx")
    with pytest.raises(OnnxsmithError) as error:
        onnxsmith.prune(folder / "m.onnx", measure_time=False, **options)
    return error.value.problem


def test_layers_in_branches_are_counted(tmp_path: Path) -> None:
    problem = refusal(model(BRANCHES, inputs=2), tmp_path)
    assert problem.id == "prune/nothing"
    assert "2 Conv lie in branches of If, which prune does not change" in problem.why
    assert "`onnxsmith simplify MODEL -o s.onnx` replaces an If" in problem.fix


def test_layers_of_a_body_are_told_in_the_report(tmp_path: Path) -> None:
    found = told(model(LOOP), tmp_path)
    assert "1 MatMul lies in bodies of Loop, which prune does not change" in found.notes


def test_a_layer_behind_an_unknown_shape_is_listed(tmp_path: Path) -> None:
    """Each layer of the main graph is cut, or listed with a reason."""
    found = told(model(LOOP), tmp_path)
    listed = {name: one.reason for one in found.fixed for name in one.layers} | {one.name: "" for one in found.layers}
    assert set(listed) == {"MatMul:a", "MatMul:b", "MatMul:m", "MatMul:y"}
    assert listed["MatMul:m"] == listed["MatMul:y"] == "the shape after Loop 'Loop:l' is not known"
    assert {one.layers: one.count for one in found.fixed}["MatMul:m",] == 6


def test_multiply_adds_that_are_not_counted_say_why(tmp_path: Path) -> None:
    found = told(model(LOOP), tmp_path)
    assert found.macs_before is None
    assert "not counted: the shapes of " in str(list(found.blocks()))


def test_operators_of_onnxruntime_are_named(tmp_path: Path) -> None:
    problem = refusal(model(FUSED, head=BOTH), tmp_path)
    assert problem.id == "prune/nothing"
    assert "com.microsoft::FusedConv: this operator comes from onnxruntime's optimisations" in problem.why
    assert "prune the file from before onnxruntime's optimisations" in problem.fix
    assert "1 com.microsoft::FusedConv" in problem.fix


def test_operators_of_onnxruntime_are_told_in_the_report(tmp_path: Path) -> None:
    text = (
        "g (float[n,4] x, float[4,8] w1, float[8,8] w2, float[8] b2, float[8,3] w3) => (float[n,3] y) "
        "{ a = MatMul(x, w1) r = Relu(a) b = MatMul(r, w2) g = com.microsoft.BiasGelu(b, b2) y = MatMul(g, w3) }"
    )
    found = told(model(text, head=BOTH), tmp_path)
    assert [one.name for one in found.layers] == ["MatMul:a"]
    assert "an operator of onnxruntime" in str(found.fixed)
    assert any("1 com.microsoft::BiasGelu" in note for note in found.notes)


def test_layers_of_functions_are_called_by_the_call(tmp_path: Path) -> None:
    text = (
        "g (float[n,4] x, float[4,8] w1, float[8,8] w2, float[8,3] w3) => (float[n,3] y) "
        "{ a = own.Layer(x, w1) b = own.Layer(a, w2) y = MatMul(b, w3) }\n"
        '<domain: "own", opset_import: ["": 20]> Layer (x, w) => (y) { m = MatMul(x, w) y = Relu(m) }'
    )
    head = '<ir_version: 10, opset_import: ["": 20, "own": 1]>\n'
    found = told(model(text, head=head), tmp_path)
    assert [one.name for one in found.layers] == ["MatMul:a/m", "MatMul:b/m"]
    assert any("calls of functions were replaced by their nodes (2 of Layer)" in note for note in found.notes)


@pytest.mark.parametrize("version", [3, 10])
def test_weights_that_were_graph_inputs_are_noted(tmp_path: Path, version: int) -> None:
    made = model(
        "g (float[n,4] x, float[4,8] w1, float[8,3] w2) => (float[n,3] y) { a = MatMul(x, w1) y = MatMul(a, w2) }",
        head='<ir_version: 10, opset_import: ["": 8]>\n',
    )
    made.ir_version = version
    made.graph.inputs.extend(made.graph.initializers.values())
    found = told(made, tmp_path)
    assert "2 weights were also graph inputs, which a caller could replace; now they are constants" in found.notes


def test_parameters_before_are_those_of_the_file(tmp_path: Path) -> None:
    """A bias that two layers share is copied while they lose different channels; a layer that stays keeps the one."""
    text = (
        "g (float[n,4] x, float[4,8] w1, float[8] b, float[8,8] w2, float[8,3] w3) => (float[n,3] y) "
        "{ a = Gemm(x, w1, b) r = Relu(a) c = Gemm(r, w2, b) y = MatMul(c, w3) }"
    )
    found = told(model(text), tmp_path)
    assert found.parameters_before == 32 + 8 + 64 + 24
    assert found.parameters_after == 16 + 4 + 16 + 12 + 4


def test_copies_that_stayed_equal_are_one_tensor(tmp_path: Path) -> None:
    made = model(
        "g (float[n,4] x, float[4,8] w1, float[8] b, float[8,8] w2, float[8,8] w3, float[8,3] w4) => (float[n,3] y) "
        "{ a = Gemm(x, w1, b) s = Softmax(a) c = Gemm(s, w2, b) t = Softmax(c) d = MatMul(t, w3) y = MatMul(d, w4) }"
    )
    save(made, tmp_path / "m.onnx")
    result = onnxsmith.prune(tmp_path / "m.onnx", share=0.5, measure_time=False)
    assert result.model is not None
    assert sorted(result.model.graph.initializers) == ["b", "w1", "w2", "w3", "w4"]


PLAIN = "g (float[n,4] x, float[4,8] w1, float[8,3] w2) => (float[n,3] y) { a = MatMul(x, w1) y = MatMul(a, w2) }"


def test_a_weight_that_is_not_finite_is_named(tmp_path: Path) -> None:
    made = model(PLAIN)
    array = np.full((8, 3), np.nan, np.float32)
    array[1:] = 1
    made.graph.initializers["w2"].const_value = ir.tensor(array, name="w2")
    problem = refusal(made, tmp_path)
    assert problem.id == "prune/not-finite"
    assert "w2 (3 of 24 elements)" in problem.where


@pytest.mark.parametrize("dtype", ["bfloat16", "double"])
def test_other_dtypes_say_what_helps(tmp_path: Path, dtype: str) -> None:
    text = (
        f"g ({dtype}[n,3,6,6] x, {dtype}[8,3,3,3] w1, {dtype}[4,8,1,1] w2) => ({dtype}[n,4,4,4] y) "
        "{ a = Conv(x, w1) y = Conv(a, w2) }"
    )
    made = model(text)
    for value in made.graph.initializers.values():
        assert value.const_value is not None
        array = value.const_value.numpy()
        kind = ir.DataType.BFLOAT16 if dtype == "bfloat16" else ir.DataType.DOUBLE
        value.const_value = ir.tensor(array.astype(kind.numpy()), name=value.name)
    problem = refusal(made, tmp_path)
    assert problem.id.startswith("runtime/")
    assert f"the model computes in {dtype}" in problem.why
    assert "after `network.float()`" in problem.fix


def test_a_module_on_the_keep_list_is_all_in_it(tmp_path: Path) -> None:
    made = model(PLAIN.replace("a = MatMul(x, w1)", "h = MatMul(x, w1) a = Relu(h)"))
    first = next(iter(made.graph))
    first.metadata_props["pkg.torch.onnx.name_scopes"] = "['', 'a', 'a.0', 'linear']"
    for entry in ("a", "a.0", "a.*"):
        assert "on the given keep-list" in refusal(made, tmp_path, keep=[entry]).why
    assert refusal(made, tmp_path, keep=["b"]).id == "prune/unknown-layer"


def test_the_list_of_what_stayed_is_no_list_of_layers(tmp_path: Path) -> None:
    from onnxsmith.precision import keep_list

    path = tmp_path / "kept.json"
    path.write_text('{"w1": {"1": [0, 2]}}')
    with pytest.raises(OnnxsmithError, match="bisect/keep-list") as error:
        keep_list.read(path)
    assert "the file comes from `onnxsmith prune --keep-list`" in error.value.problem.why
    path.write_text("{}")
    with pytest.raises(OnnxsmithError) as error:
        keep_list.read(path)
    assert "KeyError" not in error.value.problem.why


def test_channels_that_nothing_reads_go_first(tmp_path: Path) -> None:
    text = (
        "g (float[n,4] x, float[4,24] w1, int64[2] n_12_12, float[12,3] w2) => (float[n,3] y) "
        "{ a = MatMul(x, w1) p, q = Split<axis = 1>(a, n_12_12) y = MatMul(p, w2) }"
    )
    found = told(model(text), tmp_path, share=0.25)
    assert [(one.before, one.after) for one in found.layers] == [(24, 9 + 1)]


def test_weights_without_elements_have_no_channels(tmp_path: Path, refused: Refused) -> None:
    text = """<ir_version: 10, opset_import: ["": 21]> g (float[n,16] x) => (float[n,10] y)
        <float[16,0] first = {}, float[0,10] second = {}> { a = MatMul(x, first) y = MatMul(a, second) }"""
    save(from_text(text), tmp_path / "m.onnx")
    with refused("prune/nothing"):
        onnxsmith.prune(tmp_path / "m.onnx", tmp_path / "p.onnx", measure_time=False)
