"""Whatever is narrow and whatever is not, the variant is a valid model that computes the same but for rounding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxsmith.graph.files.specification_check import check
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import walk
from onnxsmith.graph.surgery.inlining import inlined
from onnxsmith.precision.mixed_precision import narrowed
from onnxsmith.precision.narrowable_nodes import NARROW, Units, find
from onnxsmith.runtimes.base import get

HALF, BRAIN = NARROW["float16"], NARROW["bfloat16"]


def model(body: str, *, opset: int = 21, more: str = "") -> ir.Model:
    return inferred(
        inlined(from_text(f'<ir_version: 10, opset_import: ["": {opset}, "own": 1]>\ng {body}\n{more}'))[0]
    )[0]


def run(source: ir.Model, feeds: Mapping[str, Any], runtime: str = "reference") -> dict[str, Any]:
    with get(runtime).prepare(source) as session:
        return session.run(feeds)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).uniform(0.5, 2.0, shape).astype(np.float32)


MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "a weight on both sides": (
        """(float[n,4] x) => (float[n,4] y) <float[4] w = {1, 2, 3, 4}> {
            a = Add(x, w) b = Mul(a, w) c = Sub(b, w) y = Div(c, w) }""",
        {"x": numbers(2, 4)},
    ),
    "constants": (
        """(float[n,4] x) => (float[n,4] y) {
            k = Constant<value = float[4] {1, 2, 3, 4}>() l = Constant<value_float = 2.5>()
            m = Constant<value_floats = [1.0, 2.0, 3.0, 0.1]>()
            a = Add(x, k) b = Mul(a, l) c = Sub(b, m) y = Div(c, k) }""",
        {"x": numbers(2, 4)},
    ),
    "outputs that are read, given out as inputs, and given out twice": (
        "(float[n] x) => (float[n] a, float[n] b, float[n] d) { a = Exp(x) b = Log(a) c = Add(a, b) d = Sqrt(c) }",
        {"x": numbers(3)},
    ),
    "dtypes in attributes": (
        """(float[n] x, int64[n] i) => (float[n] y, float[m] z, int64[n] j) {
            f = Cast<to = 1>(i) a = Add(x, f) r = Round(a) j = Cast<to = 7>(r) s = Shape(x) o = ConstantOfShape(s)
            p = ConstantOfShape<value = float[1] {2.5}>(s) b = Add(o, p) y = Mul(a, b)
            ax = Constant<value_ints = [0]>() q = Unsqueeze(x, ax) e = EyeLike<dtype = 1>(q)
            t = ReduceSum<keepdims = 0>(e, ax) z = Neg(t) }""",
        {"x": numbers(3), "i": np.array([10, 20, 30])},
    ),
    "inputs that stay float32 by the schema": (
        """(float[n,1,4,4] x) => (float[n,1,8,8] y) <float[4] s = {1.0, 1.0, 2.0, 2.0}> {
            a = Exp(x) b = Resize<mode = "nearest">(a, , s) y = Sqrt(b) }""",
        {"x": numbers(1, 1, 4, 4)},
    ),
    "both branches, with what they read from outside": (
        """(float[n] x, bool c) => (float[n] y) <float w = {1.5}> {
            a = Mul(x, w)
            z = If (c) <
                then_branch = t () => (float[n] p) { o = Exp(a) p = Mul(o, w) },
                else_branch = e () => (float[n] q) { q = Sub(x, a) }
            >
            y = Add(z, a) }""",
        {"x": numbers(3), "c": np.array(True)},
    ),
    "a loop with a state and a scan output": (
        """(float[2] x, int64 k) => (float[2] y, float[t,2] s) {
            yes = Constant<value = bool {1}>()
            l, s = Loop (k, yes, x) <body = b (int64 i, bool d, float[2] h) => (bool e, float[2] h2, float[2] o) {
                e = Identity(d) f = Cast<to = 1>(i) h1 = Add(h, f) h2 = Mul(h1, x) o = Sqrt(h1) }>
            y = Abs(l) }""",
        {"x": numbers(2), "k": np.array(3)},
    ),
    "quantised values": (
        """(float[n] x) => (float[n] y) <float s = {0.05}, uint8 z = {3}> {
            a = Exp(x) q = QuantizeLinear(a, s, z) d = DequantizeLinear(q, s, z) y = Add(d, a) }""",
        {"x": numbers(3)},
    ),
    "a sequence": (
        """(float[n] x) => (float[m] y) {
            a = Exp(x) q = SequenceConstruct(a, x) c = ConcatFromSequence<axis = 0>(q) y = Log(c) }""",
        {"x": numbers(3)},
    ),
    "a weight that is an input as well": (
        "(float[n] x, float[1] w = {2.0}) => (float[n] y) { a = Mul(x, w) y = Add(a, w) }",
        {"x": numbers(3)},
    ),
}


NORM = """(float[n,8] x) => (float[n,8] y, float[n,1] m) <float[8] g = {1,2,3,4,5,6,7,8}> {
    n1, m, v = LayerNormalization(x, g) y = Add(n1, m) }"""
"""Its mean is float32 by the schema. The reference evaluator gives it in the dtype of the input."""


def variants(source: ir.Model, to: ir.DataType, keep: set[int]) -> tuple[Units, list[ir.Model]]:
    units = find(source, to)
    narrow = [unit for place, unit in enumerate(units.units) if place not in keep]
    return units, [narrowed(source, narrow, to, rounded=rounded) for rounded in (False, True)]


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=20)
@given(keep=st.sets(st.integers(0, 8)))
def test_variants_are_valid_and_compute_the_same(name: str, keep: set[int]) -> None:
    text, feeds = MODELS[name]
    source = model(text)
    before = ir.to_proto(source).SerializeToString()
    units, made = variants(source, HALF, keep)
    assert units.units
    wanted = run(source, feeds)
    for variant in made:
        assert check(variant) == ()
        found = run(variant, feeds)
        assert found.keys() == wanted.keys()
        for output, value in wanted.items():
            assert found[output].dtype == value.dtype
            np.testing.assert_allclose(found[output], value, rtol=2e-2, atol=5e-2)
    assert ir.to_proto(source).SerializeToString() == before, "the given model was changed"


@pytest.mark.parametrize("name", MODELS)
def test_both_forms_hold_the_same_numbers(name: str) -> None:
    """But for operators that sum: those of the reference evaluator do so in float16."""
    text, feeds = MODELS[name]
    _, (typed, rounded) = variants(model(text), HALF, set())
    ours, theirs = run(typed, feeds), run(rounded, feeds)
    for output, value in ours.items():
        steps = 8 * 2.0**-11  # eight roundings to float16
        np.testing.assert_allclose(value, theirs[output], rtol=steps, atol=steps / 4)


@pytest.mark.parametrize("name", MODELS)
def test_onnxruntime_takes_them(name: str) -> None:
    text, feeds = MODELS[name]
    for variant in variants(model(text), HALF, set())[1]:
        run(variant, feeds, "onnxruntime")


def test_statistics_stay_float32() -> None:
    feeds = {"x": numbers(2, 8)}
    wanted = run(model(NORM), feeds, "onnxruntime")
    for variant in variants(model(NORM), HALF, {1})[1]:
        assert check(variant) == ()
        found = run(variant, feeds, "onnxruntime")
        # a few roundings to float16, of 2**-11 each, on values of about 1
        np.testing.assert_allclose(found["y"], wanted["y"], rtol=1e-2, atol=1e-2)
        assert found["m"].dtype == np.float32


def test_rounding_is_not_optimised_away() -> None:
    """onnxruntime drops the Casts between float16 nodes that it computes in float32, so that nothing overflows there;
    of the rounded form it drops none."""
    source = model("(float[n] x) => (float[n] y) { a = Mul(x, x) y = Sqrt(a) }")
    feeds = {"x": np.array([300.0], np.float32)}
    _, (typed, rounded) = variants(source, HALF, set())
    assert run(rounded, feeds, "onnxruntime")["y"] == np.inf
    assert run(typed, feeds, "reference")["y"] == np.inf
    _, (_, rounded) = variants(source, BRAIN, set())
    np.testing.assert_array_equal(run(rounded, feeds, "onnxruntime")["y"], [300.0])


def test_weights_are_converted_once_and_shared_with_what_stays() -> None:
    source = model(MODELS["a weight on both sides"][0])
    typed = variants(source, HALF, {0})[1][0]
    weights = {name: value.const_value.dtype for name, value in typed.graph.initializers.items() if value.const_value}
    assert weights == {"w": ir.DataType.FLOAT, "w_float16": HALF}
    assert [node.op_type for node in typed.graph].count("Cast") == 2
    typed = variants(source, HALF, set())[1][0]
    assert {v.const_value.dtype for v in typed.graph.initializers.values() if v.const_value} == {HALF}


def test_weights_out_of_range_become_infinite() -> None:
    source = model("(float[n] x) => (float[n] y) <float w = {70000.0}> { y = Mul(x, w) }")
    _, made = variants(source, HALF, set())
    for variant in made:
        np.testing.assert_array_equal(run(variant, {"x": numbers(2)})["y"], [np.inf, np.inf])


def test_denormals_stay() -> None:
    source = model("(float[n] x) => (float[n] y) { y = Identity(x) }")
    feeds = {"x": np.array([6e-8, 1e-8], np.float32)}
    for runtime in ("reference", "onnxruntime"):
        for variant in variants(source, HALF, set())[1]:
            np.testing.assert_array_equal(run(variant, feeds, runtime)["y"], np.float32([2**-24, 0]))


def test_names_are_one_each() -> None:
    source = model("""(float[n] x, bool c) => (float[n] y) {
        [twin] a = Exp(x) [twin] b = Exp(a)
        [pick] y = If (c) <
            then_branch = t () => (float[n] p) { [inner] o = Abs(b) [inner] p = Neg(o) },
            else_branch = e () => (float[n] q) { [inner] o = Exp(b) [inner] q = Neg(o) }
        > }""")
    names = [unit.name for unit in find(source, HALF).units]
    assert names[:2] == ["-> a", "-> b"]
    assert len(set(names)) == len(names) == 6
    assert "-> p" in names


def test_functions_are_taken_apart() -> None:
    source = model(
        "(float[n] x) => (float[n] y) { [call] y = own.f(x) }",
        more='<domain: "own", opset_import: ["": 21]> f (a) => (b) { [exp] c = Exp(a) [log] b = Log(c) }',
    )
    assert not source.functions
    assert [unit.op for unit in find(source, HALF).units] == ["Exp", "Log"]


def test_what_cannot_be_narrow_says_why() -> None:
    source = model(MODELS["a sequence"][0])
    units = find(source, HALF)
    assert [unit.op for unit in units.units] == ["Exp", "Log"]
    assert units.fixed == {
        "sequences and optional values are not converted": {"SequenceConstruct": 1, "ConcatFromSequence": 1}
    }


def test_only_the_right_inputs_become_narrow() -> None:
    units = find(model(MODELS["inputs that stay float32 by the schema"][0]), HALF).units
    resize = next(unit for unit in units if unit.op == "Resize")
    assert (resize.inputs, resize.outputs) == ((0,), (0,))
    norm = next(u for u in find(model(NORM), HALF).units if u.index == 0)
    assert (norm.op, norm.inputs, norm.outputs) == ("LayerNormalization", (0, 1), (0,))
    assert walk.count_nodes(model(MODELS["constants"][0])) == 4
