"""Any tensor of a model can be an output, also those of branches and bodies, for every runtime."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.graph.files.specification_check import check
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.surgery.exposing import Exposed, Exposing, expose
from onnxsmith.runtimes.base import get
from tests.conftest import Refused

RUNTIMES = ["onnxruntime", "reference"]


def model(body: str, *, opset: int = 21) -> ir.Model:
    return from_text(f'<ir_version: 10, opset_import: ["": {opset}]>\ng {body}')


def values(exposed: Exposed, runtime: str, feeds: dict[str, Any]) -> dict[str, Any]:
    with get(runtime).prepare(exposed.model) as session:
        outputs = session.run(feeds)
    return {name: exposed.value(name, outputs, feeds) for name in exposed.outlets}


def found(source: ir.Model, names: list[str], runtime: str, **feeds: Any) -> dict[str, Any]:
    before = ir.to_proto(source).SerializeToString()
    exposed = expose(source, names)
    assert exposed.refused == {}
    assert ir.to_proto(source).SerializeToString() == before, "the given model was changed"
    if all(value.shape is not None or isinstance(value.type, ir.SequenceType) for value in exposed.model.graph.outputs):
        assert check(exposed.model) == ()
    return values(exposed, runtime, feeds)


def same(found: Any, wanted: Any) -> None:
    if isinstance(wanted, list):
        assert isinstance(found, list)
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            same(one, other)
        return
    assert found.dtype == np.asarray(wanted).dtype
    np.testing.assert_array_equal(found, wanted)


def f32(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)


PLAIN = """(float[n,2] x) => (float[n,2] y) <float[2] w = {3, 4}> {
    c = Constant<value = float[2] {1, 2}>()
    a = Add(x, c)
    i = Shape(a)
    b = Greater(a, w)
    h = Cast<to = 16>(a)
    s = SequenceConstruct(a, x)
    o = Optional(a)
    y = Mul(a, w)
}"""


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_tensors_of_the_graph(runtime: str) -> None:
    x = f32(1, 2, 3, 4).reshape(2, 2)
    got = found(model(PLAIN), ["x", "w", "c", "a", "i", "b", "h", "s", "y"], runtime, x=x)
    a = x + f32(1, 2)
    same(got["x"], x)
    same(got["w"], f32(3, 4))
    same(got["c"], f32(1, 2))
    same(got["a"], a)
    same(got["i"], np.array([2, 2]))
    same(got["b"], a > f32(3, 4))
    same(got["h"], a.astype(ml_dtypes.bfloat16))
    same(got["s"], [a, x])
    same(got["y"], a * f32(3, 4))


def test_outputs_come_first_and_once() -> None:
    exposed = expose(model(PLAIN), ["a", "y", "x", "w"])
    assert [value.name for value in exposed.model.graph.outputs] == ["y", "a"]
    assert [(outlet.given, outlet.output) for outlet in exposed.outlets.values()] == [
        ("output", "a"), ("output", "y"), ("feed", ""), ("constant", ""),
    ]  # fmt: skip
    a = exposed.model.graph.outputs[1]
    assert (a.dtype, list(a.shape or [])[1]) == (ir.DataType.FLOAT, 2)
    assert exposed.outlets["a"].shape == ("n", 2)


def test_weights_are_shared() -> None:
    source = model(PLAIN)
    source.graph.initializers["w"].const_value = ir.tensor(np.zeros(10_000, np.float32), name="w")
    tensor = expose(source, ["a"]).model.graph.initializers["w"].const_value
    assert tensor is not None
    assert np.shares_memory(tensor.numpy(), source.graph.initializers["w"].const_value.numpy())


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_an_input_with_a_default(runtime: str) -> None:
    source = model("(float[2] x, float[2] w) => (float[2] y) <float[2] w = {2, 3}> { y = Add(x, w) }")
    same(found(source, ["w"], runtime, x=f32(1, 1))["w"], f32(2, 3))
    same(found(source, ["w"], runtime, x=f32(1, 1), w=f32(5, 6))["w"], f32(5, 6))


LOOP = """(int64 n, bool c, float[2] x) => (float[2] y) {
    y = Loop(n, c, x) <body = b (int64 i, bool d, float[2] v) => (bool e, float[2] w) {
        w = Add(v, v)
        one = Constant<value = int64 {1}>()
        zero = Constant<value = int64[1] {0}>()
        upto = Add(i, one)
        axis = Constant<value = int64[1] {0}>()
        length = Unsqueeze(upto, axis)
        grows = Expand(i, length)
        odd = Greater(w, x)
        e = Identity(d)
    }>
}"""


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("opset", [13, 14, 21])
@pytest.mark.parametrize("turns", [0, 1, 3])
def test_a_loop_gives_one_for_each_turn(runtime: str, opset: int, turns: int) -> None:
    feeds = {"n": np.array(turns), "c": np.array(True), "x": f32(1, 2)}
    got = found(model(LOOP, opset=opset), ["w", "i", "grows", "odd", "v", "y"], runtime, **feeds)
    same(got["w"], [f32(1, 2) * 2 ** (t + 1) for t in range(turns)])
    same(got["v"], [f32(1, 2) * 2**t for t in range(turns)])
    same(got["i"], [np.array(t) for t in range(turns)])
    same(got["grows"], [np.full(t + 1, t) for t in range(turns)])
    same(got["odd"], [f32(1, 2) * 2 ** (t + 1) > f32(1, 2) for t in range(turns)])
    same(got["y"], f32(1, 2) * 2**turns)


@pytest.mark.parametrize(
    ("runtime", "turns"), [("onnxruntime", 0), ("onnxruntime", 1), ("onnxruntime", 3), ("reference", 3)]
)
def test_before_sequences_a_loop_stacks(runtime: str, turns: int) -> None:
    feeds = {"n": np.array(turns), "c": np.array(True), "x": f32(1, 2)}
    text = LOOP.replace("axis = Constant<value = int64[1] {0}>()", "").replace(
        "Unsqueeze(upto, axis)", "Unsqueeze<axes = [0]>(upto)"
    )
    got = found(model(text, opset=12), ["w", "i", "odd", "v"], runtime, **feeds)
    same(got["w"], [f32(1, 2) * 2 ** (t + 1) for t in range(turns)])
    same(got["i"], [np.array(t) for t in range(turns)])
    exposed = expose(model(text, opset=12), ["w", "grows"])
    assert list(exposed.outlets) == ["w"]
    assert "between iterations" in exposed.refused["grows"]


IF_IN_LOOP = """(int64 n, bool c, float[2] x) => (float[2] y) {
    y = Loop(n, c, x) <body = b (int64 i, bool d, float[2] v) => (bool e, float[2] w) {
        two = Constant<value = int64 {2}>()
        zero = Constant<value = int64 {0}>()
        rest = Mod(i, two)
        even = Equal(rest, zero)
        w = If(even) <
            then_branch = p () => (float[2] t) { t = Neg(v) },
            else_branch = q () => (float[2] f) { g = Add(v, v)
                f = Identity(g) }
        >
        e = Identity(d)
    }>
}"""


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("opset", [13, 14, 16, 21])
def test_a_branch_in_a_loop(runtime: str, opset: int) -> None:
    feeds = {"n": np.array(4), "c": np.array(True), "x": f32(1, 2)}
    got = found(model(IF_IN_LOOP, opset=opset), ["t", "g", "w"], runtime, **feeds)
    states = [f32(-1, -2), f32(-2, -4), f32(2, 4), f32(4, 8)]
    same(got["w"], states)
    same(got["t"], states[::2])
    same(got["g"], states[1::2])


LOOP_IN_IF = """(bool b, int64 n, bool c, float[2] x) => (float[2] y) {
    y = If(b) <
        then_branch = p () => (float[2] t) {
            t, u = Loop(n, c, x) <body = l (int64 i, bool d, float[2] v) => (bool e, float[2] w, float[2] s) {
                w = Add(v, v)
                s = Identity(w)
                e = Identity(d)
            }>
        },
        else_branch = q () => (float[2] f) { f = Neg(x) }
    >
}"""


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("opset", [12, 13, 21])
@pytest.mark.parametrize("taken", [True, False])
def test_a_loop_in_a_branch(runtime: str, opset: int, taken: bool) -> None:
    feeds = {"b": np.array(taken), "n": np.array(2), "c": np.array(True), "x": f32(1, 2)}
    got = found(model(LOOP_IN_IF, opset=opset), ["i", "u", "f"], runtime, **feeds)
    same(got["i"], [np.array(0), np.array(1)] if taken else [])
    same(got["u"], [np.stack([f32(2, 4), f32(4, 8)])] if taken else [])
    same(got["f"], [] if taken else [f32(-1, -2)])


LOOP_IN_LOOP = """(int64 n, bool c, float[2] x) => (float[2] y) {
    y = Loop(n, c, x) <body = outer (int64 i, bool d, float[2] v) => (bool e, float[2] w) {
        w = Loop(i, d, v) <body = inner (int64 j, bool k, float[2] p) => (bool m, float[2] q) {
            q = Add(p, x)
            m = Identity(k)
        }>
        e = Identity(d)
    }>
}"""


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_loops_in_loops_are_one_list(runtime: str) -> None:
    feeds = {"n": np.array(4), "c": np.array(True), "x": f32(1, 2)}
    got = found(model(LOOP_IN_LOOP), ["q", "j", "w"], runtime, **feeds)
    same(got["q"], [f32(1, 2) * (turn + 2) for turn in range(6)])
    same(got["j"], [np.array(j) for j in (0, 0, 1, 0, 1, 2)])
    same(got["w"], [f32(1, 2) * number for number in (1, 2, 4, 7)])


SCAN = """(float[2] s, float[t,2] x) => (float[2] y, float[t,2] z) {
    y, z = Scan<num_scan_inputs = 1 ATTRIBUTES, body = b (float[2] a, float[2] e) => (float[2] o, float[2] p) {
        h = Mul(e, e)
        o = Add(a, h)
        p = Identity(o)
        m = Greater(h, a)
        k = Cast<to = 16>(h)
        some = NonZero(h)
    }>(s, x)
}"""


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("opset", [9, 13, 21])
@pytest.mark.parametrize("turns", [1, 3])
@pytest.mark.parametrize("attributes", ["", ", scan_output_axes = [1], scan_output_directions = [1]"])
def test_a_scan_gives_one_for_each_turn(runtime: str, opset: int, turns: int, attributes: str) -> None:
    if attributes and runtime == "reference":
        attributes = ", scan_output_axes = [0], scan_output_directions = [0]"  # it has no others
    x = np.arange(2 * turns, dtype=np.float32).reshape(turns, 2)
    text = SCAN.replace("ATTRIBUTES", attributes)
    if "[1]" in attributes:
        text = text.replace("float[t,2] z", "float[2,t] z")
    names = ["h", "m", "e", "o", *(["k"] if opset >= 13 else [])]
    if opset < 13:
        text = text.replace("k = Cast<to = 16>(h)", "")
    got = found(model(text, opset=opset), names, runtime, s=f32(0, 0), x=x)
    same(got["h"], list(x * x))
    same(got["e"], list(x))
    same(got["o"], list(np.cumsum(x * x, axis=0)))
    same(got["m"], list(x * x > np.cumsum(x * x, axis=0) - x * x))
    if opset >= 13:
        same(got["k"], list((x * x).astype(ml_dtypes.bfloat16)))


def test_what_a_scan_cannot_stack_is_refused() -> None:
    exposed = expose(model(SCAN.replace("ATTRIBUTES", "")), ["some", "h"])
    assert list(exposed.outlets) == ["h"]
    assert "between iterations" in exposed.refused["some"]


SCAN_IN_LOOP = """(int64 n, bool c, float[2] s, float[3,2] x) => (float[2] y) {
    y = Loop(n, c, s) <body = l (int64 i, bool d, float[2] v) => (bool e, float[2] w) {
        w, z = Scan<num_scan_inputs = 1, body = b (float[2] a, float[2] r) => (float[2] o, float[2] p) {
            o = Add(a, r)
            p = Identity(o)
        }>(v, x)
        e = Identity(d)
    }>
}"""


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_scan_in_a_loop(runtime: str) -> None:
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    feeds = {"n": np.array(2), "c": np.array(True), "s": f32(1, 1), "x": x}
    got = found(model(SCAN_IN_LOOP), ["o", "r", "z"], runtime, **feeds)
    sums = 1 + np.cumsum(np.concatenate([x, x]), axis=0)
    same(got["o"], list(sums))
    same(got["r"], [*x, *x])
    same(got["z"], [sums[:3], sums[3:]])


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_dtypes_that_lists_do_not_hold_are_carried_in_wider_ones(runtime: str) -> None:
    text = """(int64 n, bool c, float[3] x) => (float[3] y) {
        y = Loop(n, c, x) <body = b (int64 i, bool d, float[3] v) => (bool e, float[3] w) {
            h = Cast<to = 16>(v)
            w = Cast<to = 1>(h)
            e = Identity(d)
        }>
    }"""
    x = f32(1.001, -0.0, np.inf)
    got = found(model(text), ["h"], runtime, n=np.array(2), c=np.array(True), x=x)
    same(got["h"], [x.astype(ml_dtypes.bfloat16)] * 2)
    assert np.signbit(got["h"][0].astype(np.float32)).tolist() == [False, True, False]


def test_a_sequence_in_a_body_is_refused_with_a_reason() -> None:
    text = LOOP.replace("e = Identity(d)", "e = Identity(d)\n s = SequenceConstruct(w, w)")
    exposed = expose(model(text), ["s", "w"])
    assert list(exposed.outlets) == ["w"]
    assert "sequence" in exposed.refused["s"]


FUNCTIONS = """
<ir_version: 10, opset_import: ["": 21, "own": 1]>
g (float[2] x) => (float[2] y) {
    t = Neg(x)
    a = own.Twice(t)
    y = own.Twice(a)
}
<domain: "own", opset_import: ["": 21]>
Twice (v) => (r) {
    t = Add(v, v)
    r = Identity(t)
}
"""


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_tensors_in_functions(runtime: str) -> None:
    got = found(from_text(FUNCTIONS), ["t", "a/t", "y/t", "a", "y"], runtime, x=f32(1, 2))
    same(got["t"], f32(-1, -2))
    same(got["a/t"], f32(-2, -4))
    same(got["a"], f32(-2, -4))
    same(got["y/t"], f32(-4, -8))
    same(got["y"], f32(-4, -8))


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_one_name_in_two_branches(runtime: str) -> None:
    text = """(bool c, float[2] x) => (float[2] y) {
        y = If(c) <
            then_branch = p () => (float[2] r) { t = Neg(x)
                r = Identity(t) },
            else_branch = q () => (float[2] r) { t = Add(x, x)
                r = Identity(t) }
        >
    }"""
    source = model(text)
    got = found(source, ["t"], runtime, c=np.array(True), x=f32(1, 2))
    assert list(got) == ["y/then_branch/t", "y/else_branch/t"]
    same(got["y/then_branch/t"], [f32(-1, -2)])
    same(got["y/else_branch/t"], [])
    assert list(expose(source, ["y/else_branch/t"]).outlets) == ["y/else_branch/t"]


def test_a_name_that_nothing_has(refused: Refused) -> None:
    with refused("model/unknown-tensor") as refusal:
        expose(model(LOOP), ["gros"])
    assert "grows" in refusal.problem.fix


def test_a_choice_is_made_among_what_nodes_compute() -> None:
    exposed = expose(model(PLAIN), lambda place: True)
    assert list(exposed.outlets) == ["a", "i", "b", "h", "s", "o", "y"]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_sizes_in_the_place_of_tensors(runtime: str) -> None:
    exposed = Exposing(model(LOOP)).expose(["grows", "w", "y"], sizes=True)
    got = values(exposed, runtime, {"n": np.array(3), "c": np.array(True), "x": f32(1, 2)})
    same(got["grows"], [np.array([1]), np.array([2]), np.array([3])])
    same(got["w"], [np.array([2])] * 3)
    same(got["y"], np.array([2]))
