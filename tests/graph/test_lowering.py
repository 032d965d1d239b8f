"""Models written in an earlier opset: the same numbers, valid, or a refusal that names the node and the reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx.reference import ReferenceEvaluator

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.surgery import opset_conversion
from onnxsmith.graph.surgery.lowering import lowered
from onnxsmith.graph.surgery.lowerings import resizing

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(2, 3, 4)).astype(np.float32)
IMAGE = RANDOM.normal(size=(1, 2, 4, 6)).astype(np.float32)


def model(text: str, version: int) -> ir.Model:
    return ir.serde.deserialize_model(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {version}]> {text}'))


def values(found: ir.Model, *inputs: Any) -> list[Any]:
    proto = ir.serde.serialize_model(found)
    onnx.checker.check_model(proto, full_check=True)
    names = [value.name for value in found.graph.inputs]
    return list(ReferenceEvaluator(proto).run(None, dict(zip(names, inputs, strict=True))))


CASES: dict[str, tuple[str, int, int, tuple[Any, ...]]] = {
    "blocks of the last axis": (
        """g (int8[2,4] q) => (float[2,4] y) <float[2,2] s = {0.5, 2, 1, 0.25}, int8[2,2] z = {0, 1, -3, 2}> {
            y = DequantizeLinear<axis=1, block_size=2>(q, s, z) }""",
        21,
        19,
        (np.arange(-4, 4, dtype=np.int8).reshape(2, 4),),
    ),
    "blocks of the first axis": (
        """g (int8[4,2] q) => (float[4,2] y) <float[2,2] s = {0.5, 2, 1, 0.25}> {
            y = DequantizeLinear<axis=0, block_size=2>(q, s) }""",
        21,
        19,
        (np.arange(-4, 4, dtype=np.int8).reshape(4, 2),),
    ),
    "reduction over axes": (
        "g (float[2,3,4] x) => (float[2,1,4] y) <int64[1] a = {1}> { y = ReduceMean(x, a) }",
        18,
        17,
        (X,),
    ),
    "axes that follow from a static shape": (
        """g (float[2,3,4] x) => (float[1,1,1] y) {
            s = Shape(x)  n = Size(s)  zero = Constant<value_int=0>()  one = Constant<value_int=1>()
            a = Range(zero, n, one)  y = ReduceSum(x, a) }""",
        18,
        12,
        (X,),
    ),
    "negative axes": (
        "g (float[2,3,4] x) => (float[2,3,1] y) <int64[1] a = {-1}> { y = ReduceSum(x, a) }",
        13,
        10,
        (X,),
    ),
    "unsqueeze behind the end": (
        "g (float[2,3,4] x) => (float[2,3,4,1] y) <int64[1] a = {-1}> { y = Unsqueeze(x, a) }",
        13,
        10,
        (X,),
    ),
    "bounds of Clip": (
        "g (float[2,3,4] x) => (float[2,3,4] y) <float a = {-0.5}, float b = {0.5}> { y = Clip(x, a, b) }",
        13,
        10,
        (X,),
    ),
    "integers in Relu": ("g (int64[4] x) => (int64[4] y) { y = Relu(x) }", 14, 13, (np.array([-2, -1, 0, 5]),)),
    "Pad of one axis": (
        "g (float[2,3,4] x) => (float[2,3,7] y) <int64[2] p = {1,2}, int64[1] a = {-1}> { y = Pad(x, p, , a) }",
        18,
        13,
        (X,),
    ),
    "Split into parts that are not equal": (
        "g (float[2,3,4] x) => (float[2,2,4] y, float[2,1,4] z) { y, z = Split<axis=1, num_outputs=2>(x) }",
        18,
        12,
        (X,),
    ),
    "Split of a symbolic axis": (
        "g (float[2,N,4] x) => (float[2,A,4] y, float[2,B,4] z) { y, z = Split<axis=1, num_outputs=2>(x) }",
        18,
        13,
        (X,),
    ),
    "part of a shape": ("g (float[2,N,4] x) => (int64[1] y) { y = Shape<start=1, end=-1>(x) }", 15, 13, (X,)),
    "Softmax along the middle": ("g (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax<axis=1>(x) }", 13, 11, (X,)),
    "Softmax along the end": ("g (float[2,3,4] x) => (float[2,3,4] y) { y = LogSoftmax(x) }", 13, 9, (X,)),
    "Reshape without zeros": (
        "g (float[2,3,4] x) => (float[6,4] y) <int64[2] s = {6,4}> { y = Reshape<allowzero=1>(x, s) }",
        14,
        13,
        (X,),
    ),
    "Resize of two axes": (
        """g (float[1,2,4,6] x) => (float[1,2,8,3] y) <int64[2] s = {8,3}>
        { y = Resize<axes=[2,3], mode="linear">(x, , , s) }""",
        18,
        13,
        (IMAGE,),
    ),
    "Resize without operands": (
        'g (float[1,2,4,6] x) => (float[1,2,8,12] y) <float[4] s = {1,1,2,2}> { y = Resize<mode="nearest">(x, , s) }',
        13,
        11,
        (IMAGE,),
    ),
    "Gemm without a bias": (
        "g (float[2,3] a, float[3,4] b) => (float[2,4] y) { y = Gemm(a, b) }",
        11,
        9,
        (np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)),
    ),
    "CastLike": (
        "g (float[2,3,4] x, float16 z) => (float16[2,3,4] y) { y = CastLike(x, z) }",
        15,
        13,
        (X, np.float16(1)),
    ),
    "numbers in Constant": (
        "g (float[2,3,4] x) => (float[2,3,4] y) { c = Constant<value_float=2.5>() y = Mul(x, c) }",
        12,
        11,
        (X,),
    ),
    "body of LayerNormalization": (
        """g (float[2,3,4] x) => (float[2,3,4] y) <float[4] s = {1,2,3,4}, float[4] b = {0,1,0,1}>
        { y = LayerNormalization(x, s, b) }""",
        17,
        13,
        (X,),
    ),
    "body of GroupNormalization": (
        """g (float[1,2,4,6] x) => (float[1,2,4,6] y) <float[2] s = {1,2}, float[2] b = {0,1}>
        { y = GroupNormalization<num_groups=1>(x, s, b) }""",
        21,
        17,
        (IMAGE,),
    ),
    "body of Gelu": ('g (float[2,3,4] x) => (float[2,3,4] y) { y = Gelu<approximate="tanh">(x) }', 20, 13, (X,)),
    "a branch": (
        """g (float[2,3,4] x, bool c) => (float[2,1,4] y) {
            y = If(c) <
                then_branch = t () => (float[2,1,4] p) { a = Constant<value_ints=[1]>() p = ReduceMean(x, a) },
                else_branch = e () => (float[2,1,4] q) { b = Constant<value_ints=[1]>() q = ReduceMax(x, b) }> }""",
        18,
        11,
        (X, np.array(True)),
    ),
    "defaults that changed nothing": (
        "g (float[1,2,4,6] x) => (float[1,2,3,5] y) { y = AveragePool<kernel_shape=[2,2], dilations=[1,1]>(x) }",
        19,
        11,
        (IMAGE,),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_numbers_stay(name: str) -> None:
    text, now, target, inputs = CASES[name]
    before = model(text, now)
    after = opset_conversion.convert(before, target)
    assert opset_conversion.of(after) == target
    for value, other in zip(values(before, *inputs), values(after, *inputs), strict=True):
        assert value.dtype == other.dtype
        np.testing.assert_allclose(value, other, rtol=1e-5, atol=1e-6)
    assert [value.name for value in after.graph.outputs] == [value.name for value in before.graph.outputs]


UPSAMPLED = {
    "scales that are constant": ('nearest_mode="floor", mode="nearest"', "", "float[4] s = {1, 1, 2, 1.5},"),
    "scales that are computed": ('mode="linear"', ", float[4] s", ""),
}


@pytest.mark.parametrize("name", UPSAMPLED)
@pytest.mark.parametrize("target", [10, 9])
def test_a_resize_becomes_an_upsample_where_it_is_one(name: str, target: int) -> None:
    modes, given, constant = UPSAMPLED[name]
    text = f"""g (float[1,2,4,6] x{given}) => (float[a,b,c,d] y) <{constant} float[0] r = {{}}>
        {{ y = Resize<coordinate_transformation_mode="asymmetric", {modes}>(x, r, s) }}"""
    after = opset_conversion.convert(model(text, 11), target)
    assert [node.op_type for node in after.graph] == ["Upsample" if target == 9 else "Resize"]
    back = opset_conversion.convert(after, 11)
    assert [node.op_type for node in back.graph if node.op_type not in ("Constant", "Min", "Max")] == ["Resize"]
    feeds = [IMAGE] if constant else [IMAGE, np.array([1, 1, 2, 1.5], np.float32)]
    for one, other in zip(values(model(text, 11), *feeds), values(back, *feeds), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


SIZED = {
    "twice": ('mode="nearest", nearest_mode="floor"', "", "int64[4] s = {1, 2, 8, 12},"),
    "not a whole multiple": ('mode="nearest", nearest_mode="floor"', "", "int64[4] s = {1, 2, 7, 17},"),
    "linear": ('mode="linear"', "", "int64[4] s = {1, 2, 7, 17},"),
    "a multiple of symbols": ('mode="linear"', "m = Shape(x) s = Mul(m, f)", "int64[4] f = {1, 1, 2, 3},"),
    "symbols alone": (
        'mode="nearest", nearest_mode="floor"',
        "m = Shape(x) s = Mul(m, f)",
        "int64[4] f = {1, 1, 2, 3},",
    ),
}


@pytest.mark.parametrize("name", SIZED)
@pytest.mark.parametrize("target", [10, 9])
def test_a_resize_to_sizes_gets_the_scales_that_give_them(name: str, target: int) -> None:
    modes, computed, constant = SIZED[name]
    sizes = "1,2,h,w" if computed else "1,2,4,6"
    text = f"""g (float[{sizes}] x) => (float[a,b,c,d] y) <{constant} float[0] r = {{}}>
        {{ {computed} y = Resize<coordinate_transformation_mode="asymmetric", {modes}>(x, r, r, s) }}"""
    after = opset_conversion.convert(model(text, 11), target)
    assert [node.op_type for node in after.graph][-1] == ("Upsample" if target == 9 else "Resize")
    back = opset_conversion.convert(after, 11)
    for one, other in zip(values(model(text, 11), IMAGE), values(back, IMAGE), strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.whole
@pytest.mark.parametrize("size", range(1, 65))
def test_the_scale_of_a_size_has_its_effect(size: int) -> None:
    """The size and each nearest coordinate, in float32 and exactly."""
    for larger in range(size, 8 * size):
        scale = resizing._scale(larger, size, nearest=True)
        if scale is None:
            continue
        assert int(np.float32(size) * scale) == int(size * float(scale)) == larger
        found = (np.arange(larger, dtype=np.float32) / scale).astype(int)
        assert (found == np.arange(larger) * size // larger).all()


REFUSED = {
    "sizes of another tensor": (
        """g (float[1,2,h,w] x, float[1,2,k,l] z) => (float[a,b,c,d] y) <float[0] r = {}>
            { s = Shape(z) y = Resize<mode="linear", coordinate_transformation_mode="asymmetric">(x, r, r, s) }""",
        11,
        9,
        "the operator resizes to sizes, but opset 10 has only scales, which do not follow from these sizes",
    ),
    "a Resize that shrinks": (
        """g (float[1,2,4,6] x) => (float[1,2,2,6] y) <float[4] s = {1, 1, 0.5, 1}>
            { y = Resize<mode="linear">(x, s) }""",
        10,
        9,
        "a scale is 0.5, but an Upsample can only enlarge",
    ),
    "a cubic Resize": (
        """g (float[1,2,4,6] x) => (float[1,2,8,6] y) <float[4] s = {1, 1, 2, 1}, float[0] r = {}>
            { y = Resize<mode="cubic", coordinate_transformation_mode="asymmetric">(x, r, s) }""",
        11,
        10,
        "`mode` is cubic, but opset 10 has only nearest and linear",
    ),
    "operands of two dtypes": (
        "g (float[3] x, double[3] e) => (float[3] y) { y = Pow(x, e) }",
        12,
        11,
        "`X` and `Y` may have different dtypes since opset 12",
    ),
    "an operand that was required": (
        "g () => (bool y) { y = OptionalHasElement() }",
        18,
        17,
        "`input` may be left out since opset 18",
    ),
    "a Max that broadcasts": (
        "g (float[3,4] x, float[4] z) => (float[3,4] y) { y = Max(x, z) }",
        8,
        7,
        "its operands may have different shapes",
    ),
    "a mask of Dropout": (
        "g (float[3] x) => (float[3] y, bool[3] m) { y, m = Dropout(x) }",
        12,
        11,
        "its mask is used",
    ),
    "computed axes": (
        "g (float[2,3,4] x, int64[1] a) => (float[A,B,C] y) { y = ReduceMean(x, a) }",
        18,
        17,
        "`axes` is computed",
    ),
    "an attribute with an effect": (
        "g (float[2,3,4] x) => (int64[2,1,4] y) { y = ArgMax<axis=1, select_last_index=1>(x) }",
        13,
        11,
        "`select_last_index` is 1",
    ),
    "a mode that did not exist": (
        'g (float[2,3,4] x) => (float[2,3,6] y) <int64[6] p = {0,0,1,0,0,1}> { y = Pad<mode="wrap">(x, p) }',
        19,
        18,
        "`mode` may be wrap since opset 19",
    ),
    "an operator without a body": (
        "g (int64[4] x) => (int64[4] y) { y = BitwiseNot(x) }",
        18,
        17,
        "the specification has no body",
    ),
    "a dtype": ("g (bfloat16[4] x) => (bfloat16[4] y) { y = Round(x) }", 22, 21, "tensor(bfloat16) is allowed"),
    "a zero size": (
        "g (float[0,3] x) => (float[0,5] y) <int64[2] s = {0,5}> { y = Reshape<allowzero=1>(x, s) }",
        14,
        13,
        "has a 0",
    ),
    "a Hardmax of unknown rank": (
        "g (float[2,3,4] x, int64[K] s) => (float[2,A,B] y) { z = Reshape(x, s) y = Hardmax<axis=0>(z) }",
        13,
        12,
        "the number of dimensions is unknown",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_earlier_opset_cannot_say_is_refused_with_the_node(name: str) -> None:
    text, now, target, reason = REFUSED[name]
    before = model(text, now)
    with pytest.raises(OnnxsmithError) as caught:
        opset_conversion.convert(before, target)
    assert caught.value.problem.id == "export/opset"
    assert reason in str(caught.value.problem.why)
    assert "-> y" in str(caught.value.problem.where)


@pytest.mark.parametrize(
    ("node", "name", "now", "target"),
    [
        ("Softmax <axis = 1> (x)", "axis", 20, 12),
        ("LogSoftmax <axis = 1> (x)", "axis", 20, 12),
        ("ArgMax <axis = 1> (x)", "axis", 20, 10),
        ("Shape <start = 1> (x)", "start", 20, 14),
    ],
)
def test_an_attribute_of_a_function_around_has_no_value(node: str, name: str, now: int, target: int) -> None:
    before = model(f"g (float[2,3,4] x) => (y) {{ y = {node} }}", now)
    kept = before.graph[0].attributes[name]
    before.graph[0].attributes[name] = ir.RefAttr(name, name, kept.type)
    with pytest.raises(OnnxsmithError) as caught:
        opset_conversion.convert(before, target)
    assert f"`{name}` refers to an attribute of the function" in str(caught.value.problem.why)


def test_a_softmax_of_unknown_rank_is_written_as_its_formula() -> None:
    text = "g (float[2,3,4] x, int64[K] s) => (float[2,A,B] y) { z = Reshape(x, s) y = Softmax<axis=0>(z) }"
    before = model(text, 13)
    after = opset_conversion.convert(before, 12)
    feeds = {"x": np.linspace(-2, 2, 24, dtype=np.float32).reshape(2, 3, 4), "s": np.array([2, 4, 3], np.int64)}
    (expected,), (found,) = (ReferenceEvaluator(ir.to_proto(one)).run(None, feeds) for one in (before, after))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_modes_of_grid_sample_get_their_earlier_names() -> None:
    text = """g (float[1,2,4,6] x, float[1,3,3,2] at) => (float[1,2,3,3] y, float[1,2,3,3] z)
        { y = GridSample(x, at) z = GridSample<mode="cubic">(x, at) }"""
    after = opset_conversion.convert(model(text, 20), 16)
    onnx.checker.check_model(ir.serde.serialize_model(after), full_check=True)
    assert [node.attributes.get_string("mode") for node in after.graph] == ["bilinear", "bicubic"]


def test_a_refusal_names_the_line_of_the_source() -> None:
    before = model("g (int64[4] x) => (int64[4] y) { y = BitwiseNot(x) }", 18)
    before.graph[0].metadata_props["pkg.torch.onnx.stack_trace"] = 'File "net.py", line 3, in forward'
    with pytest.raises(OnnxsmithError) as caught:
        opset_conversion.convert(before, 17)
    assert caught.value.problem.where == "BitwiseNot -> y (net.py:3)"


def test_a_refusal_names_three_nodes_and_counts_the_others() -> None:
    nodes = " ".join(f"y{at} = BitwiseNot(x)" for at in range(5))
    outputs = ", ".join(f"int64[4] y{at}" for at in range(5))
    with pytest.raises(OnnxsmithError) as caught:
        opset_conversion.convert(model(f"g (int64[4] x) => ({outputs}) {{ {nodes} }}", 18), 17)
    assert str(caught.value.problem.where).count("BitwiseNot") == 3
    assert "and 2 more" in str(caught.value.problem.why)


def test_functions_are_lowered_and_stay() -> None:
    proto = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18, "own": 1]>
        g (float[2,3,4] x) => (float[2,3,4] y) { y = own.f(x) }
        <domain: "own", opset_import: ["": 18]> f (a) => (b) { c = Constant<value_ints=[1]>() d = ReduceMean(a, c)
          b = Sub(a, d) }"""
    )
    before = ir.serde.deserialize_model(proto)
    after = opset_conversion.convert(before, 13)
    assert [function.opset_imports[""] for function in after.functions.values()] == [13]
    np.testing.assert_array_equal(values(before, X)[0], values(after, X)[0])


