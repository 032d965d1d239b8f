"""Weights alone in 8 bits: what is stored is near to what was there, and every graph that reads it computes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onnxsmith
from onnxsmith.base.report.parts.measurements import Ratio
from onnxsmith.base.report.parts.quantisation import Quantisation
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.spelling import typed
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.precision import final, method_trial, weight_storage
from onnxsmith.precision.damage import relative_error
from onnxsmith.precision.keep_list import read as read_keep
from onnxsmith.precision.weight_storage import holders, quantised, store
from onnxsmith.runtimes.base import Options, get

HEAD = '<ir_version: 10, opset_import: ["": 18]>'


def random(*shape: int, seed: int = 7, scale: float = 1.0) -> Any:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def made(text: str, **given: Any) -> ir.Model:
    """The model of a text, whose inputs of these names are initializers; nodes are called after their first output."""
    model = from_text(text)
    for seed, value in enumerate(list(model.graph.inputs)):
        if value.name in given:
            array = given[value.name]
            if array is None:
                array = random(*(int(dim) for dim in value.shape or ()), seed=seed)
            value.const_value = ir.tensor(array, name=value.name)
            model.graph.inputs.remove(value)
            model.graph.initializers[value.name] = value
    for node in walk.nodes(model.graph):
        node.name = node.outputs[0].name
    return model


BRANCH = """c = ReduceMax<keepdims = 0>(x) t = IsNaN(c)
    y = If (t) <then_branch = t () => (p) { p = Identity(x) }, else_branch = e () => (q) { q = MatMul(x, w) }>"""
LOOP = """trips = Constant<value_int = 2>() go = Constant<value = bool {1}>()
    y = Loop (trips, go, x)
        <body = b (int64 i, bool c, float[n,40] h) => (c2, k) { c2 = Identity(c) k = MatMul(h, w) }>"""
FORMS = {
    "MatMul": ("float[n,40] x, float[40,40] w", "y = MatMul(x, w)", (2, 40), "y"),
    "Gemm": ("float[n,40] x, float[40,40] w, float[40] b", "y = Gemm(x, w, b)", (2, 40), "y"),
    "Gemm, transposed": ("float[n,40] x, float[40,40] w", "y = Gemm<transB = 1, alpha = 2.0>(x, w)", (2, 40), "y"),
    "Conv": ("float[n,16,6,6] x, float[16,16,3,3] w", "y = Conv(x, w)", (1, 16, 6, 6), "y"),
    "depthwise": ("float[n,128,6,6] x, float[128,1,3,3] w", "y = Conv<group = 128>(x, w)", (1, 128, 6, 6), "y"),
    "ConvTranspose": ("float[n,16,6,6] x, float[16,8,3,3] w", "y = ConvTranspose(x, w)", (1, 16, 6, 6), "y"),
    "LSTM": ("float[3,n,16] x, float[2,64,16] w, float[2,64,16] r",
             "y, h, c = LSTM<hidden_size = 16, direction = \"bidirectional\">(x, w, r)", (3, 1, 16), "y"),
    "GRU": ("float[3,n,16] x, float[1,96,16] w, float[1,96,32] r", "y, h = GRU<hidden_size = 32>(x, w, r)",
            (3, 1, 16), "y"),
    "table": ("float[n,24,64] x, float[1,32,64] w, int64[1] s, int64[1] e",
              "part = Slice(w, s, e, e) y = Add(x, part)", (1, 24, 64), "part"),
    "Gather": ("int64[n] x, float[100,16] w", "y = Gather(w, x)", (), "y"),
    "branch": ("float[n,40] x, float[40,40] w", BRANCH, (2, 40), "q"),
    "loop": ("float[n,40] x, float[40,40] w", LOOP, (2, 40), "k"),
}  # fmt: skip


@pytest.mark.parametrize(("by_cast", "for_kernels"), [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_near_to_what_it_was(form: str, by_cast: bool, for_kernels: bool) -> None:
    inputs, nodes, shape, reader = FORMS[form]
    names = {name: None for name in ("w", "r", "b") if f" {name}" in inputs}
    ends = {"s": np.array([0]), "e": np.array([24])} if "int64[1] s" in inputs else {}
    if ends:  # along axis 1, in steps of 1
        ends |= {"a": np.array([1])}
        inputs, nodes = inputs.replace("int64[1] e", "int64[1] e, int64[1] a"), nodes.replace("e, e)", "e, a)")
    model = made(f"{HEAD} g ({inputs}) => (y) {{ {nodes} }}", **names, **ends)
    assert [node.name for node, _ in holders(model)] == [reader]
    copy = store(cloned(model), {reader}, by_cast=by_cast, for_kernels=for_kernels)
    stored = [value.const_value for value in walk.initializers(copy)]
    assert all(one.dtype != ir.DataType.FLOAT or one.size < 1024 for one in stored if one is not None)
    ops = walk.histogram(copy)
    is_matrix = form in ("MatMul", "Gemm", "branch", "loop")
    assert ("DequantizeLinear" in ops) == (not by_cast or (for_kernels and is_matrix))
    x = {"x": np.arange(10) if form == "Gather" else random(*shape)}
    for level in ("all", "disable"):
        with (
            get("onnxruntime").prepare(model, Options(optimization=level)) as one,
            get("onnxruntime").prepare(copy, Options(optimization=level)) as other,
        ):
            assert 0 < relative_error(one.run(x)["y"], other.run(x)["y"]) < 0.02


REFUSED = {
    "1, few elements": ("float[n,40] x, float[40,20] w", "y = MatMul(x, w)", {}),
    "1, a graph input": ("float[n,40] x, float[40,40] w", "y = MatMul(x, w)", {}),
    "2, an infinity": ("float[n,1024] x, float[1024] w", "y = Add(x, w)", {"w": np.full(1024, -np.inf, np.float32)}),
    "3, a comparison": ("float[n,1024] x, float[1024] w", "z = Less(x, w) y = Cast<to = 1>(z)", {}),
    "3, a comparison of what was moved": (
        "float[n,1024] x, float[1,1024] w", "v = Squeeze(w) z = Less(x, v) y = Cast<to = 1>(z)", {},
    ),
    "3, a divisor": ("float[n,1024] x, float[1024] w", "y = Div(x, w)", {}),
    "3, a sum and a comparison": (
        "float[n,1024] x, float[1024] w", "z = Less(x, w) a = Cast<to = 1>(z) y = Add(a, w)", {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_stored(case: str) -> None:
    inputs, nodes, given = REFUSED[case]
    names: dict[str, Any] = {} if "input" in case else {"w": given.get("w")}
    assert list(holders(made(f"{HEAD} g ({inputs}) => (y) {{ {nodes} }}", **names))) == []


@settings(max_examples=50)
@given(st.integers(0, 10**6), st.sampled_from([None, 0, 1]), st.floats(1e-20, 1e20))
def test_no_element_is_off_by_more_than_half_a_step(seed: int, axis: int | None, scale: float) -> None:
    array = random(6, 9, seed=seed, scale=scale)
    array[2] = 0
    narrow, scales = quantised(array, axis)
    assert narrow.dtype == np.int8
    assert scales.shape == (() if axis is None else (array.shape[axis],))
    shaped = scales if axis is None else np.expand_dims(scales, 1 - axis)
    assert (np.abs(narrow * shaped - array) <= shaped * (0.5 + 1e-3)).all()
    assert not narrow[2].any()


def told(result: Any) -> Quantisation:
    return next(one for one in result.report.parts if isinstance(one, Quantisation))


@pytest.mark.parametrize("large", [slice(0, 32), slice(0, 64, 2)])
def test_layers_that_8_bits_of_activations_ruin_keep_their_weights_narrow(tmp_path: Path, large: slice) -> None:
    """The input of the second product has elements of a thousand and of one, and the weights of the large ones are
    small: what 8 bits erase decides. The large ones lie in a block of their own, or between the others."""
    first = random(64, 64, seed=1, scale=0.125)
    first[:, large] *= 1000
    second = random(64, 64, seed=2, scale=0.125)
    second[large] /= 1e6
    model = made(
        f"{HEAD} g (float[n,64] x, float[64,64] a, float[64,64] b) => (float[n,64] y) "
        "{ h = MatMul(x, a) s = Tanh(h) k = Mul(h, s) y = MatMul(k, b) }",
        a=first,
        b=second,
    )
    path, out, keep = tmp_path / "model.onnx", tmp_path / "small.onnx", tmp_path / "keep.txt"
    save(model, path)
    data = [{"x": random(1, 64, seed=seed)} for seed in range(40)]
    result = onnxsmith.quantize(
        path, out, to="int8", data=data, metric="cosine", budget=0.003, measure_time=False, keep_list=keep
    )
    part = told(result)
    assert result.report.verdict is Verdict.DONE, result.report.problems
    assert part.weights
    assert not part.kept
    assert " weights in int8" in result.report.headline
    assert part.bytes_after is not None
    assert part.bytes_after < 0.35 * part.bytes_before
    assert ("Cast" in walk.histogram(load(out))) == (large.step == 2)
    lines = read_keep(keep)
    names = [line for line in lines if line.startswith("weights-alone: ")]
    assert names == sorted(f"weights-alone: {layer.name}" for layer in part.weights)
    again = told(
        onnxsmith.quantize(
            path, to="int8", data=data, metric="cosine", budget=2.0, write_unsure=True, measure_time=False, keep=lines
        )
    )
    assert {layer.name: layer.weights for layer in again.weights} == dict.fromkeys(
        (layer.name for layer in part.weights), "the layer is on the given keep-list"
    )


def test_a_table_that_8_bits_ruin_stays_and_the_rest_does_not(tmp_path: Path) -> None:
    """The table holds one element a row that is a million times larger than the others, which a mean subtracts."""
    table = random(16, 64, seed=3)
    table[:, 0] = 1e4
    model = made(
        f"""{HEAD} g (float[n,16,64] x, float[16,64] table, float[64] drop, float[64,64] w) => (float[n,16,64] y) {{
            a = Add(x, table) b = Mul(a, drop) y = MatMul(b, w)
        }}""",
        table=table,
        drop=np.array([0] + [1] * 63, np.float32),
        w=random(64, 64, seed=4, scale=0.1),
    )
    path = tmp_path / "model.onnx"
    save(model, path)
    data = [{"x": random(1, 16, 64, seed=seed)} for seed in range(20)]
    result = onnxsmith.quantize(path, to="int8", data=data, metric="cosine", budget=0.001, measure_time=False)
    part = told(result)
    assert result.report.verdict is Verdict.DONE, result.report.problems
    assert [layer.name for layer in part.kept] == ["a"]
    assert any(not layer.kept for layer in part.layers)


def test_recurrent_layers_and_branches_are_stored(tmp_path: Path) -> None:
    model = made(
        f"""{HEAD} g (float[5,1,32] x, bool c, float[1,128,32] w, float[1,128,32] r, float[32,32] m)
        => (float[5,1,1,32] z) {{
            y, h, k = LSTM<hidden_size = 32>(x, w, r)
            z = If (c) <then_branch = t () => (p) {{ p = Identity(y) }},
                        else_branch = e () => (q) {{ q = MatMul(y, m) }}>
        }}""",
        w=None,
        r=None,
        m=None,
    )
    path, out = tmp_path / "model.onnx", tmp_path / "small.onnx"
    save(model, path)
    data = [{"x": random(5, 1, 32, seed=seed), "c": np.array(seed % 2 == 0)} for seed in range(20)]
    result = onnxsmith.quantize(path, out, to="int8", data=data, metric="cosine", budget=0.005, measure_time=False)
    assert result.report.verdict is Verdict.DONE, result.report.problems
    assert {(layer.op, layer.weights) for layer in told(result).layers} == {
        ("LSTM", "LSTM computes in float32"),
        ("MatMul", "the layer is in a branch or a loop body"),
    }
    assert path.stat().st_size > 2.9 * out.stat().st_size


RECURRENT = {
    "GRU": "y, h = GRU<hidden_size = 32>(x, w, r)",
    "LSTM": "y, h, c = LSTM<hidden_size = 32>(x, w, r)",
    "RNN": "y, h = RNN<hidden_size = 32>(x, w, r)",
    "moved": "v = Identity(w) y, h = GRU<hidden_size = 32>(x, v, r)",
}
GATES = {"GRU": 3, "LSTM": 4, "RNN": 1, "moved": 3}


def recurrent(name: str) -> ir.Model:
    """A recurrent layer, and a product in int8: beside one, OpenVINO keeps the marks of quantised weights."""
    rows = 32 * GATES[name]
    return made(
        f"""{HEAD} g (float[5,n,32] x, float[1,{rows},32] w, float[1,{rows},32] r, float[32,32] m, int64[1] axis)
        => (float[5,n,32] z) {{ {RECURRENT[name]} s = Squeeze(y, axis) z = MatMul(s, m) }}""",
        w=random(1, rows, 32, seed=1, scale=0.2),
        r=random(1, rows, 32, seed=2, scale=0.2),
        m=random(32, 32, seed=3, scale=0.2),
        axis=np.ones(1, np.int64),
    )


def quantised_recurrent(folder: Path, name: str, **options: Any) -> Any:
    path = folder / "model.onnx"
    save(recurrent(name), path)
    data = [{"x": random(5, 1, 32, seed=seed)} for seed in range(20)]
    given = {"to": "int8", "data": data, "metric": "cosine", "budget": "3%", "measure_time": False, **options}
    return onnxsmith.quantize(path, folder / "small.onnx", **given)


@pytest.mark.parametrize("name", RECURRENT)
def test_openvino_compiles_recurrent_layers_beside_int8(tmp_path: Path, name: str) -> None:
    result = quantised_recurrent(tmp_path, name, target="openvino")
    assert result.report.verdict is Verdict.DONE, result.report.problems
    assert not told(result).kept
    assert "QuantizeLinear" in walk.histogram(load(tmp_path / "small.onnx"))
    feeds = {"x": random(5, 3, 32, seed=99)}
    outputs = []
    for runtime in ("openvino", "onnxruntime"):
        with get(runtime).prepare(tmp_path / "small.onnx") as session:
            outputs.append(np.asarray(session.run(feeds)["z"]))
    assert relative_error(*outputs) < 0.05


def test_a_layer_that_the_target_refuses_stays_with_its_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one Cast OpenVINO refuses the GRU."""
    monkeypatch.setattr(weight_storage, "_is_recurrent", lambda _: False)
    result = quantised_recurrent(tmp_path, "GRU", target="openvino")
    assert result.report.verdict is Verdict.DONE, result.report.problems
    (kept,) = told(result).kept
    assert kept.op == "GRU"
    assert "openvino" in kept.kept
    assert "expects Constant for port" in kept.kept
    assert [layer.op for layer in told(result).layers if not layer.kept] == ["MatMul"]
    assert told(result).also["on openvino"] != ""
    without = quantised_recurrent(tmp_path, "GRU")
    assert without.report.verdict is Verdict.DONE
    assert "on openvino: refused: GRUSequence" in without.report.headline


