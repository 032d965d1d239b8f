"""float8: pairs before the operands of products, weights rounded from the given ones, and the same numbers in every
runtime and at every optimisation level."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.precision.methods import float8
from tests.conftest import Refused

FREELY: dict[str, Any] = {"allow_slower": True, "measure_time": False}
DRAW = np.random.default_rng(0)
WEIGHTS = {
    "first": DRAW.normal(size=(32, 3, 3, 3)).astype(np.float32) / 5,
    "up": DRAW.normal(size=(32, 24, 2, 2)).astype(np.float32) / 6,
    "turned": DRAW.normal(size=(64, 24)).astype(np.float32) / 4,
    "last": DRAW.normal(size=(64, 4)).astype(np.float32) * np.array([1, 10, 0.1, 0.01], np.float32),
}


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network with each product, a Relu before a product, and a product of two activations."""
    path = tmp_path_factory.mktemp("float8") / "net.onnx"
    with onnxsmith.build(path, opset=17) as g:
        x = g.input("x", "float32", ["n", 3, 8, 8])
        hidden = g.Relu(g.Conv(x, g.weight("first", WEIGHTS["first"]), pads=[1, 1, 1, 1]))
        wide = g.ConvTranspose(hidden, g.weight("up", WEIGHTS["up"]), strides=[2, 2])
        flat = g.Flatten(g.GlobalAveragePool(g.Relu(wide)))
        scores = g.Relu(g.Gemm(flat, g.weight("turned", WEIGHTS["turned"]), transB=1))
        last = g.MatMul(scores, g.weight("last", WEIGHTS["last"]))
        g.output("y", g.MatMul(g.Unsqueeze(last, [2]), g.Unsqueeze(last, [1])))
    return path


def samples() -> list[tuple[dict[str, Any], Any]]:
    draw = np.random.default_rng(1)
    return [({"x": draw.normal(size=(1, 3, 8, 8)).astype(np.float32)}, None) for _ in range(60)]


def test_the_form(net: Path, tmp_path: Path) -> None:
    out = tmp_path / "small.onnx"
    result = onnxsmith.quantize(net, out, to="float8", data=samples(), target="tensorrt-11", budget=0.5, **FREELY)
    assert result.ok, result.report.problems
    graph = onnxsmith.load(out).graph
    pairs = [node for node in graph if node.op_type in ("QuantizeLinear", "DequantizeLinear")]
    assert pairs
    assert all(len(node.inputs) == 2 for node in pairs), "a zero point would let onnxruntime drop a Relu"
    stored = {node.outputs[0]: node for node in pairs if node.inputs[0].const_value is not None}
    read = {node.op_type: node.inputs[1] for node in graph if node.op_type in ("Conv", "ConvTranspose", "Gemm")}
    for op_type, name, axis in (("Conv", "first", 0), ("ConvTranspose", "up", 1), ("Gemm", "turned", 0)):
        node = stored[read[op_type]]
        values, scale = (value.const_value.numpy() for value in node.inputs)
        assert values.dtype == ml_dtypes.float8_e4m3fn
        assert np.abs(values.astype(np.float32)).max() == 448
        steps = scale.reshape([-1 if at == axis else 1 for at in range(values.ndim)])
        apart = np.abs(values.astype(np.float32) * steps - WEIGHTS[name])
        assert (apart <= np.abs(WEIGHTS[name]) / 16 + steps * 2**-10).all(), "4 significant bits, or the smallest step"


@pytest.mark.parametrize("side", ["onnxruntime:disable", "openvino", "reference"])
def test_every_runtime_computes_the_same(side: str, net: Path, tmp_path: Path) -> None:
    out = tmp_path / "small.onnx"
    assert onnxsmith.quantize(net, out, to="float8", data=samples(), budget=0.5, **FREELY).ok
    given = [{"x": np.concatenate([one["x"] for one, _ in samples()[:8]])}]
    first = onnxsmith.run(out, given[0]).outputs["y"]
    runtime, _, level = side.partition(":")
    other = onnxsmith.run(f"{out}@{side}" if level else out, given[0], runtime=None if level else runtime).outputs["y"]
    # A sum in another order can move an activation by one step of float8, a sixteenth of it, and few of 64 do so here.
    assert np.abs(first - other).max() < 0.02 * np.abs(first).max()


def test_wrong_scales_are_found(net: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(float8, "_STEPS", 1.27)  # scales of a hundredth: nearly all values are clipped
    out = tmp_path / "small.onnx"
    result = onnxsmith.quantize(net, out, to="float8", data=samples(), budget=0.05, **FREELY)
    assert result.report.verdict is not Verdict.DONE
    assert not out.exists()


def test_without_data_it_is_refused(net: Path, tmp_path: Path, refused: Refused) -> None:
    with refused("quantize/no-data"):
        onnxsmith.quantize(net, tmp_path / "small.onnx", to="float8")


def test_a_runtime_without_float8_is_refused(net: Path, tmp_path: Path, refused: Refused) -> None:
    with refused("quantize/target-form"):
        onnxsmith.quantize(net, tmp_path / "small.onnx", to="float8", data=samples(), target="web")


def test_a_tensor_without_a_finite_range_stays(tmp_path: Path) -> None:
    with onnxsmith.build(tmp_path / "net.onnx", opset=17) as g:
        x = g.input("x", "float32", ["n", 16])
        hidden = g.Relu(g.MatMul(x, g.weight("a", DRAW.normal(size=(16, 16)).astype(np.float32))))
        endless = g.Where(g.Greater(hidden, 2.0), np.float32(-np.inf), hidden)
        g.output("y", g.MatMul(hidden, g.weight("b", DRAW.normal(size=(16, 16)).astype(np.float32))))
        g.output("z", g.ReduceMax(g.MatMul(g.Exp(endless), g.weight("c", np.eye(16, dtype=np.float32))), axes=[1]))
    rows = [({"x": np.random.default_rng(at).normal(size=(4, 16)).astype(np.float32)}, None) for at in range(60)]
    result = onnxsmith.quantize(
        tmp_path / "net.onnx",
        tmp_path / "o.onnx",
        to="float8",
        data=rows,
        budget=0.5,
        allow_slower=True,
        measure_time=False,
    )
    assert result.ok, result.report.problems
    assert isinstance(result.model, ir.Model)
