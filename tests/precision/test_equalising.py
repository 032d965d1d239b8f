"""Equalised channels: the model gives the same bits, and 8 bits hold what outliers would erase."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.report.parts.quantisation import Quantisation
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.result import Result
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.precision import ranges
from onnxsmith.precision.calibration_data import Samples
from onnxsmith.precision.channel_equalisation import equalised, pairs, proven, scaled
from onnxsmith.precision.data.base import Sample
from onnxsmith.precision.methods import int8
from onnxsmith.precision.ranges import Channels
from onnxsmith.runtimes.base import get

HEAD = '<ir_version: 10, opset_import: ["": 18]>'
TOKENS, WIDTH, CLASSES = 8, 64, 16


def made(text: str, *, seed: int = 0, **given: Any) -> ir.Model:
    """The model of a text; inputs but the first are random initializers, or the given ones. Nodes are called after
    their first output."""
    model = from_text(text)
    draw = np.random.default_rng(seed)
    for value in list(model.graph.inputs[1:]):
        shape = tuple(int(dim) for dim in value.shape or ())
        array = given.get(value.name or "", draw.standard_normal(shape).astype(np.float32))
        value.const_value = ir.tensor(array, name=value.name)
        model.graph.inputs.remove(value)
        model.graph.initializers[value.name or ""] = value
    for node in model.graph:
        node.name = node.outputs[0].name
        for value in node.outputs:
            value.dtype = ir.DataType.FLOAT
    return model


def of(*feeds: dict[str, Any]) -> Samples:
    return Samples(lambda: iter([Sample(one) for one in feeds]), "test")


def random(*shape: int, seed: int = 7) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


FORMS = {
    "norm, matmul": (
        f"""{HEAD} g (float[n,3,8] x, float[8] s, float[8] b, float[8,4] w, float[8,6] v)
        => (float[n,3,4] y, float[n,3,6] z) {{ a = LayerNormalization(x, s, b) y = MatMul(a, w) z = MatMul(a, v) }}""",
        (2, 3, 8),
        {"a": Channels(8, 0)},
    ),
    "scale and shift, gemm": (
        f"""{HEAD} g (float[n,8] x, float[8] s, float[1] b, float[4,8] w)
        => (float[n,4] y) {{ m = Mul(x, s) a = Add(m, b) y = Gemm<transB = 1>(a, w) }}""",
        (2, 8),
        {"a": Channels(8, 0), "m": None},
    ),
    "gemm, relu, gemm": (
        f"""{HEAD} g (float[n,8] x, float[8,6] w, float[6] b, float[6,4] v)
        => (float[n,4] y) {{ h = Gemm(x, w, b) a = Relu(h) y = Gemm(a, v) }}""",
        (2, 8),
        {"a": Channels(6, 0)},
    ),
    "conv, norm, relu, pool, conv": (
        f"""{HEAD} g (float[n,2,8,8] x, float[6,2,3,3] w, float[6] s, float[6] b, float[6] m, float[6] q,
        float[4,6,3,3] v) => (float[n,4,2,2] y) {{ h = Conv(x, w) k = BatchNormalization(h, s, b, m, q) r = Relu(k)
        a = MaxPool<kernel_shape = [3, 3]>(r) y = Conv(a, v) }}""",
        (1, 2, 8, 8),
        {"a": Channels(6, 2)},
    ),
    "conv, depthwise, grouped": (
        f"""{HEAD} g (float[n,4,6,6] x, float[8,1,3,3] w, float[8] b, float[8,1,1,1] d, float[6,4,1,1] v)
        => (float[n,6,4,4] y) {{ a = Conv<group = 4>(x, w, b) c = LeakyRelu(a) e = Conv<group = 8>(c, d)
        y = Conv<group = 2>(e, v) }}""",
        (1, 4, 6, 6),
        {"c": Channels(8, 2), "e": Channels(8, 2)},
    ),
    "conv, transposed conv": (
        f"""{HEAD} g (float[n,4,6,6] x, float[8,4,3,3] w, float[8,3,2,2] v)
        => (float[n,3,5,5] y) {{ a = Conv(x, w) y = ConvTranspose(a, v) }}""",
        (1, 4, 6, 6),
        {"a": Channels(8, 2)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_the_outputs_are_the_same_bits(form: str) -> None:
    text, shape, expected = FORMS[form]
    model = made(text)
    if "q" in model.graph.initializers:  # a variance
        held = model.graph.initializers["q"]
        held.const_value = ir.tensor(np.abs(held.const_value.numpy()) + 0.5, name="q")  # type: ignore[union-attr]
    copy = cloned(model)
    found = pairs(copy)
    assert {one.tensor: one.channels for one in found} == {name: one for name, one in expected.items() if one}
    draw = np.random.default_rng(3)
    peaks = {one.tensor: np.exp2(draw.integers(-6, 7, one.channels.count)) for one in found}
    assert scaled(copy, found, peaks)
    x = {"x": random(*shape)}
    with get("onnxruntime").prepare(model) as one, get("onnxruntime").prepare(copy) as other:
        before, after = one.run(x), other.run(x)
    for name, value in before.items():
        assert np.asarray(value).tobytes() == np.asarray(after[name]).tobytes()
    changed = ranges.channel_peaks(copy, get("onnxruntime"), of(x), {one.tensor: one.channels for one in found})
    plain = ranges.channel_peaks(model, get("onnxruntime"), of(x), {one.tensor: one.channels for one in found})
    assert all(not np.allclose(changed[name], plain[name]) for name in changed)


REFUSED = {
    "1, a residual Add": "a = LayerNormalization(x, s, b) h = MatMul(a, w) y = Add(h, a)",
    "2, an output": "a = LayerNormalization(x, s, b) y = MatMul(a, w)",
    "3, a writer without a constant": "a = Neg(x) y = MatMul(a, w)",
    "3, a writer that others read": "m = Mul(x, s) a = Relu(m) h = MatMul(a, w) y = Add(h, m)",
    "4, an activation that is not homogeneous": "m = Mul(x, s) a = Sigmoid(m) y = MatMul(a, w)",
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_forms_are_left_alone(case: str) -> None:
    outputs = "float[n,8] y, float[n,8] a" if "an output" in case else "float[n,8] y"
    model = made(f"{HEAD} g (float[n,8] x, float[8] s, float[8] b, float[8,8] w) => ({outputs}) {{ {REFUSED[case]} }}")
    assert pairs(model) == []


def test_a_branch_that_reads_the_tensor_is_seen() -> None:
    model = made(
        f"""{HEAD} g (float[n,8] x, float[8] s, float[8] b, float[8,8] w) => (float[n,8] y) {{
            a = LayerNormalization(x, s, b) c = ReduceMax<keepdims = 0>(x) h = MatMul(a, w) t = IsNaN(c)
            k = If (t) <then_branch = t () => (p) {{ p = Relu(a) }}, else_branch = e () => (q) {{ q = Neg(a) }}>
            y = Add(h, k)
        }}"""
    )
    assert pairs(model) == []


def test_peaks_are_those_of_the_channels() -> None:
    text, shape, _ = FORMS["conv, transposed conv"]
    model = made(text)
    feeds = [{"x": random(*shape, seed=seed)} for seed in range(3)]
    asked = {"a": Channels(8, 2)}
    model.graph.outputs.append(next(node for node in model.graph if node.name == "a").outputs[0])
    with get("onnxruntime").prepare(model) as session:
        values = np.concatenate([np.asarray(session.run(one)["a"]) for one in feeds])
    found = ranges.channel_peaks(model, get("onnxruntime"), of(*feeds), asked)
    np.testing.assert_allclose(found["a"], np.abs(values).max(axis=(0, 2, 3)), rtol=1e-6)


def test_the_proof_refuses_a_wrong_factor() -> None:
    text, shape, _ = FORMS["gemm, relu, gemm"]
    model = made(text)
    copy = cloned(model)
    scaled(copy, pairs(copy), {"a": np.array([1, 1, 1, 1, 1, 64.0])})
    samples = of({"x": random(*shape)})
    assert proven(model, copy, samples).equal
    name, value = next((name, one) for name, one in copy.graph.initializers.items() if name.startswith("v"))
    wrong = np.array(value.const_value.numpy())  # type: ignore[union-attr]
    wrong[2] *= 2
    value.const_value = ir.tensor(wrong, name=name)
    assert not proven(model, copy, samples).equal


def test_a_model_that_differs_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    text, shape, _ = FORMS["gemm, relu, gemm"]
    model = made(text)
    monkeypatch.setattr("onnxsmith.precision.channel_equalisation._MOST", 0)
    samples = of({"x": random(*shape)})
    assert "no channel" in equalised(model, get("onnxruntime"), samples).why_not
    monkeypatch.undo()

    class Unequal:
        equal = False

    monkeypatch.setattr("onnxsmith.precision.channel_equalisation.proven", lambda *_: Unequal)
    assert "differs" in equalised(model, get("onnxruntime"), samples).why_not


def transformer(outlier: float) -> ir.Model:
    """A block with attention of one head, and a head for classes; three channels of each LayerNorm are `outlier` times
    larger, and their readers' weights as much smaller: it computes the same for any `outlier`."""
    ones = np.ones(WIDTH, np.float32)
    ones[[3, 17, 40]] = outlier
    small = WIDTH**-0.5 / ones[:, None]
    given: dict[str, Any] = {"s": ones, "t": ones}
    for seed, (name, columns) in enumerate((("q", WIDTH), ("k", WIDTH), ("v", WIDTH), ("f", 2 * WIDTH))):
        given[name] = random(WIDTH, columns, seed=seed) * small
    given |= {"o": random(WIDTH, WIDTH, seed=8) * WIDTH**-0.5, "g": random(2 * WIDTH, CLASSES, seed=9) * 0.1}
    return made(
        f"""{HEAD} g (float[n,{TOKENS},{WIDTH}] x, float[{WIDTH}] s, float[{WIDTH}] t, float[{WIDTH},{WIDTH}] q,
        float[{WIDTH},{WIDTH}] k, float[{WIDTH},{WIDTH}] v, float[{WIDTH},{WIDTH}] o, float[{WIDTH},{2 * WIDTH}] f,
        float[{2 * WIDTH},{CLASSES}] g) => (float[n,{TOKENS},{CLASSES}] y) {{
            a = LayerNormalization(x, s)
            query = MatMul(a, q) key = MatMul(a, k) value = MatMul(a, v)
            turned = Transpose<perm = [0, 2, 1]>(key) scores = MatMul(query, turned) part = Softmax(scores)
            mixed = MatMul(part, value) out = MatMul(mixed, o) r = Add(x, out)
            b = LayerNormalization(r, t) h = MatMul(b, f) e = Sigmoid(h) swish = Mul(h, e) y = MatMul(swish, g)
        }}""",
        **given,
    )


def quantized(path: Path) -> Result:
    """Quantised so that no layer may stay in float32: one scheme has to do."""
    data = [{"x": random(1, TOKENS, WIDTH, seed=seed)} for seed in range(40)]
    return onnxsmith.quantize(path, to="int8", data=data, metric="cosine", budget=0.002, measure_time=False)


def test_outliers_are_moved_into_the_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.onnx"
    save(transformer(50.0), path)
    plain = int8.WHOLE, int8.CLIPPED, int8.ALONE
    with monkeypatch.context() as before:
        before.setattr(int8.Int8, "schemes", lambda *_: plain)
        told = part(quantized(path))
    assert [one.meets for one in told.curve[:3]] == [False, False, False]
    result = quantized(path)
    after = part(result)
    assert result.report.verdict is Verdict.DONE
    assert not after.kept
    assert after.after is not None
    assert after.after > max(one.score for one in told.curve[:3])
    assert any("the channels of 2 activations were equalised: a → " in note for note in after.notes), after.notes


def part(result: Result) -> Quantisation:
    return next(one for one in result.report.parts if isinstance(one, Quantisation))