def test_a_target_that_refuses_every_form_is_told_in_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weight_storage, "_is_recurrent", lambda _: False)
    monkeypatch.setattr(method_trial, "culprits", lambda *_: frozenset())
    result = quantised_recurrent(tmp_path, "GRU", target="openvino")
    (found,) = result.report.problems
    assert found.id == "quantize/target-refuses"
    assert "expects Constant for port" in found.why
    assert 'keep that layer in float32: keep=["LAYER"]' in found.fix
    with typed():
        command = quantised_recurrent(tmp_path, "GRU", target="openvino").report.problems[0]
    assert "`echo LAYER > wide.txt`, then add --keep wide.txt" in command.fix
    (tmp_path / "wide.txt").write_text("y\n", encoding="utf-8")
    kept = quantised_recurrent(tmp_path, "GRU", target="openvino", keep=read_keep(tmp_path / "wide.txt"))
    assert kept.report.verdict is Verdict.DONE, kept.report.problems


def test_tensorrt_takes_weights_behind_dequantizelinear(tmp_path: Path) -> None:
    model = made(
        f"{HEAD} g (float[5,n,32] x, float[1,128,32] w, float[1,128,32] r) => (y) "
        "{ y, h, k = LSTM<hidden_size = 32>(x, w, r) }",
        w=None,
        r=None,
    )
    path, out = tmp_path / "model.onnx", tmp_path / "small.onnx"
    save(model, path)
    data = [{"x": random(5, 1, 32, seed=seed)} for seed in range(20)]
    given = {"to": "int8", "data": data, "metric": "cosine", "budget": 0.005, "measure_time": False}
    assert onnxsmith.quantize(path, out, target="tensorrt-10", **given).report.verdict is Verdict.DONE
    assert {"DequantizeLinear", "LSTM"} == set(walk.histogram(load(out)))


