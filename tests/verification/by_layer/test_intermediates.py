"""Every tensor of a model has its value, in as few runs as the budget allows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.base.problem import problem
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.runtimes.base import Feeds, Options, Outputs, Runtime, Session, Source, get
from onnxsmith.verification.by_layer.intermediates import Intermediates, intermediates
from onnxsmith.verification.rounding import counted
from onnxsmith.verification.value_comparison import difference
from tests.conftest import Refused

RUNTIMES = ["onnxruntime", "reference"]
CHAIN = """(float[n,4] x) => (float[n,4] y) {
    a = Neg(x)
    b = Add(a, a)
    c = Abs(b)
    d = Cast<to = 7>(c)
    y = Add(c, x)
}"""
LOOP = """(int64 n, bool c, float[2] x) => (float[2] y) {
    y = Loop(n, c, x) <body = b (int64 i, bool d, float[2] v) => (bool e, float[2] w) {
        w = Add(v, v)
        e = Identity(d)
    }>
}"""


def model(body: str, *, opset: int = 21) -> ir.Model:
    return from_text(f'<ir_version: 10, opset_import: ["": {opset}]>\ng {body}')


def every(_: object) -> bool:
    return True


def asked(source: Any, names: Any, feeds: Feeds, *, runtime: str = "onnxruntime", budget: int = 2**30) -> Intermediates:
    return intermediates(source, get(runtime), Options(), names, feeds, budget)


X = np.arange(8, dtype=np.float32).reshape(2, 4)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_all_in_one_run(runtime: str) -> None:
    run = asked(model(CHAIN), every, {"x": X}, runtime=runtime)
    found = dict(run)
    assert list(found) == ["a", "b", "c", "d", "y"]
    np.testing.assert_array_equal(found["b"], -2 * X)
    np.testing.assert_array_equal(found["d"], 2 * X)
    assert found["d"].dtype == np.int64
    np.testing.assert_array_equal(run.outputs["y"], found["y"])
    assert (run.runs, run.moved, run.refused, run.alone) == (1, {}, {}, [])


@pytest.mark.parametrize(("budget", "runs", "alone"), [(32, 5, ["d"]), (64, 4, []), (100, 2, []), (10_000, 1, [])])
def test_no_more_is_held_than_the_budget(budget: int, runs: int, alone: list[str]) -> None:
    """Floats take 32 bytes, the integers 64."""
    run = asked(model(CHAIN), every, {"x": X}, budget=budget)
    found = dict(run)
    np.testing.assert_array_equal(found["c"], 2 * X)
    assert (run.runs, run.alone) == (runs, alone)


@pytest.mark.parametrize("budget", [8, 20, 1000])
def test_what_is_in_a_body_is_measured_first(budget: int) -> None:
    """`w` takes 8 bytes three times, `e` 1, `y` 8."""
    feeds = {"n": np.array(3), "c": np.array(True), "x": np.array([1, 2], np.float32)}
    run = asked(model(LOOP), every, feeds, budget=budget)
    found = dict(run)
    assert [item.tolist() for item in found["w"]] == [[2, 4], [4, 8], [8, 16]]
    assert [item.tolist() for item in found["e"]] == [True] * 3
    assert (run.runs, run.alone) == {8: (3, ["w"]), 20: (3, ["w"]), 1000: (1, [])}[budget]


def test_inputs_and_weights_need_no_run() -> None:
    source = model("(float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }")
    run = asked(source, ["x", "w"], {"x": np.ones(2, np.float32)})
    assert {name: value.tolist() for name, value in run} == {"x": [1, 1], "w": [1, 2]}
    assert run.runs == 0


def test_unknown_names(refused: Refused) -> None:
    with refused("model/unknown-tensor"):
        asked(model(CHAIN), ["a", "nothing"], {"x": X})


class Moving(Runtime):
    """A runtime whose output moves when more is asked for, and which fails on some tensors."""

    title = "for tests"

    def __init__(self, *fails: str) -> None:
        self.fails, self.prepared = set(fails), 0

    def missing(self) -> None:
        return None

    def prepare(self, source: Source, options: Options | None = None) -> Session:
        self.prepared += 1
        session = get("reference").prepare(source, options)
        inner, fails, more = session.run, self.fails, len(session.signature.outputs) > 1

        def run(feeds: Feeds) -> Outputs:
            outputs = inner(feeds)
            if fails & outputs.keys():
                raise problem("runtime/failed", "no kernel")
            return {name: value + more if name == "y" else value for name, value in outputs.items()}  # type: ignore

        session.run = run  # type: ignore[method-assign]
        return session


def test_a_tensor_of_unknown_dtype_is_measured() -> None:
    """Nobody knows what this operator of another domain gives before it runs; it counts as 8 bytes an element."""
    text = """<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]>
    g (float[2,2] x) => (float[2,2] y) {
        a = com.microsoft.Inverse(x)
        b = com.microsoft.Inverse(a)
        y = Neg(x)
    }"""
    run = asked(from_text(text), every, {"x": 2 * np.eye(2, dtype=np.float32)}, budget=32)
    assert run.outlets["a"].dtype == "undefined"
    assert {name: value.tolist() for name, value in run}["b"] == [[2, 0], [0, 2]]
    assert (run.runs, run.refused) == (3, {})


def test_an_output_that_moves_is_told() -> None:
    run = intermediates(model(CHAIN), Moving(), None, ["a"], {"x": X})
    assert run.moved == {}
    assert list(dict(run)) == ["a"]
    assert run.moved["y"].worst_abs == 1


def test_a_tensor_that_makes_the_runtime_fail_is_refused_alone() -> None:
    run = intermediates(model(CHAIN), Moving("c"), None, ["a", "b", "c", "d"], {"x": X})
    assert list(dict(run)) == ["a", "b", "d"]
    assert list(run.outlets) == ["a", "b", "d"]
    assert "no kernel" in run.refused["c"]


def test_failures_are_not_looked_into_for_ever() -> None:
    text = "\n".join(f"a{i} = Neg(x)" for i in range(200))
    runtime = Moving(*(f"a{i}" for i in range(200)))
    run = intermediates(
        model(f"(float[2] x) => (float[2] y) {{ {text}\n y = Abs(x) }}"), runtime, None, every, {"x": X[0, :2]}
    )
    assert list(dict(run)) == []
    assert len(run.refused) == 201
    assert runtime.prepared < 100


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_external_data_is_not_written_again(runtime: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = np.arange(4096, dtype=np.float32)
    source = model("(float[4096] x, float[4096] w) => (float[4096] y) { a = Add(x, w)\n y = Neg(a) }")
    source.graph.inputs[1].const_value = ir.tensor(weights, name="w")
    source.graph.register_initializer(source.graph.inputs[1])
    save(source, tmp_path / "m.onnx", external_data=True)
    monkeypatch.setattr("onnx_ir.external_data.convert_tensors_to_external", None)
    for given in (tmp_path / "m.onnx", load(tmp_path / "m.onnx")):
        found = dict(asked(given, ["a", "w"], {"x": np.ones(4096, np.float32)}, runtime=runtime))
        np.testing.assert_array_equal(found["a"], weights + 1)
        np.testing.assert_array_equal(found["w"], weights)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["m.onnx", "m.onnx.data"]


def test_large_weights_are_written_once_for_all_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    source = model(
        "(float[1,3000] x, float[3000,3000] w) => (float[1,3000] y) { a = MatMul(x, w)\n b = Neg(a)\n y = Abs(b) }"
    )
    source.graph.inputs[1].const_value = ir.tensor(np.eye(3000, dtype=np.float32), name="w")
    source.graph.register_initializer(source.graph.inputs[1])
    source.graph.inputs.pop(1)
    written: list[str] = []
    real = ir.external_data.convert_tensors_to_external

    def spy(tensors: Any, folder: Any, name: str) -> Any:
        written.append(name)
        return real(tensors, folder, name)

    monkeypatch.setattr("onnx_ir.external_data.convert_tensors_to_external", spy)
    x = np.arange(3000, dtype=np.float32)[None]
    run = asked(source, every, {"x": x}, budget=12_000)
    np.testing.assert_array_equal(dict(run)["b"], -x)
    assert run.runs == 3
    assert len(written) == 2, "for the run as it is, and for the exposed ones"


def test_a_convolutional_and_a_recurrent_model() -> None:
    rng = np.random.default_rng(0)
    text = """(float[1,3,8,8] x) => (float[1,t,5] y) {
        c = Conv<kernel_shape = [3, 3]>(x, k)
        r = Relu(c)
        s = Constant<value = int64[3] {1, -1, 4}>()
        v = Reshape(r, s)
        q = Transpose<perm = [1, 0, 2]>(v)
        l, h = LSTM<hidden_size = 5>(q, w, u)
        axes = Constant<value = int64[1] {1}>()
        z = Squeeze(l, axes)
        y = Transpose<perm = [1, 0, 2]>(z)
    }"""
    shapes = {"k": (4, 3, 3, 3), "w": (1, 20, 4), "u": (1, 20, 5)}
    inputs = "".join(f", float[{','.join(map(str, shape))}] {name}" for name, shape in shapes.items())
    source = model(text.replace("x)", f"x{inputs})", 1))
    feeds = {"x": rng.normal(size=(1, 3, 8, 8)).astype(np.float32)}
    feeds |= {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    ours, theirs = (dict(asked(source, every, feeds, runtime=name)) for name in RUNTIMES)
    assert list(ours) == ["c", "r", "v", "q", "l", "h", "z", "y"]
    for name, value in ours.items():
        assert not difference(value, theirs[name], counted(200, 8, 2.0**-24).tolerance).reason
    assert (ours["r"] >= 0).all()
