"""A few bytes of a model that ask for terabytes, or for a loop without an end, are a problem with a way out."""

from __future__ import annotations

import re
import resource

import numpy as np
import pytest

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.files.text import from_text
from onnxsmith.runtimes import _call_limits
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Options
from tests.conftest import Refused

HEAD = '<ir_version: 10, opset_import: ["": 21]> g '
N = 1_000_000_000
FLOATS = {"x": np.ones(1, np.float32)}
HOSTILE = {
    "ConstantOfShape": f"""(float[1] x) => (float y) <int64[1] s = {{{N}}}> {{
        c = ConstantOfShape(s) a = Add(c, x) y = ReduceMax<keepdims = 0>(a) }}""",
    "Expand": f"(float[1] x) => (float[n] y) <int64[1] s = {{{N}}}> {{ y = Expand(x, s) }}",
    "Tile": f"(float[1] x) => (float[n] y) <int64[1] s = {{{N}}}> {{ y = Tile(x, s) }}",
    "Range": f"""(float[1] x) => (int64[n] y) <int64 a = {{0}}, int64 b = {{{N}}}, int64 c = {{1}}> {{
        y = Range(a, b, c) }}""",
    "Pad": f"(float[1] x) => (float[n] y) <int64[2] s = {{0,{N}}}> {{ y = Pad(x, s) }}",
    "Resize": """(float[1] x) => (float[1,1,h,w] y) <int64[4] one = {1,1,1,1}, int64[4] s = {1,1,40000,40000}> {
        r = Reshape(x, one) y = Resize(r, , , s) }""",
    "OneHot": """(float[1] x) => (float[a,n] y) <int64[1] s = {100}, int64 d = {20000000}, float[2] v = {0,1}> {
        i = ConstantOfShape<value = int64[1] {3}>(s) y = OneHot(i, d, v) }""",
    "Einsum": """(float[1] x) => (float[a,b,c] y) <int64[1] s = {2000}> {
        e = Expand(x, s) y = Einsum<equation = "a,b,c->abc">(e, e, e) }""",
    "doublings": "(float[1] x) => (float[n] y) { t0 = Identity(x)\n"
    + "".join(f"t{k + 1} = Concat<axis = 0>(t{k}, t{k})\n" for k in range(40))
    + "y = Identity(t40) }",
    "doublings in a Loop": """(float[1] x) => (float[n] y) <bool c = {1}, int64 m = {60}> {
        y = Loop(m, c, x) <body = b (int64 i, bool more, float[k] s) => (bool again, float[l] n) {
            again = Identity(more)
            n = Concat<axis = 0>(s, s)
        }> }""",
    "a sequence": """(float[1] x) => (int64 y) <bool c = {1}, int64 m = {100000}, int64[1] s = {1000000}> {
        big = Expand(x, s)
        e = SequenceEmpty()
        q = Loop(m, c, e) <body = b (int64 i, bool more, seq(float) s) => (bool again, seq(float) n) {
            again = Identity(more)
            copy = Abs(big)
            n = SequenceInsert(s, copy)
        }>
        y = SequenceLength(q) }""",
}
ENDLESS = from_text(
    HEAD
    + """(float[2] x) => (float[2] y) <bool c = {1}> {
    y = Loop(, c, x) <body = b (int64 i, bool more, float[2] s) => (bool again, float[2] n) {
        again = Identity(more)
        n = Tanh(s)
    }>
}"""
)


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("name", ["onnxruntime", "openvino", "reference"])
def test_what_asks_for_gigabytes_is_refused(name: str, kind: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    options = Options(memory_limit=2**29, optimization="disable")
    with (
        pytest.raises(OnnxsmithError) as caught,
        runtimes.get(name).prepare(from_text(HEAD + HOSTILE[kind]), options) as session,
    ):
        session.run(FLOATS)
    said = caught.value.problem
    if name == "openvino" and said.id != "runtime/memory":
        assert said.id in ("runtime/failed", "runtime/unknown-operator", "runtime/dtype-unsupported"), "its own refusal"
    else:
        assert said.id == "runtime/memory"
        assert "537 MB" in said.what
        assert re.search(rf"{_call_limits.MEMORY}=\d+GB|use a machine with more memory", said.fix)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**18, "KB: the caller stays small"


@pytest.mark.parametrize("name", ["onnxruntime", "openvino", "reference"])
def test_a_model_is_run_again_after_it_asked_for_too_much(name: str, refused: Refused) -> None:
    text = HEAD + "(float[1] x, int64[1] n) => (float[m] y) { y = Expand(x, n) }"
    with runtimes.get(name).prepare(from_text(text), Options(memory_limit=2**29)) as session:
        for _ in range(2):
            with refused("runtime/memory"):
                session.run({**FLOATS, "n": np.array([N])})
            assert np.asarray(session.run({**FLOATS, "n": np.array([3])})["y"]).tolist() == [1, 1, 1]


def test_what_earlier_inputs_took_does_not_count(refused: Refused) -> None:
    """An arena keeps what it took: after a few large inputs no other large one fits beside."""
    text = HEAD + "(float[n] x) => (float[n] y) { a = Abs(x) b = Neg(a) y = Relu(b) }"
    options = Options(memory_limit=2**29, optimization="disable")
    with runtimes.get("onnxruntime").prepare(from_text(text), options) as session:
        for size in (2_000_000, 3_000_000, 5_000_000, 8_000_000, 13_000_000, 20_000_000):
            assert np.asarray(session.run({"x": np.ones(size, np.float32)})["y"]).shape == (size,)


def test_an_answer_that_is_too_large_is_not_read(refused: Refused) -> None:
    text = HEAD + "(float[1] x, int64[1] n) => (float[m] y) { y = Expand(x, n) }"
    with (
        runtimes.get("onnxruntime").prepare(from_text(text), Options(memory_limit=2**30)) as session,
        refused("runtime/memory") as refusal,
    ):
        session.run({**FLOATS, "n": np.array([80_000_000])})
    assert "the answer has 320 MB" in refusal.problem.why


def test_a_loop_without_an_end_is_stopped(monkeypatch: pytest.MonkeyPatch, refused: Refused) -> None:
    monkeypatch.setenv(_call_limits.TIME, "1")
    with runtimes.get("onnxruntime").prepare(ENDLESS) as session, refused("runtime/timeout") as refusal:
        session.run({"x": np.ones(2, np.float32)})
    assert refusal.problem.fix.startswith(f"allow more time: {_call_limits.TIME}=10 ")


def test_the_limits_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (_call_limits.MEMORY, _call_limits.TIME):
        monkeypatch.delenv(name, raising=False)
    assert _call_limits.memory(None, model=10) == 2**32
    assert _call_limits.memory(None, model=2**30) == 2**33
    assert _call_limits.memory(None, model=0, feeds=2**27) == 2**33
    assert _call_limits.memory(5, model=2**30) == 5
    assert _call_limits.seconds(None, model=0) == 60
    assert _call_limits.seconds(None, model=10**9) == 160
    assert _call_limits.seconds(0, model=10**9) == 0


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("500MB", 5 * 10**8), ("16GB", 16 * 10**9), ("1.5g", 15 * 10**8), ("2 GiB", 2**31), ("7", 7)],
)
def test_a_size_in_the_environment(monkeypatch: pytest.MonkeyPatch, text: str, size: int) -> None:
    monkeypatch.setenv(_call_limits.MEMORY, text)
    assert _call_limits.memory(None, model=2**40) == size


@pytest.mark.parametrize("name", [_call_limits.MEMORY, _call_limits.TIME])
@pytest.mark.parametrize("text", ["much", "-1", "nan", "1e999"])
def test_a_limit_that_is_none(monkeypatch: pytest.MonkeyPatch, refused: Refused, name: str, text: str) -> None:
    monkeypatch.setenv(name, text)
    with refused("runtime/bad-limit"):
        _call_limits.memory(None, model=0)
        _call_limits.seconds(None, model=0)


@pytest.mark.parametrize(
    "said",
    ["std::bad_alloc", "DecodeError: Error parsing message with type 'onnx.ModelProto': Arena alloc failed"],
)
def test_a_message_of_a_shortage(said: str) -> None:
    assert _call_limits.is_shortage(said)
