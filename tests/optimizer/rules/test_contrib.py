"""The rules that make operators of onnxruntime: what each makes, with which numbers, and what it refuses."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from onnxsmith.base.report.parts.edits import Simplification
from onnxsmith.base.settings import Verify
from onnxsmith.graph.files.text import from_text
from onnxsmith.optimizer.simplification_rounds import simplified
from onnxsmith.verification.sessions import verify_models
from tests.refusals import refusals, refuses
from tests.rewrites import head

QUANTISED = """<uint8[2,2] w = {1, 2, 3, 4}, uint8[2,2] v = {5, 6, 7, 8}, uint8 z = {2}, uint8[2] vz = {1, 3},
    float s = {0.5}, float[2] vs = {0.5, 2}, float[2] b = {1, -1}>"""
MASKED = "g (float[N,2,4] x, float[N,2,4] k) => (float[N,2,2] y) <float half = {0.5}>"


def run(rules: list[str], text: str, opset: int = 24) -> tuple[ir.Model, Simplification]:
    """Simplified by these rules alone. The numbers stay on onnxruntime, with and without its optimisations."""
    model = from_text(head(opset) + text)
    result, part = simplified(model, only=rules)
    assert not verify_models(model, result, Verify(runtime="onnxruntime")).differs
    return result, part


def ops(model: ir.Model) -> str:
    return " ".join(node.op_type for node in model.graph)


MADE = {
    "contrib/quick-gelu": (
        "QuickGelu",
        "g (float[N] x) => (float[N] y) <float a = {1.702}> { t = Mul(x, a) s = Sigmoid(t) y = Mul(x, s) }",
    ),
    "contrib/bias-gelu": (
        "FastGelu",
        'g (float[N,2] x) => (float[N,2] y) <float[2] b = {1, -1}> { a = Add(b, x) y = Gelu<approximate = "tanh">(a) }',
    ),
    "contrib/fused-matmul": (
        "FusedMatMul",
        MASKED + " { t = Transpose<perm = [0, 2, 1]>(k) p = MatMul(x, t) y = Div(p, half) }",
    ),
    "contrib/dynamic-quantize-matmul": (
        "DynamicQuantizeMatMul",
        f"""g (float[N,2] x) => (float[N,2] y) {QUANTISED} {{ q, qs, qz = DynamicQuantizeLinear(x)
        m = MatMulInteger(q, v, qz, vz) c = Cast<to = 1>(m) t = Mul(vs, qs) y = Mul(t, c) }}""",
    ),
    "contrib/matmul-integer-to-float": (
        "DynamicQuantizeLinear MatMulIntegerToFloat MatMulIntegerToFloat",
        f"""g (float[N,2] x) => (float[N,2] y, float[N,2] y2) {QUANTISED} {{ q, qs, qz = DynamicQuantizeLinear(x)
        m = MatMulInteger(q, w, qz, z) c = Cast<to = 1>(m) t = Mul(qs, s) f = Mul(c, t) y = Add(f, b)
        m2 = MatMulInteger(q, v, qz) c2 = Cast<to = 1>(m2) t2 = Mul(qs, s) y2 = Mul(c2, t2) }}""",
    ),
    "contrib/skip-layer-norm": (
        "Tanh SkipSimplifiedLayerNormalization",
        """g (float[N,3,2] x) => (float[N,3,2] y) <float[2] s = {2, 3}> {
        z = Tanh(x) a = Add(x, z) y = RMSNormalization(a, s) }""",
    ),
}


@pytest.mark.parametrize("rule", MADE)
def test_made(rule: str) -> None:
    wanted, text = MADE[rule]
    result, _ = run([rule], text)
    assert ops(result) == wanted
    assert result.opset_imports["com.microsoft"] == 1


GELU = "g (%s[N,2] x) => (%s[N,2] y%s) <%s[2] b = {1, -1}> { a = Add(x, b) y = Gelu(a) %s }"
SWISH = "g (%s[N] x) => (%s[N] y%s) { s = Sigmoid(x) y = Mul(x, s) %s }"
PRODUCT = """g (%s[2,4] x, %s[2,4] k) => (%s[2,2] y) <%s two = {2}> {
    t = Transpose(k) p = MatMul(x, t) y = Mul(p, two) }"""
SHARED = """g (float[2,2] x) => (float[2,2] y, float[2,2] z) <float two = {2}> {
    p = MatMul(x, x) y = Mul(p, two) z = Neg(p) }"""
SKIP = "g (%s[N,3,2] x, %s[%s,2] z) => (%s[N,3,2] y) <%s[2] s = {2, 3}> { a = Add(x, z) y = LayerNormalization(a, s) }"
DYNAMIC = """g (float[N,2] x) => (float[N,2] y, %s) <uint8[2,2] w = {1, 2, 3, 4}, float s = {0.5}> {
    q, qs, qz = DynamicQuantizeLinear(x) m = MatMulInteger(q, w, qz) c = Cast<to = 1>(m)
    t = Mul(qs, s) y = Mul(c, t) %s }"""
INT8 = """g (int8[N,2] q, float qs) => (float[N,2] y) <%s[2,2] w = {1, 2, 3, 4}, float s = {0.5}> {
    m = MatMulInteger(q, w) c = Cast<to = 1>(m) t = Mul(qs, s) y = Mul(c, t) }"""
NOT_MADE = {
    "contrib/quick-gelu": {
        "1: the sigmoid is an output": SWISH % ("float", "float", ", float[N] z", "z = Neg(s)"),
        "2: double": SWISH % ("double", "double", "", ""),
    },
    "contrib/bias-gelu": {
        "1: the sum is read elsewhere": GELU % ("float", "float", ", float[N,2] z", "float", "z = Neg(a)"),
        "2: double": GELU % ("double", "double", "", "double", ""),
    },
    "contrib/fused-matmul": {
        "1: the product is read elsewhere": SHARED,
        "2: float16": PRODUCT % (("float16",) * 4),
    },
    "contrib/skip-layer-norm": {
        "1: double": SKIP % ("double", "double", "N,3", "double", "double"),
        "2: one of them is broadcast": SKIP % ("float", "float", "1,1", "float", "float"),
    },
    "contrib/dynamic-quantize-matmul": {
        "1: the integers are read elsewhere": DYNAMIC % ("int32[N,2] z", "z = Neg(m)"),
    },
    "contrib/matmul-integer-to-float": {
        "1: the integers are read elsewhere": DYNAMIC % ("int32[N,2] z, uint8[N,2] q2", "z = Neg(m) q2 = Max(q, q)"),
        "2: no kernel": INT8 % "uint8",
    },
}


@pytest.mark.parametrize(
    ("rule", "case"),
    [pytest.param(rule, *one.values, marks=one.marks) for rule in NOT_MADE for one in refusals(rule, NOT_MADE[rule])],
)
def test_not_made(rule: str, case: str) -> None:
    model = from_text(head(24) + NOT_MADE[rule][case])
    result, part = simplified(model, only=[rule])
    assert [entry.rule for entry in part.refused] == [rule]
    assert "com.microsoft" not in result.opset_imports


def test_int8_by_int8_has_a_kernel() -> None:
    result, _ = run(["contrib/matmul-integer-to-float"], INT8 % "int8")
    assert ops(result) == "MatMulIntegerToFloat"


def test_they_run_only_when_asked_for() -> None:
    _, text = MADE["contrib/quick-gelu"]
    model = from_text(head(24) + text)
    usual, _ = simplified(model)
    asked, _ = simplified(model, contrib=True)
    assert [node.domain for node in usual.graph] == [""]
    assert "com.microsoft" in {node.domain for node in simplified(model, contrib=True, skip=["fuse/swish"])[0].graph}
    assert asked.graph[-1].op_type == "Swish"


def test_one_that_was_measured_slower_has_to_be_named() -> None:
    rule = "contrib/skip-layer-norm"
    model = from_text(head(24) + MADE[rule][1])
    assert "Skip" not in ops(simplified(model, contrib=True)[0])
    assert "Skip" not in ops(simplified(model, contrib=True, only=["contrib/*"])[0])
    assert "Skip" in ops(simplified(model, only=[rule])[0])


@refuses("contrib/skip-layer-norm", 1)
def test_float16_is_left_alone_too() -> None:
    model = from_text(head(24) + SKIP % ("float16", "float16", "N,3", "float16", "float16"))
    assert "Skip" not in ops(simplified(model, only=["contrib/skip-layer-norm"])[0])
