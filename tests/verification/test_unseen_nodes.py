"""What nodes of one name compute otherwise, and no output shows, is not called equal."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith import compare
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.graph.files.text import from_text
from onnxsmith.verification import unseen_differences as room
from onnxsmith.verification.probe import Probe
from onnxsmith.verification.unseen_differences import _Answer, _read, are_same


def judged(text: str, good: str, bad: str) -> Report:
    assert good in text
    return compare(from_text(text), from_text(text.replace(good, bad))).report


HEAD = '<ir_version: 10, opset_import: ["": 20]> g '
ROUNDED = HEAD + (
    "(float[n,2] x) => (float[n,2] y) <float s = {2.0}, uint8 z = {128}> "
    "{ h = Cast<to = 10>(x) b = Cast<to = 1>(h) t = Neg(b) q = QuantizeLinear(t, s, z) y = DequantizeLinear(q, s, z) }"
)


def test_a_dropped_rounding_that_a_quantiser_hides_is_named() -> None:
    report = judged(ROUNDED, "Neg(b)", "Neg(x)")
    assert report.verdict is Verdict.CANNOT_TELL
    assert "Neg 't' has different inputs, and gives different results, but no output shows this" in report.headline


def test_a_rounding_that_is_new_is_named() -> None:
    without = ROUNDED.replace("h = Cast<to = 10>(x) b = Cast<to = 1>(h) t = Neg(b)", "t = Neg(x)")
    report = compare(from_text(without), from_text(ROUNDED)).report
    assert report.verdict is Verdict.CANNOT_TELL
    assert "Neg 't' has different inputs" in report.headline


def test_a_limit_that_counts_on_one_side_only_is_named() -> None:
    text = HEAD + ("(float[n] x) => (bool y) <int64 far = {1234567}> { s = Size(x) t = Mul(s, s) y = Greater(t, far) }")
    report = judged(text, "Greater(t", "GreaterOrEqual(t")
    assert report.verdict is Verdict.CANNOT_TELL
    assert "'y' is GreaterOrEqual in one model and Greater in the other" in report.headline


def test_a_pattern_that_no_text_tells_apart_is_named() -> None:
    text = HEAD + '(string[n] x) => (bool[n] y) { y = RegexFullMatch<pattern = "[A-Z]{2}-[0-9]{4}">(x) }'
    report = judged(text, "{4}", "{5}")
    assert report.verdict is Verdict.CANNOT_TELL
    assert "RegexFullMatch 'y' has different attributes or constants" in report.headline


@pytest.mark.parametrize(
    ("body", "good", "bad"),
    [
        ("a = Transpose<perm = [1, 0]>(x) y = Transpose<perm = [1, 0]>(a)", "<perm = [1, 0]>", ""),
        ("y = Softmax<axis = 1>(x)", "axis = 1", "axis = -1"),
        ("a = Identity(x) y = Neg(a)", "Neg(a)", "Neg(x)"),
        ("a = Abs(x) b = Neg(x) y = Add(a, b)", "Add(a, b)", "Add(b, a)"),
        ("a = Clip(x, low, high) y = Neg(a)", "a = Clip(x, low, high)", "b = Min(x, high) a = Max(low, b)"),
    ],
)
def test_what_means_the_same_is_equal(body: str, good: str, bad: str) -> None:
    text = HEAD + "(float[n,4] x) => (float[n,m] y) <float low = {-1.0}, float high = {1.0}> { BODY }"
    text = text.replace("BODY", body)
    assert judged(text, good, bad).verdict is Verdict.DONE


def test_what_is_made_up_for_elsewhere_is_equal() -> None:
    text = HEAD + (
        "(float[n,4] x) => (float[n,4] y) <float two = {2.0}, float three = {3.0}> "
        "{ a = Mul(x, two) y = Mul(a, three) }"
    )
    other = text.replace("a = Mul(x, two) y = Mul(a, three)", "a = Mul(x, three) y = Mul(a, two)")
    assert compare(from_text(text), from_text(other)).report.verdict is Verdict.DONE


def test_a_twin_that_reads_what_it_makes_is_passed_over() -> None:
    text = HEAD + "(float[n,4] x) => (float[n,4] y) { a = Neg(x) b = Neg(a) y = Neg(b) }"
    other = text.replace("a = Neg(x) b = Neg(a) y = Neg(b)", "b = Identity(x) a = Neg(b) y = Identity(a)")
    assert compare(from_text(text), from_text(other)).report.verdict is Verdict.DONE


def test_many_nodes_that_say_the_same_otherwise_are_equal() -> None:
    text = HEAD + "(float[n,4] v0) => (float[n,4] y) <float minus = {-1.0}> { %s y = Neg(v80) }"
    negated = text % " ".join(f"v{i + 1} = Neg(v{i})" for i in range(80))
    multiplied = text % " ".join(f"v{i + 1} = Mul(v{i}, minus)" for i in range(80))
    assert compare(from_text(negated), from_text(multiplied)).report.verdict is Verdict.DONE


def test_an_axis_that_a_fused_kernel_passes_over_is_named() -> None:
    weight = ", ".join(str(number) for number in [5, -7, 3, 9, -2, 4, 8, -6, 1, 7, -3, 2, 6, -5, 4, -8])
    text = (
        '<ir_version: 10, opset_import: ["": 20]> g (float[n,4,3,3] x) => (float[n,4,3,3] y) '
        f"<float s = {{0.1}}, int8 z = {{0}}, int8[4,4,1,1] w = {{{weight}}}, float[4] ws = {{0.1, 0.4, 0.2, 0.9}}, "
        "int8[4] wz = {0, 0, 0, 0}> "
        "{ q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) v = DequantizeLinear<axis = 0>(w, ws, wz) "
        "c = Conv(d, v) r = QuantizeLinear(c, s, z) y = DequantizeLinear(r, s, z) }"
    )
    report = judged(text, "axis = 0", "axis = 1")
    assert report.verdict in (Verdict.CANNOT_TELL, Verdict.DIFFERENT)
    if report.verdict is Verdict.CANNOT_TELL:
        assert "with the runtime's optimisations off, output 'y' differs" in report.headline


def test_each_element_of_a_mask_is_chosen_by_itself() -> None:
    text = HEAD + (
        "(float[n,t] x, int64[n,t] m) => (float[n,t] y) <int64 one = {1}, float low = {-9.0}> "
        "{ k = Equal(m, one) h = Where(k, x, low) y = Softmax(h) }"
    )
    assert judged(text, "-9.0", "-1.0").verdict is Verdict.DIFFERENT


def test_rows_of_zeros_are_tried() -> None:
    text = HEAD + (
        "(float[8,8] x) => (float[8,1] y) <int64[1] last = {1}, float none = {0.0}, float mean = {0.125}> "
        "{ s = ReduceSum(x, last) e = Equal(s, none) y = Where(e, mean, s) }"
    )
    assert judged(text, "mean = {0.125}", "mean = {0.5}").verdict is Verdict.DIFFERENT


def test_a_limit_of_whole_numbers_that_is_one_off_is_seen() -> None:
    text = HEAD + (
        "(int64[n] hour) => (bool[n] y) <int64 late = {22}, int64 early = {6}> "
        "{ a = GreaterOrEqual(hour, late) b = Less(hour, early) y = Or(a, b) }"
    )
    assert judged(text, "early = {6}", "early = {5}").verdict is Verdict.DIFFERENT
    assert judged(text, "late = {22}", "late = {23}").verdict is Verdict.DIFFERENT


F, I64 = ir.DataType.FLOAT, ir.DataType.INT64


class _Blind:
    """A check that sees nothing."""

    def sees(self, run: object, usual: object, faulty: object) -> bool:
        return False

    def effect(self, run: object, usual: object, faulty: object) -> float:
        return 0.0


def pair(*reads: str) -> Any:
    return SimpleNamespace(reads=reads)


def seen(**shapes: tuple[int, ...]) -> _Answer:
    return _Answer(frozenset(), {name: (I64 if name == "i" else F, shape) for name, shape in shapes.items()})


def test_axes_that_change_together_share_a_symbol() -> None:
    answers = [seen(a=(2, 3), b=(3, 2), i=(5,)), seen(a=(4, 3), b=(3, 4), i=(1,)), seen(a=(1, 3), b=(3, 1), i=(5,))]
    read, sizes = _read(pair("a", "b", "i", "a"), answers) or ({}, {})
    assert read == {"a": (F, ("n2_4_1", 3)), "b": (F, (3, "n2_4_1")), "i": (I64, ("n5_1_5",))}
    assert sizes == {"n2_4_1": 4, "n5_1_5": 1}  # those of the second, where the three have the most elements


def test_what_has_no_shape_or_another_rank_is_not_read() -> None:
    assert _read(pair(), [seen(a=(2,))]) is None
    assert _read(pair("a", "b"), [seen(a=(2,))]) is None
    assert _read(pair("a"), [seen(a=(2,)), seen(a=(2, 3))]) is None
    assert _read(pair("a"), [seen(a=(2,)), seen(a=(2,))]) == ({"a": (F, (2,))}, {})


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ([1.0, 2.0], [1.0, 2.0], True),
        ([1.0, 1.0], [1.0, 1.0 + 2**-20], True),
        ([1.0, 1.0], [1.0, 1.1], False),
        ([1.0, 2.0], [[1.0, 2.0]], False),
        ([1.0], [1], False),
        (["a", "b"], ["a", "b"], True),
        (["a", "b"], ["a", "c"], False),
    ],
)
def test_constants_are_the_same_up_to_rounding(one: Any, other: Any, same: bool) -> None:
    def made(values: Any) -> ir.TensorProtocol:
        array = np.array(values)
        return ir.tensor(array.astype(np.float32) if array.dtype.kind == "f" else array)

    assert are_same(made(one), made(other)) == same


@pytest.mark.parametrize(("count", "tried"), [(0, 0), (1, 1), (32, 32), (33, 17), (64, 32), (65, 22)])
def test_of_many_pairs_32_are_compared(monkeypatch: pytest.MonkeyPatch, count: int, tried: int) -> None:
    compared: list[int] = []

    def unseen(probe: object, model: object, found: list[int], *_: object) -> list[str]:
        compared.append(len(found))
        return [f"said {place}" for place in found]

    monkeypatch.setattr(room, "_unseen", unseen)
    monkeypatch.setattr(room.same_name_nodes, "pairs", lambda *_: (list(range(count)), []))
    model = from_text(HEAD + "(float[n] x) => (float[n] y) { y = Neg(x) }")
    one, other = (Probe(model, pytest.fail) for _ in range(2))
    said = room.unseen_nodes(one, other, [], _Blind())
    assert compared == ([tried] if count else [])
    more = f"; and {tried - 1} more" if tried > 1 else ""
    assert said == ((f"said 0{more}",) if count else ())


BRANCH = (
    "g (float[n,4] x) => (float[n,4] y) { s = ReduceSum<keepdims = 0>(x) z = Constant<value_float = 1e6>() "
    "c = Greater(s, z) y = If<then_branch = t () => (float[n,4] q) { NODE }, "
    "else_branch = e () => (float[n,4] r) { r = Neg(x) }>(c) }"
)
BODY = (
    "g (float[n,4] x) => (float[n,4] y) { k = Constant<value = int64 {3}>() b = Constant<value = bool {1}>() "
    "y = Loop<body = body (int64 i, bool go, float[n,4] h) => (bool more, float[n,4] f) "
    "{ more = Identity(go) NODE m = Constant<value_float = 1e9>() f = Add(q, m) }>(k, b, x) }"
)


@pytest.mark.parametrize(
    ("around", "one", "other"),
    [
        (BRANCH, "q = LeakyRelu<alpha = 0.1>(x)", "q = LeakyRelu<alpha = 0.2>(x)"),  # small beside the values it takes
        (BRANCH, "q = Exp(x)", "q = Sqrt(x)"),
        (BODY, "q = LeakyRelu<alpha = 0.1>(h)", "q = LeakyRelu<alpha = 0.11>(h)"),
        (BODY, "w = Constant<value_float = 1.0>() q = Mul(h, w)", "w = Constant<value_float = 1.0001>() q = Mul(h, w)"),
    ],
)
def test_another_node_in_a_branch_or_body_is_no_agreement(around: str, one: str, other: str) -> None:
    report = compare(*(from_text(HEAD.rstrip("g ") + around.replace("NODE", node)) for node in (one, other))).report
    assert report.verdict is not Verdict.DONE


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("q = Softmax<axis = 1>(x)", "q = Softmax<axis = -1>(x)"),
        ("q = Add(x, x)", "d = Constant<value_float = 2.0>() q = Mul(x, d)"),
        ("q = LeakyRelu<alpha = 0.01>(x)", "q = LeakyRelu(x)"),
    ],
)
def test_what_means_the_same_in_a_branch_is_equal(one: str, other: str) -> None:
    report = compare(*(from_text(HEAD.rstrip("g ") + BRANCH.replace("NODE", node)) for node in (one, other))).report
    assert report.verdict is Verdict.DONE