def test_functions_are_inlined_if_a_node_needs_what_only_a_call_knows() -> None:
    proto = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 13, "own": 1]>
        g (float[2,3,4] x) => (float[2,3,4] y) { y = own.f(x) }
        <domain: "own", opset_import: ["": 13]> f (a) => (b) { b = Softmax<axis=1>(a) }"""
    )
    before = ir.serde.deserialize_model(proto)
    after = opset_conversion.convert(before, 12)
    assert not after.functions
    np.testing.assert_allclose(values(before, X)[0], values(after, X)[0], rtol=1e-6)


def test_the_original_and_its_declared_shapes_stay() -> None:
    before = model("g (float[2,N,4] x) => (float[2,M,4] y) { y = Gelu(x) }", 20)
    text = ir.serde.serialize_model(before).SerializeToString()
    found = lowered(before, 13)
    assert ir.serde.serialize_model(before).SerializeToString() == text
    assert [str(dim) for dim in found.model.graph.outputs[0].shape or ()] == ["2", "M", "4"]
    assert not found.stuck


def test_constants_that_became_attributes_are_removed() -> None:
    before = model("g (float[2,3,4] x) => (float[2,1,4] y) <int64[1] a = {1}> { y = ReduceMean(x, a) }", 18)
    assert not opset_conversion.convert(before, 17).graph.initializers


def test_new_nodes_have_the_origin_of_the_node_that_they_replace() -> None:
    before = model("g (float[2,3,4] x) => (float[2,3,4] y) { y = Gelu(x) }", 20)
    before.graph[0].metadata_props["pkg.torch.onnx.stack_trace"] = 'File "net.py", line 3, in forward'
    after = opset_conversion.convert(before, 17)
    assert {node.metadata_props.get("pkg.torch.onnx.stack_trace") for node in after.graph} == {
        'File "net.py", line 3, in forward'
    }


def test_the_nodes_of_two_bodies_have_names_of_their_own() -> None:
    """onnxruntime refuses two nodes of one name; each body of the specification numbers its nodes from the start."""
    text = "g (float[2,16] x) => (float[2,16] y) { [first] a = Gelu(x)  [second] b = Gelu(a)  [third] y = Mish(b) }"
    found = opset_conversion.convert(model(text, 20), 16)
    names = [node.name for node in found.graph]
    assert len(set(names)) == len(names) > 3
    assert {name.split("_")[0] for name in names if name} == {"first", "second", "third"}


NO_AXES = "g (float[2,3,4] x) => (float[2,3,4] y) <int64[0] a = {}> { y = OPERATOR<noop_with_empty_axes=1>(OPERANDS) }"
REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")


@pytest.mark.parametrize("operands", ["x", "x, a"])
@pytest.mark.parametrize(("operator", "version"), [("Sum", 13), *((name, 18) for name in REDUCTIONS)])
def test_a_reduction_over_no_axes_keeps_its_steps_on_each_element(operator: str, version: int, operands: str) -> None:
    text = NO_AXES.replace("OPERATOR", f"Reduce{operator}").replace("OPERANDS", operands)
    given = np.abs(X) if operator == "LogSum" else X
    expected = {
        "L1": np.abs, "L2": np.abs, "LogSum": np.log, "SumSquare": np.square,
    }.get(operator, np.array)(given)  # fmt: skip
    for target in (version - 1, 7):
        found = lowered(model(text, version), target)
        assert found.stuck == ()
        np.testing.assert_allclose(values(found.model, given)[0], expected, rtol=1e-6)


@pytest.mark.parametrize("target", [16, 13, 11, 9])
@pytest.mark.parametrize("axis", [-1, 1, 2])
@pytest.mark.parametrize("dtype", ["float", "float16"])
def test_a_normalization_of_layers_at_every_size(target: int, axis: int, dtype: str) -> None:
    sizes = ["c,d", "d"][(axis % 3) - 1]
    text = (
        f"g ({dtype}[n,c,d] x, {dtype}[{sizes}] s, {dtype}[{sizes}] b) => ({dtype}[n,c,d] y, float[n,k,l] m) "
        f"{{ y, m = LayerNormalization <axis = {axis}, epsilon = 0.01> (x, s, b) }}"
    )
    before = model(text, 17)
    made = lowered(before, target)
    assert not made.stuck
    narrow = {"float": np.float32, "float16": np.float16}[dtype]
    for shape in ((2, 3, 4), (0, 3, 4), (2, 3, 1)):
        parts = shape[axis % 3 :]
        given = [RANDOM.normal(size=one).astype(narrow) for one in (shape, parts, parts)]
        first, second = values(before, *given), values(made.model, *given)
        assert second[0].dtype == narrow
        assert second[1].dtype == np.float32, "the mean has the dtype of `stash_type`"
        for one, other in zip(first, second, strict=True):
            # The evaluator computes the operator in float16, and its body in float32.
            assert np.allclose(one, other, rtol=1e-5, atol=1e-6 if dtype == "float" else 4e-3)


@pytest.mark.parametrize(
    ("node", "version", "target", "shape", "axes"),
    [
        ("LayerNormalization (x, s, b)", 17, 16, (2, 4, 64), (2,)),
        ("LayerNormalization <axis = 1> (x, t, t)", 17, 11, (2, 4, 64), (1, 2)),
        ("LayerNormalization (x, s, b)", 21, 9, (2, 4, 64), (2,)),
        ("GroupNormalization <num_groups = 2> (x, g, g)", 21, 17, (2, 2, 2, 64), (2, 3)),
        ("MeanVarianceNormalization <axes = [2]> (x)", 13, 8, (2, 4, 64), (2,)),
    ],
)
def test_a_variance_beside_a_large_mean_keeps_its_digits(
    node: str, version: int, target: int, shape: tuple[int, ...], axes: tuple[int, ...]
) -> None:
    weights = "float[64] s, float[64] b, float[4,64] t, float[4] g"
    made = lowered(model(f"g (float[2,4,64] x, {weights}) => (float[2,4,64] y) {{ y = {node} }}", version), target)
    assert not made.stuck
    x = (1000 + RANDOM.normal(size=(2, 4, 64))).astype(np.float32)
    given = [np.ones(size, np.float32) for size in ((64,), (64,), (4, 64), (4,))]
    (found,) = values(made.model, x, *given)
    wide = x.astype(np.float64).reshape(shape)
    wanted = (wide - wide.mean(axes, keepdims=True)) / np.sqrt(wide.var(axes, keepdims=True) + 1e-5)
    moved = 0 if node.startswith("Mean") else 1  # by the bias
    assert np.abs(found - moved - wanted.reshape(x.shape)).max() < 2e-3  # 1000 has a step of 6e-5
