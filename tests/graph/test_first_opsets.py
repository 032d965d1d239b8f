"""Models of opsets 1 to 6: the reference runs them as the standard says, and raising them keeps the numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import defs

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.structure import schema
from onnxsmith.graph.surgery import opset_conversion
from onnxsmith.graph.surgery.raisings.base import raisings
from onnxsmith.runtimes._reference_evaluator import Evaluator

RTOL, ATOL = 1e-5, 2e-6
"""Float32 rounds to 6e-8, and the longest sum of a model has 60 terms."""
X = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype(np.float32)
B = np.array([1.0, -2.0, 0.5], np.float32)
WHOLE = np.array([[7, -7, 5], [-9, 8, 1]], np.int64)
BOOLS = np.array([[True, False, True], [False, False, True]])


@dataclass
class Old:
    """A model of an early opset with one node of interest, the values of its inputs, and its result by numpy."""

    opset: int
    text: str
    expected: Callable[..., Any]
    feeds: dict[str, Any] = field(default_factory=lambda: {"x": X})

    @property
    def model(self) -> ir.Model:
        text = f'<ir_version: 3, opset_import: ["": {self.opset}]> g {self.text}'
        return ir.serde.deserialize_model(onnx.parser.parse_model(text))


XY = "(float[2,3,4,5] x) => (float[2,3,4,5] y)"
XB = "(float[2,3,4,5] x, float[3] b) => (float[2,3,4,5] y)"
FIVE = {"x": X, "b": np.arange(1, 6, dtype=np.float32)}
THREE = {"x": X, "b": B}
MIDDLE = B[:, None, None]
LOGIC = "(bool[2,3] x, bool[3] b) => (bool[2,3] y)"
LOGICS = {"x": BOOLS, "b": np.array([True, True, False])}
FLAT = {"x": X[0, 0]}


def held(names: str) -> str:
    """Initializers of three numbers for each name."""
    return "<" + ", ".join(f"float[3] {name} = {{0.5, 1, 2}}" for name in names) + ">"


THIRDS = np.array([0.5, 1, 2], np.float32)[:, None, None]


def normalised(x: Any) -> Any:
    return (x - THIRDS) / np.sqrt(THIRDS + 1e-5) * THIRDS + THIRDS


def tenths(count: int) -> str:
    return "{" + ",".join(["0.1"] * count) + "}"


def gates(x: Any) -> Any:
    """The states of an RNN whose weights are all .1, without a bias."""
    state, found = np.zeros((x.shape[1], 2)), []
    for step in x:
        state = np.tanh(step.sum(-1, keepdims=True) * 0.1 + state.sum(-1, keepdims=True) * 0.1).repeat(2, -1)
        found.append(state[None])
    return np.stack(found)


def gru(x: Any) -> Any:
    """The states of a GRU whose weights are all .1, without a bias."""
    state, found = np.zeros((x.shape[1], 1)), []
    for step in x:
        given = step.sum(-1, keepdims=True) * 0.1
        gate = 1 / (1 + np.exp(-(given + state * 0.1)))
        state = (1 - gate) * np.tanh(given + gate * state * 0.1) + gate * state
        found.append(state[None])
    return np.stack(found)


RECURRENT = f"<float[1,2,5] w = {tenths(10)}, float[1,2,2] r = {tenths(4)}>"
GATED = f"<float[1,3,5] w = {tenths(15)}, float[1,3,1] r = {tenths(3)}>"
OLDS = [
    Old(1, f"{XY} {{ y = Relu<consumed_inputs=[0]>(x) }}", lambda x: np.maximum(x, 0)),
    Old(6, f"{XB} {{ y = Mul<broadcast=1, axis=1>(x, b) }}", lambda x, b: x * MIDDLE, THREE),
    Old(6, f"{XB} {{ y = Div<broadcast=1, axis=-3>(x, b) }}", lambda x, b: x / MIDDLE, THREE),
    Old(1, f"{XB} {{ y = Sub<broadcast=1, axis=1, consumed_inputs=[0,0]>(x, b) }}", lambda x, b: x - MIDDLE, THREE),
    Old(6, "(float[2,3,4,5] x, float[5] b) => (float[2,3,4,5] y) { y = Add<broadcast=1>(x, b) }",
        lambda x, b: x + b, FIVE),
    Old(6, f"{XY} {{ y = Add(x, x) }}", lambda x: x + x),
    Old(1, "(float[2,3,4,5] x, float[3,4] b) => (float[2,3,4,5] y) { y = Pow<broadcast=1, axis=1>(x, b) }",
        lambda x, b: x ** b[:, :, None], {"x": np.abs(X), "b": np.abs(X[0, :, :, 0])}),
    Old(6, "(int64[2,3] x, int64[2] b) => (int64[2,3] y) { y = Div<broadcast=1, axis=0>(x, b) }",
        lambda x, b: np.trunc(x / b[:, None]), {"x": WHOLE, "b": np.array([2, -2])}),
    *(
        Old(1, f"{LOGIC} {{ y = {name}<broadcast=1>(x, b) }}", lambda x, b, function=function: function(x, b), LOGICS)
        for name, function in (("And", np.logical_and), ("Or", np.logical_or), ("Xor", np.logical_xor))
    ),
    Old(1, "(int64[2,3] x, int64[2] b) => (bool[2,3] y) { y = Equal<broadcast=1, axis=0>(x, b) }",
        lambda x, b: x == b[:, None], {"x": WHOLE, "b": np.array([5, 8])}),
    *(
        Old(1, "(float[2,3,4,5] x, float[3] b) => (bool[2,3,4,5] y) { y = " + name + "<broadcast=1, axis=1>(x, b) }",
            lambda x, b, function=function: function(x, MIDDLE), THREE)
        for name, function in (("Greater", np.greater), ("Less", np.less))
    ),
    Old(1, f"{XB} {{ y = PRelu<consumed_inputs=[0,0]>(x, b) }}", lambda x, b: np.where(x < 0, x * MIDDLE, x), THREE),
    Old(6, "(float[2,3,4,5] x) => (float[2,3,4,5] y) <float[1] s = {0.25}> { y = PRelu(x, s) }",
        lambda x: np.where(x < 0, x * 0.25, x)),
    Old(1, f"{XY} {held('sbmv')} {{ y = BatchNormalization<consumed_inputs=[0,0,0,1,1], is_test=1>(x, s, b, m, v) }}",
        normalised),
    Old(6, f"{XY} {held('sbmv')} {{ y = BatchNormalization(x, s, b, m, v) }}", normalised),
    Old(1, f"{XY} {{ y, m = Dropout<is_test=1, ratio=0.3, consumed_inputs=[0]>(x) }}", lambda x: x),
    Old(1, f"{XY} {{ y = Clip<max=0.5>(x) }}", lambda x: np.minimum(x, 0.5), {"x": np.where(X < -1, -np.inf, X)}),
    Old(1, "(float[2,3,4,5] x) => (float[2,60] y) { y = Reshape<shape=[0,-1], consumed_inputs=[0]>(x) }",
        lambda x: x.reshape(2, 60)),
    Old(1, "(float[4,5] x) => (float[4,2] y) <float[5,2] w = {1,2,3,4,5,6,7,8,9,10}, float[2] c = {1,2}> "
        "{ y = Gemm<alpha=0.5, beta=2.0, broadcast=1>(x, w, c) }",
        lambda x: 0.5 * x @ np.arange(1, 11).reshape(5, 2) + 2 * np.array([1, 2]), FLAT),
    Old(1, '(float[4,5] x) => (int32[4,5] y) { y = Cast<to="INT32">(x) }', lambda x: np.trunc(x), FLAT),
    Old(1, "(float[2,3,4,5] x) => (float[2,6,4,5] y) { y = Concat(x, x) }", lambda x: np.concatenate([x, x], 1)),
    Old(1, "(float[4,5] x) => (float[1,5] y, float[3,5] z) <float[2] s = {1, 3}> { y, z = Split(x, s) }",
        lambda x: x[:1], FLAT),
    Old(1, "(float[4,5] x) => (float[5,8] y) { y = Pad<paddings=[1,2,0,1], value=2.0>(x) }",
        lambda x: np.pad(x, [(1, 0), (2, 1)], constant_values=2), FLAT),
    Old(1, '(float[4,5] x) => (float[5,8] y) { y = Pad<paddings=[1,2,0,1], mode="reflect">(x) }',
        lambda x: np.pad(x, [(1, 0), (2, 1)], mode="reflect"), FLAT),
    Old(1, "(float[4,5] x) => (float[4,10] y) <float t = {2}, float a = {1}> { y = Tile(x, t, a) }",
        lambda x: np.tile(x, (1, 2)), FLAT),
    Old(1, "(float[2,3,4,5] x) => (float[2,3,8,15] y) { y = Upsample<height_scale=2.0, width_scale=3.0>(x) }",
        lambda x: x.repeat(2, 2).repeat(3, 3)),
    Old(1, "(float[2,3,4,5] x) => (float[2,3,1,1] y) { y = GlobalLpPool<p=3.0>(x) }",
        lambda x: (np.abs(x) ** 3).sum((2, 3), keepdims=True) ** (1 / 3)),
    Old(1, f"(float[3,4,5] x) => (float[3,1,4,2] y) {RECURRENT} "
        "{ y = RNN<hidden_size=2, output_sequence=1>(x, w, r) }",
        gates, {"x": X[0]}),
    Old(1, f"{XY} {{ y = Selu<consumed_inputs=[0]>(x) }}",
        lambda x: 1.0507 * np.where(x > 0, x, 1.6732 * np.expm1(np.minimum(x, 0)))),
    Old(1, f"(float[3,4,5] x) => (float[3,1,4,1] y) {GATED} {{ y = GRU<hidden_size=1>(x, w, r) }}", gru, {"x": X[0]}),
]  # fmt: skip


def label(old: Old) -> str:
    return f"{old.opset} {old.text.rpartition('= ')[2].partition('<')[0]} {OLDS.index(old)}"


@pytest.mark.parametrize("old", OLDS, ids=label)
def test_the_reference_runs_an_early_form(old: Old) -> None:
    if "GlobalLpPool" in old.text:  # the evaluator of onnx has it in no opset
        return
    expected = old.expected(**old.feeds)
    given = next(iter(Evaluator(old.model).run(old.feeds).values()))
    np.testing.assert_allclose(given, expected, rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize("target", [7, 9, 13, 21])
@pytest.mark.parametrize("old", OLDS, ids=label)
def test_a_raised_model_is_valid_and_computes_the_same(old: Old, target: int) -> None:
    model = opset_conversion.convert(old.model, target)
    onnx.checker.check_model(ir.to_proto(model), full_check=True)
    given = next(iter(onnxsmith.run(model, old.feeds).outputs.values()))
    np.testing.assert_allclose(given, old.expected(**old.feeds), rtol=RTOL, atol=ATOL)


def test_each_attribute_that_is_gone_has_a_raising_with_a_model_here() -> None:
    shown = {(node.op_type, old.opset) for old in OLDS for node in old.model.graph}
    named = {name for name, _ in shown}
    for op_type in sorted({one.name for one in defs.get_all_schemas_with_history() if not one.domain}):
        for since in schema.versions(op_type, ""):
            older, newer = schema.find(op_type, "", since - 1), schema.find(op_type, "", since)
            if since > 7 or older is None or newer is None:
                continue
            gone = older.attributes.keys() - newer.attributes.keys()
            assert not gone or (op_type, since) in raisings()
            if gone - {"consumed_inputs", "output_sequence"}:
                assert op_type in named


REFUSED = {
    "is_test": f"{XY} {{ y = Dropout(x) }}",
    "statistics": f"(float[2,3,4,5] x) => (float[2,3,4,5] y, float[3] r) {held('sbmv')} "
    "{ y, r = BatchNormalization<is_test=1>(x, s, b, m, v) }",
    "dimensions": "(float[2,3,4,5] x, float[k] s, float b) => (float[2,3,4,5] y) "
    "{ t = my.Unknown(b) y = Mul<broadcast=1, axis=1>(x, t) }",
    "more dimensions": "(float[2,3] x, float[3] b) => (float[2,3] y) { y = Mul<broadcast=1, axis=2>(x, b) }",
    "order 2.5": "(float[2,3,4,5] x) => (float[2,3,1,1] y) { y = GlobalLpPool<p=2.5>(x) }",
    "repeats": "(float[4,5] x, float t) => (float[4,n] y) <float a = {1}> { y = Tile(x, t, a) }",
    "is not the name of a dtype": '(float[4] x) => (float[4] y) { y = Cast<to="real">(x) }',
    "computed from an input": "(float[4,5] x, float[2] s) => (float[a,5] y, float[b,5] z) { y, z = Split(x, s) }",
}


@pytest.mark.parametrize("said", REFUSED)
def test_what_has_no_later_form_is_refused_with_the_reason(said: str) -> None:
    text = f'<ir_version: 3, opset_import: ["": 1, "my": 1]> g {REFUSED[said]}'
    model = ir.serde.deserialize_model(onnx.parser.parse_model(text))
    with pytest.raises(OnnxsmithError, match=said) as raised:
        opset_conversion.convert(model, 13)
    assert raised.value.problem.id == "export/opset"


def test_sizes_that_differ_without_broadcast_fail_in_the_reference() -> None:
    old = Old(6, f"{XB} {{ y = Mul(x, b) }}", lambda x: x, THREE)
    with pytest.raises(OnnxsmithError, match="without `broadcast`"):
        Evaluator(old.model).run(THREE)
