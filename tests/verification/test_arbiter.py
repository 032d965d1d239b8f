"""What float64 decides: two that are one function there are not called different, and nothing else is let off."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith import compare
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure.signature import Port, Signature
from onnxsmith.graph.surgery.float64_copy import widened
from onnxsmith.runtimes.base import Outputs, Session
from onnxsmith.verification import float64_session
from onnxsmith.verification.arbiter import Arbiter
from onnxsmith.verification.explore import Run
from onnxsmith.verification.inputs.generate import Feed
from onnxsmith.verification.output_checks import Checks
from onnxsmith.verification.rounding import counted

HEAD = '<ir_version: 10, opset_import: ["": 20]> g (float[n,256] x) => (float[n,1] y) <int64[1] a = {1}> '
TWO_PASSES = HEAD + "{ m = ReduceMean(x, a) d = Sub(x, m) s = Mul(d, d) y = ReduceMean(s, a) }"
ONE_PASS = HEAD + (
    "{ s = Mul(x, x) t = ReduceMean(s, a) m = ReduceMean(x, a) q = Mul(m, m) y = Sub(t, q) }"  # loses digits
)
RNG = np.random.default_rng(0)
FAR = RNG.standard_normal((3, 256)).astype(np.float32) + np.float32(30)
"""The mean of the squares is 900, the variance 1: seven digits less three."""


def test_two_ways_to_a_variance_are_not_different_where_one_of_them_loses_digits() -> None:
    result = compare(from_text(TWO_PASSES), from_text(ONE_PASS), inputs={"x": FAR})
    assert result.report.verdict is Verdict.DONE, result.report.headline
    assert "; the given input could not decide about output 'y'" in result.report.headline


def test_they_cannot_be_told_apart_where_nothing_else_was_compared() -> None:
    result = compare(from_text(TWO_PASSES), from_text(ONE_PASS), inputs={"x": FAR}, generate=False)
    assert result.report.verdict is Verdict.CANNOT_TELL, result.report.headline


def test_a_sum_in_another_order_that_loses_digits_is_not_different() -> None:
    head = '<ir_version: 10, opset_import: ["": 20]> g (float[n,3] x) => (float[n,1] y) <int64[1] a = {1}> '
    first = head + "{ p, q, r = Split<axis = 1, num_outputs = 3>(x) s = Add(p, q) y = Add(s, r) }"
    second = head + "{ p, q, r = Split<axis = 1, num_outputs = 3>(x) s = Add(q, r) y = Add(p, s) }"
    given = {"x": np.array([[1e4, -1e4, 1.2345], [2e4, -2e4, 0.54321]], np.float32)}
    found = compare(from_text(first), from_text(second), inputs=given).report
    assert found.verdict is Verdict.DONE, found.headline


@pytest.mark.parametrize("factor", ["1.01", "1.0001"])
def test_another_function_stays_different(factor: str) -> None:
    wrong = ONE_PASS.replace("y = Sub(t, q)", f"f = Constant<value_float = {factor}>() o = Mul(q, f) y = Sub(t, o)")
    result = compare(from_text(TWO_PASSES), from_text(wrong), inputs={"x": FAR})
    assert result.report.verdict is Verdict.DIFFERENT


@pytest.mark.parametrize(
    "body",
    [
        "c = Constant<value_floats = [1.0, 2.5]>() y = Mul(x, c)",
        "c = Constant<value = float[2] {0.1, 0.2}>() y = Add(x, c)",
        "h = Cast<to = 10>(x) y = Cast<to = 1>(h)",
        "s = Shape(x) z = ConstantOfShape(s) y = Sub(x, z)",
        "y = Gemm(x, w)",
        (
            "b = Constant<value = bool {1}>() y = If(b) <then_branch = t () => (float[k,2] p) { p = Mul(x, w0) }, "
            "else_branch = e () => (float[k,2] q) { q = Neg(x) }>"
        ),
    ],
)
def test_a_widened_model_computes_the_same_in_float64(body: str) -> None:
    text = (
        '<ir_version: 10, opset_import: ["": 20]> g (float[n,2] x) => (float[n,2] y) '
        f"<float[2,2] w = {{1, 2, 3, 4}}, float[2] w0 = {{0.1, 3}}> {{ {body} }}"
    )
    model = from_text(text)
    session = float64_session.in_double(model)
    assert session is not None
    x = RNG.standard_normal((3, 2)).astype(np.float32)
    with session:
        found = session.run({"x": x})["y"]
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.float64
    usual = compare(model, model, inputs={"x": x}, generate=False).report.verdict
    assert usual is not Verdict.DIFFERENT
    assert all(value.dtype == ir.DataType.FLOAT for value in model.graph.inputs)  # the model itself is as it was


def test_a_model_that_quantises_is_not_widened() -> None:
    model = from_text(
        '<ir_version: 10, opset_import: ["": 20]> g (float[n] x) => (uint8[n] y) <float s = {0.1}, uint8 z = {3}> '
        "{ y = QuantizeLinear(x, s, z) }"
    )
    assert widened(model) is None


class _Answers(Session):
    """A session that answers with one array, whatever it is given."""

    provider = "tests"
    signature = Signature((), (Port("y", "double", (2,)),))

    def __init__(self, *values: float) -> None:
        self._values = np.array(values)

    def run(self, feeds: object) -> Outputs:
        return {"y": self._values}


@pytest.mark.parametrize(
    ("truth", "given", "is_lost"),
    [
        ((1.0, 2.0), (1.0, 2.0), False),
        ((1.0, 2.0), (1.0, 2.5), True),
        ((np.nan, np.nan), (1.0, 2.0), False),  # more digits make no NaN: what answers so is no measure
        ((1.0, 2.0), (1.0, np.nan), True),
        ((np.nan, 2.0), (np.nan, 2.0), False),
    ],
)
def test_float64_is_believed_where_it_gives_numbers(
    truth: tuple[float, ...], given: tuple[float, ...], is_lost: bool
) -> None:
    run = Run(Feed("any", {}, {}), {"y": np.array(given, np.float32)})
    assert bool(Arbiter(lambda: _Answers(*truth)).lost(run, "y")) is is_lost


ONE = (1.0, 1.0)


@pytest.mark.parametrize(
    ("exact", "reference", "value", "tolerance", "said"),
    [
        # the scale of an element is the root mean square, 1, and the element itself, 1: 0.002 is 1.0e-03 of it
        (ONE, np.float32([1.002, 1]), np.float32([1.001, 1]), 1e-6, "5.0e-04 of its scale, the reference by 1.0e-03"),
        (ONE, np.float32([1.002, 1]), np.float32([1.003, 1]), 1e-6, ""),
        (ONE, np.float32([1.002, 1]), np.float32([1.003, 1]), 2e-3, "1.5e-03 of its scale, the reference by 1.0e-03"),
        (ONE, np.float32([1.01, 1]), np.float32([1.001, 1]), 1e-6, ""),  # 5e-3 is over 2^-8: no usable reference
        (ONE, np.float32([1.002, 1]), np.int64([1, 1]), 1e-6, ""),
        (ONE, np.float32([1.002, 1]), [np.float32([1.001, 1])], 1e-6, ""),
        ((1, 1), np.float32([1.002, 1]), np.float32([1.001, 1]), 1e-6, ""),  # float64 answers with integers
    ],
)
def test_the_side_that_is_closer_to_float64_is_right(
    exact: tuple[float, ...], reference: object, value: object, tolerance: float, said: str
) -> None:
    run = Run(Feed("any", {}, {}), {"y": reference, "z": reference})
    arbiter = Arbiter(lambda: _Answers(*exact))
    found = arbiter.settle(run, "y", value, tolerance, 0.0)
    assert found.endswith(said)
    assert bool(found) == bool(said)
    assert arbiter.settle(run, "z", value, tolerance, 0.0) == ""  # float64 gives no such output


def test_a_fault_on_an_input_that_is_left_out_is_not_seen() -> None:
    rounding = {"y": counted(1, 1, 2.0**-24)}
    checks = Checks(_Answers.signature, rounding, drawn=lambda _: set(), arbiter=Arbiter(lambda: _Answers(1.0, 2.0)))
    run = Run(Feed("lost", {}, {}), {"y": np.array([1.0, 2.5], np.float32)})
    checks.add(run, {"y": np.array([1.0, 2.0], np.float32)}, None)
    assert "left out" in checks.notes[0]
    assert not checks.sees(run, {"y": np.array([1.0, 2.0])}, {"y": np.array([5.0, 2.0])})
