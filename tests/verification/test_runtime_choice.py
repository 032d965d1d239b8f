"""Where the usual runtime has no kernel the next one judges, which is said; a runtime that was named is kept to."""

from __future__ import annotations

import pytest

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.settings import Verify
from onnxsmith.graph.files.text import from_text
from onnxsmith.verification import runtime_choice
from onnxsmith.verification.sessions import verify_models
from onnxsmith.verification.verification_verdict import ending
from tests.conftest import Refused


def head(opset: int = 21, ir_version: int = 10) -> str:
    return f'<ir_version: {ir_version}, opset_import: ["": {opset}, "mine": 1, "ai.onnx.preview.training": 1]>\n'


BFLOAT16 = head() + "g (bfloat16[n,3] x) => (bfloat16[n,3] y) { a = Add(x, x) y = Tanh(a) }"
LACKING = {
    "bfloat16": (BFLOAT16, "openvino"),
    "bfloat16 inside": (
        head() + "g (float[3] x) => (float[3] y) { a = Cast<to = 16>(x) b = Tanh(a) y = Cast<to = 1>(b) }",
        "openvino",
    ),
    "float4": (
        head(23, 11) + "g (float4e2m1[4] x) => (float[4] y) <float s = {0.5}> { y = DequantizeLinear(x, s) }",
        "reference",
    ),
    "double": (head() + "g (double[4] x) => (double[4] y) { y = Erf(x) }", "reference"),
    "complex": (head() + "g (complex64[4] x) => (complex64[4] y) { y = Identity(x) }", "reference"),
    "an attribute": (
        head(22)
        + 'g (float[1,1,4,4,4] x, float[1,2,2,2,3] q) => (float[1,1,2,2,2] y) { y = GridSample<mode = "cubic">(x, q) }',
        "reference",
    ),
}


@pytest.mark.parametrize("kind", LACKING)
def test_the_next_runtime_judges(kind: str) -> None:
    text, runtime = LACKING[kind]
    found = verify_models(from_text(text), from_text(text))
    assert found.equal
    assert f"on {runtime} " in found.reference
    assert f"run on {runtime}: onnxruntime" in ending(found)


def test_a_wrong_model_is_found_there() -> None:
    other = BFLOAT16.replace("Tanh(a)", "Sigmoid(a)")
    assert verify_models(from_text(BFLOAT16), from_text(other)).differs


def test_a_named_runtime_is_kept_to(refused: Refused) -> None:
    with refused("runtime/no-kernel") as refusal:
        verify_models(from_text(BFLOAT16), from_text(BFLOAT16), Verify(runtime="onnxruntime"))
    assert refusal.problem.fix.startswith("--runtime openvino")


def test_a_candidate_that_does_not_run_is_refused_and_not_judged_elsewhere(refused: Refused) -> None:
    reference = head() + "g (double[4] x) => (double[4] y) { y = Tanh(x) }"
    with refused("runtime/no-kernel"):
        verify_models(from_text(reference), from_text(LACKING["double"][0].replace("double[4]", "double[4]")))


def test_a_model_is_simplified_on_another_runtime() -> None:
    result = onnxsmith.simplify(from_text(BFLOAT16.replace("Tanh(a)", "Identity(a)")))
    assert result.ok
    assert "run on openvino" in result.report.headline


def test_why_no_runtime_takes_a_model(refused: Refused) -> None:
    foreign = from_text(head() + "g (float[3] x) => (float[3] y) { y = mine.Op(x) }")
    with refused("runtime/unknown-operator") as refusal:
        runtime_choice.able([foreign], {"onnxruntime": Problem("runtime/unknown-operator", "it does not know mine:Op")})
    assert "OpenVINO does not know the operator mine.Op" in refusal.problem.why
    assert "NotImplementedError" in refusal.problem.why


@pytest.mark.parametrize(
    "text",
    [
        "g (bfloat16[2] x) => (bfloat16[2] y, int64[1] z) { y = Tanh(x)\n z = Shape(x) }",
        """g (bfloat16[2] x, int64[1] n) => (bfloat16[2] y, float[1] z) <int64[1] k = {5000000000}> {
            y = Tanh(x)\n s = Add(n, k)\n z = Cast<to = 1>(s) }""",
    ],
)
def test_openvino_does_not_judge_long_integers(text: str) -> None:
    """It computes them in 32 bits, without a warning if these overflow."""
    assert "on reference " in verify_models(from_text(head() + text), from_text(head() + text)).reference


def constant(number: int, reader: str, dtype: str = "int64") -> str:
    return (
        f"g ({dtype}[n] x) => (float[k] y) {{ c = Constant<value = {dtype}[1] {{{number}}}>() {reader} "
        "y = Cast<to = 1>(a) }"
    )


def weight(number: int, reader: str) -> str:
    return f"g (int64[n] x) => (float[k] y) <int64[1] c = {{{number}}}> {{ {reader} y = Cast<to = 1>(a) }}"


ADD, SLICE = "a = Add(x, c)", "a = Slice(x, x, c)"


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        *((made(number, ADD), number > 2**31 - 1) for made in (constant, weight) for number in (2**31 - 1, 2**31)),
        *((made(number, ADD), number < -(2**31)) for made in (constant, weight) for number in (-(2**31), -(2**31) - 1)),
        *((made(2**62, SLICE), False) for made in (constant, weight)),
        *((made(2**62, "b = Slice(x, x, c) a = Add(b, c)"), True) for made in (constant, weight)),
        (constant(2**31, ADD, "uint32"), True),
        (constant(2**31 - 1, ADD, "uint32"), False),
        ("g (float[n] x) => (int64[1] y) { y = Shape(x) }", True),
        ("g (float[n] x) => (int32[1] y) { a = Shape(x) y = Cast<to = 6>(a) }", False),
        ("g (float[n] x) => (float[n] y) <float[1] c = {1e30}> { y = Add(x, c) }", False),
        ("g (int64[n] x) => (float[k] y) <int64[0] c = {}> { a = Concat<axis = 0>(x, c) y = Cast<to = 1>(a) }", False),
    ],
)
def test_numbers_beyond_32_bits_are_looked_for(text: str, needs: bool) -> None:
    assert runtime_choice._needs_long_integers(from_text(head() + text)) == needs


def test_a_node_that_refuses_fixed_sizes_is_to_be_changed() -> None:
    model = from_text(
        """<ir_version: 10, opset_import: ["": 20]>
        g (float[2,2,3,3] x) => (float[2,2,a,b] y) { [up] y = ConvTranspose<output_padding = [1, 1]>(x, x) }"""
    )
    with pytest.raises(OnnxsmithError) as raised:
        verify_models(model, model, Verify(runtime="onnxruntime"))
    assert "change the ConvTranspose node" in raised.value.problem.fix
