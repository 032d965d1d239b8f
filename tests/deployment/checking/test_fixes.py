"""Fixes: each computes what the model computed, and leaves alone what it cannot write otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base import rooms
from onnxsmith.base.report.parts.target_checks import TargetChecks
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.deployment.checking.fixes.base import Fix
from onnxsmith.deployment.checking.fixes.constant_products import FourierProducts, ResizeProducts
from onnxsmith.deployment.checking.fixes.operand_types import IntegerGemm, WiderTypes
from onnxsmith.deployment.checking.fixes.operands import FoldDequantized, ScalarAxis, SqueezeAxes
from onnxsmith.deployment.checking.fixes.other_operators import (
    Col2imConvolution,
    EqualBools,
    ExpandOperators,
    ScatterMasks,
    SmallDeterminants,
)
from onnxsmith.deployment.checking.fixes.whole_model import (
    DeclaredShapes,
    InlineFunctions,
    NodeNames,
    OlderIrVersion,
    OtherOpset,
    Simplify,
)
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure import walk
from onnxsmith.verification.sessions import verify_models

HEAD = '<ir_version: 10, opset_import: ["": 17]> '
LATER = HEAD.replace("17", "20")
STFT = HEAD + (
    "g (float[n,l] x) => (float[n,f,b,2] y) <int64 step = {8}, float[16] w = {"
    + ",".join(f"{value:.3f}" for value in np.hanning(16))
    + "}> { y = STFT(x, step, w) }"
)


def only(fix: Fix, model: ir.Model, refused: tuple[str, ...] = ()) -> ir.Model:
    before = onnxsmith.load(model)
    count = walk.count_nodes(before)
    found = [made for _, made in fix.tries(model, refused)]
    assert walk.count_nodes(model) == count
    assert found
    return found[0]


def agree(fix: Fix, text: str, refused: tuple[str, ...] = (), **sizes: int) -> ir.Model:
    model = from_text(text)
    made = only(fix, model, refused)
    part = verify_models(model, made, onnxsmith.Verify(sizes=sizes))
    assert part.equal, (part.notes, part.unsure, part.outputs)
    return made


@pytest.mark.parametrize(
    "text",
    [
        STFT,
        STFT.replace("STFT(x", "STFT<onesided = 0>(x"),
        STFT.replace("float[n,l] x", "float[n,l,1] x"),
        HEAD + "g (float[n,l] x) => (float[n,f,b,2] y) <int64 step = {5}, int64 k = {8}> { y = STFT(x, step, , k) }",
    ],
)
def test_a_short_time_fourier_transform(text: str) -> None:
    made = agree(FourierProducts(), text, l=64)
    assert "STFT" not in {node.op_type for node in made.graph}


@pytest.mark.parametrize("attributes", ["axis = 1", "axis = 2", "axis = 1, onesided = 1", "axis = -2"])
def test_a_fourier_transform(attributes: str) -> None:
    text = HEAD + f"g (float[n,6,9,1] x) => (float[n,a,b,2] y) {{ y = DFT<{attributes}>(x) }}"
    agree(FourierProducts(), text)


def test_a_fourier_transform_of_opset_20_with_a_length_that_pads() -> None:
    text = HEAD.replace("17", "20") + (
        "g (float[n,6,1] x) => (float[n,8,2] y) <int64 axis = {1}, int64 k = {8}> { y = DFT(x, k, axis) }"
    )
    agree(FourierProducts(), text)


@pytest.mark.parametrize(
    "text",
    [
        LATER + "g (float[n,6,2] x) => (float[n,7,1] y) <int64 k = {7}, int64 a = {1}> "
        "{ y = DFT<inverse = 1, onesided = 1>(x, k, a) }",
        HEAD + "g (float[n,m,1] x) => (float[n,m,2] y) { y = DFT<axis = 1>(x) }",
        HEAD + "g (float[n,6,1] x, int64 k) => (float[n,m,2] y) { y = DFT<axis = 1>(x, k) }",
        HEAD + "g (float[n,l] x, int64 s) => (float[n,f,b,2] y) <int64 k = {12}> { y = STFT(x, s, , k) }",
    ],
)
def test_what_is_computed_complex_or_inverse_stays(text: str) -> None:
    assert not list(FourierProducts().tries(from_text(text), ()))


def test_a_squeeze_names_its_axes() -> None:
    made = agree(SqueezeAxes(), HEAD + "g (float[2,1,3,1] x) => (float[2,3] y) { a = Relu(x) y = Squeeze(a) }")
    (node,) = (node for node in made.graph if node.op_type == "Squeeze")
    axes = ir.convenience.get_const_tensor(node.inputs[1])
    assert axes is not None
    assert axes.numpy().tolist() == [1, 3]


def test_a_squeeze_of_a_symbolic_size_stays() -> None:
    text = HEAD + "g (float[n,1,3] x) => (float[n,3] y) { y = Squeeze(x) }"
    assert not list(SqueezeAxes().tries(from_text(text), ()))


def test_an_operator_is_written_out() -> None:
    text = HEAD + "g (float[n,4] x) => (float[n,4] y) { y = HardSwish(x) }"
    made = agree(ExpandOperators(), text, ("HardSwish",))
    assert "HardSwish" not in {node.op_type for node in made.graph}
    assert not list(ExpandOperators().tries(from_text(text), ("Relu",)))


def test_functions_are_replaced() -> None:
    text = (
        '<ir_version: 10, opset_import: ["": 20, "l": 1]> g (float[n] x) => (float[n] y) { y = l.twice(x) } '
        '<opset_import: ["": 20], domain: "l"> twice (a) => (b) { b = Add(a, a) }'
    )
    made = agree(InlineFunctions(), text)
    assert [node.op_type for node in made.graph] == ["Add"]


def test_another_opset_and_an_older_ir_version() -> None:
    text = HEAD.replace("17", "20") + "g (float[n,4] x) => (float[n,4] y) { a = Neg(x) y = Relu(a) }"
    assert agree(OtherOpset(), text).opset_imports[""] == 18
    newer = text.replace("ir_version: 10", "ir_version: 11")
    assert agree(OlderIrVersion(), newer).ir_version == 10


def test_simplified() -> None:
    text = HEAD + "g (float[n,4] x) => (float[n,4] y) { a = Identity(x) b = Identity(a) y = Relu(b) }"
    assert len(agree(Simplify(), text).graph) == 1


# Two elements of int4 share a byte.
DEQUANTIZE = HEAD.replace("17", "21") + (
    "g (float[n,4,2] x) => (float[n,4,2] y) <int4[4,2] w = {120,33,-61,101}, SCALES> "
    "{ f = DequantizeLinear<OPTIONS>(w, s, z) y = Add(x, f) }"
)


@pytest.mark.parametrize(
    ("scales", "options"),
    [
        ("float s = {0.5}, int4 z = {1}", "axis = 0"),
        ("float[2] s = {0.5, 0.25}, int4[2] z = {-31}", "axis = 1"),
        ("float[2,2] s = {0.5, 0.25, 2.0, 1.0}, int4[2,2] z = {-31, 48}", "axis = 0, block_size = 2"),
    ],
)
def test_quantised_constants_become_floats(scales: str, options: str) -> None:
    text = DEQUANTIZE.replace("SCALES", scales).replace("OPTIONS", options)
    made = agree(FoldDequantized(), text, ("DequantizeLinear",))
    assert [node.op_type for node in made.graph if node.op_type != "Constant"] == ["Add"]
    assert "w" not in made.graph.initializers
    assert not list(FoldDequantized().tries(from_text(text), ("Add",)))


def test_quantised_constants_that_would_become_large_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    from onnxsmith.deployment.checking.fixes import operands

    monkeypatch.setattr(operands, "_MOST", 31)  # the floats take 32 bytes
    text = DEQUANTIZE.replace("SCALES", "float s = {0.5}, int4 z = {1}").replace("OPTIONS", "axis = 0")
    assert not list(FoldDequantized().tries(from_text(text), ("DequantizeLinear",)))


def test_weights_that_are_computed_stay_quantised() -> None:
    text = HEAD.replace("17", "21") + (
        "g (int8[4,2] w) => (float[4,2] y) <float s = {0.5}> { f = DequantizeLinear(w, s) y = Neg(f) }"
    )
    assert not list(FoldDequantized().tries(from_text(text), ("DequantizeLinear",)))


def test_repeated_node_names_become_different() -> None:
    text = HEAD + "g (float[n] x) => (float[n] y) { [n] a = Neg(x) [n_1] b = Abs(a) [n] y = Relu(b) }"
    made = only(NodeNames(), from_text(text))
    assert [node.name for node in made.graph] == ["n", "n_1", "n_2"]
    assert not list(NodeNames().tries(made, ()))


def test_a_file_with_repeated_node_names_is_fixed(tmp_path: Path) -> None:
    text = HEAD + "g (float[n] x) => (float[n] y) { [n] a = Neg(x) [n] y = Relu(a) }"
    onnxsmith.save(from_text(text), tmp_path / "m.onnx")
    told = onnxsmith.check(tmp_path / "m.onnx", ["onnxruntime"]).report.part(TargetChecks).checks[0]
    assert told.whole
    assert not told.nodes
    assert "2 nodes are called 'n'" in told.why
    assert told.rewrite.startswith("nodes renamed, so that every name is unique")
    done = onnxsmith.check(tmp_path / "m.onnx", ["onnxruntime"], tmp_path / "f.onnx", fix=True)
    assert done.report.verdict is Verdict.DONE, done.report.to_json()


def test_declared_shapes_go_and_those_of_outputs_stay() -> None:
    model = from_text(HEAD + "g (float[n,4] x) => (float[n,4] y) { a = Neg(x) y = Relu(a) }")
    model.graph[0].outputs[0].shape = ir.Shape(["wrong", 4])
    made = only(DeclaredShapes(), model)
    assert made.graph[0].outputs[0].shape is None
    assert made.graph.outputs[0].shape is not None


def test_ranks_are_an_order() -> None:
    ranks = [fix.rank for fix in rooms.members("onnxsmith.deployment.checking.fixes", Fix).values()]
    assert len(set(ranks)) == len(ranks)


def test_a_refused_model_is_fixed_verified_and_written(tmp_path: Path) -> None:
    onnxsmith.save(from_text(STFT), tmp_path / "m.onnx")
    settings: dict[str, Any] = {"verify": onnxsmith.Verify(sizes={"l": 64})}
    told = onnxsmith.check(tmp_path / "m.onnx", ["openvino"], **settings)
    assert "Fourier" in told.report.part(TargetChecks).checks[0].rewrite
    result = onnxsmith.check(tmp_path / "m.onnx", ["openvino"], tmp_path / "f.onnx", fix=True, **settings)
    assert result.report.verdict is Verdict.DONE, result.report.to_json()
    assert "openvino agreed" in result.report.headline
    assert result.path == tmp_path / "f.onnx"
    assert onnxsmith.compare(tmp_path / "m.onnx", tmp_path / "f.onnx", sizes={"l": 64}).ok


def test_a_wrong_fix_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from onnxsmith.deployment.checking.fixes import constant_products

    right = constant_products._fourier_matrix

    def wrong(size: int, bins: int) -> Any:
        cosines, sines = right(size, bins)
        return cosines, -sines

    monkeypatch.setattr(constant_products, "_fourier_matrix", wrong)
    onnxsmith.save(from_text(STFT), tmp_path / "m.onnx")
    result = onnxsmith.check(
        tmp_path / "m.onnx", ["openvino"], tmp_path / "f.onnx", fix=True, verify=onnxsmith.Verify(sizes={"l": 64})
    )
    assert result.report.verdict is Verdict.DIFFERENT
    assert not (tmp_path / "f.onnx").exists()
    assert "would accept the model with this rewrite, Fourier" in result.report.headline
    assert "but the result differs from the original" in result.report.headline


@pytest.mark.parametrize("axis", [1, 2, -2])
@pytest.mark.parametrize("inverse", [0, 1])
def test_a_complex_fourier_transform(axis: int, inverse: int) -> None:
    # Of lengths that are no powers of 2, onnxruntime's own transform has errors of 1e-5.
    text = LATER + (
        f"g (float[2,8,4,2] x) => (float[2,8,4,2] y) <int64 axis = {{{axis}}}> "
        f"{{ y = DFT<inverse = {inverse}>(x, , axis) }}"
    )
    made = agree(FourierProducts(), text)
    assert not [node for node in made.graph if node.op_type == "DFT"]


def test_a_transform_of_one_side_and_back() -> None:
    text = LATER + (
        "g (float[n,8,3,1] x) => (float[n,8,3,1] y) <int64 axis = {1}, int64 k = {8}> "
        "{ f = DFT<onesided = 1>(x, k, axis) y = DFT<onesided = 1, inverse = 1>(f, k, axis) }"
    )
    made = agree(FourierProducts(), text)
    assert not [node for node in made.graph if node.op_type == "DFT"]


@pytest.mark.parametrize("reduction", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_scatter_with_a_reduction(reduction: str, axis: int) -> None:
    shape = ("5,3", "4,3") if axis == 0 else ("3,5", "3,4")
    text = LATER + (
        f"g (float[{shape[0]}] x, float[{shape[1]}] u) => (float[{shape[0]}] y) "
        f"<int64[{shape[1]}] i = {{0,1,2,-1,4,0,0,0,2,2,-5,3}}> "
        f'{{ y = ScatterElements<axis = {axis}, reduction = "{reduction}">(x, i, u) }}'
    )
    agree(ScatterMasks(), text)


@pytest.mark.parametrize("reduction", ["add", "mul", "max", "min"])
def test_rows_that_are_scattered(reduction: str) -> None:
    text = LATER + (
        "g (float[4,2,3] x, float[5,2,3] u) => (float[4,2,3] y) <int64[5,1] i = {0, 3, 3, -1, 1}> "
        f'{{ y = ScatterND<reduction = "{reduction}">(x, i, u) }}'
    )
    agree(ScatterMasks(), text)


@pytest.mark.parametrize(
    "body",
    [
        "y = ScatterElements(x, i, u)",
        'y = ScatterElements<reduction = "add", axis = 1>(x, i, u)',
    ],
)
def test_scatters_that_stay(body: str) -> None:
    text = LATER + f"g (float[n,3] x, float[4,3] u, int64[4,3] i) => (float[n,3] y) {{ {body} }}"
    assert not list(ScatterMasks().tries(from_text(text), ()))


@pytest.mark.parametrize(
    ("image", "attributes", "columns"),
    [
        ("5, 5", "", "1,8,16"),
        ("5, 6", "strides = [2, 2]", "1,8,6"),
        ("5, 5", "pads = [1, 0, 0, 1]", "1,8,25"),
        ("6, 5", "dilations = [2, 1], pads = [0, 1, 1, 0]", "1,8,25"),
    ],
)
def test_blocks_that_overlap(image: str, attributes: str, columns: str) -> None:
    text = LATER + (
        f"g (float[{columns}] x) => (float[1,2,{image}] y) <int64[2] image = {{{image}}}, int64[2] block = {{2, 2}}> "
        f"{{ y = Col2Im{f'<{attributes}>' if attributes else ''}(x, image, block) }}"
    )
    made = agree(Col2imConvolution(), text)
    assert [node.op_type for node in made.graph if node.op_type != "Constant"][-1] == "ConvTranspose"


@pytest.mark.parametrize(
    "attributes",
    [
        'mode = "cubic", antialias = 1',
        'mode = "linear", antialias = 1, coordinate_transformation_mode = "align_corners"',
        'mode = "nearest", nearest_mode = "ceil", coordinate_transformation_mode = "asymmetric"',
        'mode = "cubic", cubic_coeff_a = -0.5, exclude_outside = 1',
    ],
)
@pytest.mark.parametrize("sizes", ["1, 2, 5, 11", "1, 2, 9, 4"])
def test_a_resize_of_fixed_sizes(attributes: str, sizes: str) -> None:
    text = LATER + (
        f"g (float[1,2,7,8] x) => (float[{sizes}] y) <int64[4] s = {{{sizes}}}> "
        f"{{ y = Resize<{attributes}>(x, , , s) }}"
    )
    made = agree(ResizeProducts(), text, ("Resize",))
    assert not [node for node in made.graph if node.op_type == "Resize"]


def test_a_resize_by_scales_that_do_not_divide() -> None:
    text = LATER + (
        "g (float[1,2,7,8] x) => (float[1,2,11,13] y) <float[4] s = {1, 1, 1.7, 1.7}> "
        '{ y = Resize<mode = "linear">(x, , s) }'
    )
    agree(ResizeProducts(), text, ("Resize",))


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_a_small_determinant(size: int) -> None:
    made = agree(SmallDeterminants(), LATER + f"g (float[n,{size},{size}] x) => (float[n] y) {{ y = Det(x) }}", n=5)
    assert not [node for node in made.graph if node.op_type == "Det"]


def test_a_determinant_of_five_rows_stays() -> None:
    text = LATER + "g (float[5,5] x) => (float y) { y = Det(x) }"
    assert not list(SmallDeterminants().tries(from_text(text), ()))


def test_bools_are_compared() -> None:
    text = LATER + "g (bool[n,3] a, bool[3] b) => (bool[n,3] y) { y = Equal(a, b) }"
    assert [node.op_type for node in agree(EqualBools(), text, n=4).graph] == ["Xor", "Not"]
    assert not list(
        EqualBools().tries(from_text(text.replace("bool[n,3] a, bool[3] b", "float[n,3] a, float[3] b")), ())
    )


GEMM = LATER + (
    "g (int32[n,3] a, int32[4,3] b) => (int32[n,4] y) <int32[4] c = {1,2,3,4}> "
    "{ [fc] y = Gemm<transB = 1, alpha = 2.0, beta = 3.0>(a, b, c) }"
)


def test_a_gemm_of_integers_is_a_product_and_a_sum() -> None:
    made = agree(IntegerGemm(), GEMM, n=4)
    assert "MatMul" in [node.op_type for node in made.graph]
    assert not list(IntegerGemm().tries(from_text(GEMM.replace("int32", "float")), ()))
    assert not list(IntegerGemm().tries(from_text(GEMM.replace("alpha = 2.0", "alpha = 0.5")), ()))


def test_a_refused_operator_computes_in_a_wider_dtype() -> None:
    text = LATER + "g (int8[n,3] a) => (int8[n,2] y, int64[n,2] z) <int64[1] k = {2}> { y, z = TopK(a, k) }"
    made = agree(WiderTypes(), text, ("TopK",), n=4)
    assert [node.op_type for node in made.graph] == ["Cast", "TopK", "Cast"]
    assert not list(WiderTypes().tries(from_text(text), ("Relu",)))
    assert not list(WiderTypes().tries(from_text(text.replace("int8[", "float[")), ("TopK",)))


def test_onnxruntime_takes_a_gemm_of_integers_after_a_fix() -> None:
    told = onnxsmith.check(from_text(GEMM), ["onnxruntime"]).report.part(TargetChecks).checks[0]
    assert "MatMul and Add" in told.rewrite


def test_the_axis_of_a_sum_is_a_scalar() -> None:
    text = LATER + "g (float[n,3] x) => (float[n,3] y) <int64[1] axis = {1}> { y = CumSum(x, axis) }"
    made = agree(ScalarAxis(), text, n=4)
    axis = ir.convenience.get_const_tensor(made.graph[-1].inputs[1])
    assert axis is not None
    assert len(axis.shape) == 0
    assert not list(ScalarAxis().tries(from_text(text.replace("int64[1] axis = {1}", "int64 axis = {1}")), ()))
