"""Raising the opset: functions stay where their operators mean the same, maps pass, and an impossible change is an
error."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.report.parts.edits import Edits
from onnxsmith.graph.files.load import from_proto
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure import carried_fields, walk
from onnxsmith.graph.surgery import opset_conversion

FUNCTIONS = """<ir_version: 10, opset_import: ["": 18, "my": 1, "lib": 1, "inner": 1]>
fun (float[n,6] x) => (float[n,6] y, float[n,6] z) <float[6] g = {1,2,3,4,5,6}> {
  a = my.Block <alpha = 0.3> (x, g)
  y = lib.Norm (a)
  z = my.Act <slope = 0.05> (a)
}
<opset_import: ["": 18], domain: "my">
Act <slope> (u) => (v) { v = LeakyRelu <alpha: float = @slope> (u) }
<opset_import: ["": 18, "my": 1, "inner": 1], domain: "my">
Block <alpha> (u, w) => (v) { s = Mul(u, w) t = my.Act <slope: float = @alpha> (s) i = inner.Twice(t) v = Add(i, u) }
<opset_import: ["": 18], domain: "inner">
Twice (u) => (v) { v = Add(u, u) }
<opset_import: ["": 18], domain: "lib">
Norm (u) => (v) { ax = Constant <value = int64[1] {-1}> () m = ReduceMean <keepdims = 1> (u, ax) v = Sub(u, m) }
"""
X = np.array([[-1.0, 0.5, 2.0, 3.0, -4.0, 0.0]], np.float32)


def names(model: ir.Model) -> set[str]:
    return {f"{domain}::{name}" for domain, name, _ in model.functions}


def same_numbers(a: ir.Model, b: ir.Model, x: np.ndarray = X) -> None:
    one, two = (onnxsmith.run(model, {"x": x}).outputs for model in (a, b))
    assert one.keys() == two.keys()
    for name in one:
        assert np.array_equal(one[name], two[name])


@pytest.mark.parametrize("target", [19, 20, 21])
def test_functions_of_unchanged_operators_stay(target: int) -> None:
    model = from_text(FUNCTIONS)
    made = opset_conversion.convert(model, target)
    assert names(made) == names(model)
    assert {function.opset_imports[""] for function in made.functions.values()} == {target}
    assert {domain: made.opset_imports[domain] for domain in ("", "my", "lib")} == {"": target, "my": 1, "lib": 1}
    assert opset_conversion.inlined_functions(model, made) == []
    assert {function.opset_imports[""] for function in model.functions.values()} == {18}
    onnx.checker.check_model(ir.to_proto(made), full_check=True)
    same_numbers(model, made)


def test_only_the_functions_of_changed_operators_are_inlined_and_the_report_says_so(tmp_path: Path) -> None:
    text = FUNCTIONS.replace("18", "17").replace(
        "m = ReduceMean <keepdims = 1> (u, ax)", "m = ReduceMean <axes = [-1], keepdims = 1> (u)"
    )
    model = from_text(text)
    onnxsmith.save(model, tmp_path / "m.onnx")
    with onnxsmith.edit(tmp_path / "m.onnx") as m:
        m.opset(21)
    assert m.result is not None
    assert "local functions were inlined: lib::Norm" in m.result.report.part(Edits).notes
    made = onnxsmith.load(tmp_path / "m.onnx")
    assert names(made) == {"my::Act", "my::Block", "inner::Twice"}
    assert "lib" not in made.opset_imports
    same_numbers(model, made)


def test_a_function_that_calls_an_inlined_one_is_inlined_too() -> None:
    text = FUNCTIONS.replace("v = Add(u, u) }", "v = Cast <to = 1> (u) }")
    model = from_text(text)  # Cast has a new attribute since opset 19
    made = opset_conversion.convert(model, 20)
    assert names(made) == {"my::Act", "lib::Norm"}
    same_numbers(model, made)


@pytest.mark.parametrize("target", [11, 20])
def test_functions_that_cannot_stay_are_named_downwards_too(target: int, tmp_path: Path) -> None:
    text = (
        '<ir_version: 10, opset_import: ["": 21, "my": 1]> g (float[n,6] x) => (float[n,6] y) { y = my.F(x) }\n'
        '<opset_import: ["": 21], domain: "my"> F (u) => (v) { v = Gelu(u) }'
    )
    onnxsmith.save(from_text(text), tmp_path / "m.onnx")
    with onnxsmith.edit(tmp_path / "m.onnx") as m:
        m.opset(target)
    assert m.result is not None
    wanted = () if target == 20 else ("local functions were inlined: my::F",)
    assert m.result.report.part(Edits).notes == wanted


@pytest.mark.parametrize("channels", ["4", "c"])
def test_a_scale_of_each_group_becomes_one_of_each_channel(channels: str) -> None:
    """The number of channels may be known only when the model runs. The attribute epsilon stays."""
    text = (
        '<ir_version: 10, opset_import: ["": 18, "my": 1]> '
        f"g (float[n,{channels},6] x, float[2] s) => (float[n,{channels},6] y) <float[2] b = {{1, -1}}>"
        "{ a = my.Same(x) y = GroupNormalization<num_groups = 2, epsilon = 0.5>(a, s, b) }\n"
        '<opset_import: ["": 18], domain: "my"> Same (u) => (v) { v = Relu(u) }'
    )
    model = from_text(text)
    made = opset_conversion.convert(model, 21)
    x, s = np.arange(48, dtype=np.float32).reshape(2, 4, 6), np.array([0.5, 2], np.float32)
    one, two = (onnxsmith.run(graph, {"x": x, "s": s}).outputs["y"] for graph in (model, made))
    np.testing.assert_allclose(one, two, rtol=1e-6)
    assert names(made) == {"my::Same"}


def test_a_change_that_cannot_be_made_is_an_error_with_the_node() -> None:
    """Opset 8 had a batch in front of the sequence."""
    text = (
        '<ir_version: 8, opset_import: ["": 8]> g (float[1,2] i, float[1,3,2] x) => (float[1,2] y, float[1,3,2] z) '
        "{ y, z = Scan<num_scan_inputs=1, body = b (float[2] s, float[2] e) => (float[2] t, float[2] o) "
        "{ t = Add(s, e) o = Identity(t) }>( , i, x) }"
    )
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        opset_conversion.convert(from_text(text), 21)
    assert caught.value.problem.why == (
        "Scan -> y: the operator runs over a batch of sequences, but since opset 9 it runs over one sequence"
    )


def zip_map(opset_version: int) -> ir.Model:
    """A classifier whose output is a list of maps."""
    make = onnx.helper
    numbers = make.make_tensor_type_proto(onnx.TensorProto.FLOAT, [])
    maps = make.make_sequence_type_proto(make.make_map_type_proto(onnx.TensorProto.STRING, numbers))
    graph = make.make_graph(
        [
            make.make_node("Softmax", ["x"], ["p"], axis=1),
            make.make_node("ZipMap", ["p"], ["y"], domain="ai.onnx.ml", classlabels_strings=["no", "yes"]),
        ],
        "g",
        [make.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [None, 2])],
        [make.make_value_info("y", maps)],
    )
    imports = [make.make_opsetid("", opset_version), make.make_opsetid("ai.onnx.ml", 1)]
    return from_proto(make.make_model(graph, opset_imports=imports, ir_version=6), where="the test")


@pytest.mark.parametrize(("now", "target"), [(9, 12), (12, 15), (12, 21), (18, 21), (15, 13)])
def test_a_model_with_maps_is_converted(now: int, target: int) -> None:
    model = zip_map(now)
    made = opset_conversion.convert(model, target)
    assert opset_conversion.of(made) == target
    assert {node.domain for node in walk.all_nodes(made) if node.op_type == "ZipMap"} == {"ai.onnx.ml"}
    assert carried_fields.map_types(made.graph.outputs[0]) == ("string", "float", True)
    onnx.checker.check_model(carried_fields.to_proto(made))
    x = X[:, :2]
    before, after = (onnxsmith.run(one, {"x": x}).outputs["y"] for one in (model, made))
    assert str(before) == str(after)


def test_merge_converts_a_model_with_maps(tmp_path: Path) -> None:
    first = from_text('<ir_version: 8, opset_import: ["": 17]> f (float[n,2] r) => (float[n,2] x) { x = Neg(r) }')
    result = onnxsmith.merge(first, zip_map(12), tmp_path / "both.onnx")
    assert result.ok, result.report.problems


def test_inlining_leaves_no_metadata_on_the_functions_that_stay(tmp_path: Path) -> None:
    onnxsmith.save(from_text(FUNCTIONS), tmp_path / "m.onnx")
    with onnxsmith.edit(tmp_path / "m.onnx") as m:
        m.inline("lib::Norm")
    assert b"onnxsmith" not in (tmp_path / "m.onnx").read_bytes()


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize(("shape", "axis"), [("n,3", 0), ("n,3,m", 1), ("n,3,m", -3), ("n,3,2", 1), ("2,3,2", 0)])
def test_a_softmax_over_several_axes_stays_right_at_size_zero(operator: str, shape: str, axis: int) -> None:
    model = from_text(
        '<ir_version: 7, opset_import: ["": 12]>\n'
        f"g (float[{shape}] x) => (float[{shape}] y) {{ y = {operator} <axis = {axis}> (x) }}"
    )
    made = opset_conversion.convert(model, 13)
    rng = np.random.default_rng(0)
    for sizes in ({"n": 2, "m": 4}, {"n": 0, "m": 4}, {"n": 2, "m": 0}, {"n": 0, "m": 0}):
        dims = [sizes.get(dim) if dim in sizes else int(dim) for dim in shape.split(",")]
        same = [onnxsmith.run(one, {"x": x}).outputs["y"] for x in [rng.normal(size=dims).astype(np.float32)]
                for one in (model, made)]  # fmt: skip
        assert same[0].shape == same[1].shape
        assert np.allclose(same[0], same[1], rtol=1e-6)