def test_where_narrow_activations_are_slower_the_weights_alone_are_narrow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = made(
        f"{HEAD} g (float[n,64] x, float[64,64] a, float[64,64] b) => (float[n,64] y) "
        "{ h = MatMul(x, a) r = Relu(h) y = MatMul(r, b) }",
        a=None,
        b=None,
    )
    path, out = tmp_path / "model.onnx", tmp_path / "small.onnx"
    save(model, path)

    def time_ratio(_: Path, new: Path, *__: object) -> tuple[Ratio, str]:
        ratio = 2.0 if "QuantizeLinear" in walk.histogram(load(new)) else 1.0
        return Ratio("new", ratio, ratio, ratio, ratio != 1, "", True, ""), "onnxruntime"

    monkeypatch.setattr(final, "time_ratio", time_ratio)
    data = [{"x": random(1, 64, seed=seed)} for seed in range(20)]
    result = onnxsmith.quantize(path, out, to="int8", data=data, metric="cosine", budget="2%", evaluations=1)
    assert result.report.verdict is Verdict.DONE, result.report.problems
    assert len(told(result).weights) == len(told(result).layers)
    assert any("narrow activations make the file slower" in note for note in told(result).notes)
    reasons = {layer.weights for layer in told(result).layers}
    assert reasons == {"narrow activations make the file slower here"}
    both = onnxsmith.quantize(path, to="auto", data=data, metric="cosine", budget="2%", evaluations=1)
    assert not any("budget" in layer.weights for layer in told(both).layers if told(both).to == "int8")
    assert "QuantizeLinear" not in walk.histogram(load(out))
