"""Calibration: shapes may vary from sample to sample, and memory grows neither with samples nor with tensors."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.report.parts.quantisation import Quantisation
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.precision import ranges
from onnxsmith.precision.calibration_data import Samples
from onnxsmith.precision.data.base import Sample
from onnxsmith.precision.ranges import Channels
from onnxsmith.runtimes.base import get

WIDTH = 64
LENGTHS = (3, 7, 1, 12)
WEIGHT = np.random.default_rng(0).standard_normal((WIDTH, WIDTH)).astype(np.float32)


def model() -> ir.Model:
    """Two products over a sequence of any length."""
    made = from_text(
        f"""<ir_version: 10, opset_import: ["": 18]>
        g (float[n,t,{WIDTH}] x, float[{WIDTH},{WIDTH}] w) => (float[n,t,{WIDTH}] y) {{
            a = MatMul(x, w) b = Relu(a) y = MatMul(b, w)
        }}"""
    )
    value = made.graph.inputs[1]
    value.const_value = ir.tensor(WEIGHT, name="w")
    made.graph.inputs.remove(value)
    made.graph.initializers["w"] = value
    return inferred(made)[0]


def sequence(length: int) -> Any:
    return np.random.default_rng(length).standard_normal((1, length, WIDTH)).astype(np.float32)


def test_lengths_may_vary() -> None:
    feeds = [sequence(length) for length in LENGTHS]
    data = Samples(lambda: (Sample({"x": one}) for one in feeds), "test")
    found = ranges.measured(model(), get("onnxruntime"), data)
    products = np.concatenate([(one @ WEIGHT).reshape(-1, WIDTH) for one in feeds])
    assert found.samples == len(LENGTHS)
    assert found.by_name["a"].low == pytest.approx(products.min(), rel=1e-5)
    assert found.by_name["a"].high == pytest.approx(products.max(), rel=1e-5)
    peaks = ranges.channel_peaks(model(), get("onnxruntime"), data, {"a": Channels(WIDTH, 0)})
    np.testing.assert_allclose(peaks["a"], np.abs(products).max(axis=0), rtol=1e-5)
    narrow = ranges.clipped(model(), found, ["a"], get("onnxruntime"), data)
    assert narrow.by_name["a"].high in [pytest.approx(found.by_name["a"].high * share) for share in ranges.SHARES]


def test_a_model_is_quantised_on_data_whose_lengths_vary(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    save(model(), path)
    data = [{"x": sequence(1 + index % 9)} for index in range(40)]
    result = onnxsmith.quantize(path, to="int8", data=data, budget="1%", measure_time=False)
    assert result.report.verdict is Verdict.DONE
    assert next(part for part in result.report.parts if isinstance(part, Quantisation)).calibrated == 10


@pytest.mark.parametrize("count", [8, 64])
def test_samples_are_read_one_by_one(count: int) -> None:
    """However many samples there are, two are alive at most: the one in use and the one before."""
    alive: set[int] = set()
    most = 0

    def samples() -> Iterator[Sample]:
        nonlocal most
        for index in range(count):
            array = sequence(1 + index % 5)
            alive.add(index)
            weakref.finalize(array, alive.discard, index)
            most = max(most, len(alive))
            yield Sample({"x": array})

    data = Samples(samples, "test")
    found = ranges.measured(model(), get("onnxruntime"), data)
    ranges.clipped(model(), found, ["a", "b"], get("onnxruntime"), data)
    ranges.channel_peaks(model(), get("onnxruntime"), data, {"a": Channels(WIDTH, 0)})
    assert found.samples == count
    assert most <= 2


def test_a_run_holds_few_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred tensors of 8 MB do not fit the limit together; the model alone needs two of them."""
    count, size = 100, 2**21
    body = " ".join(f"a{index + 1} = Neg(a{index})" for index in range(count))
    long = inferred(
        from_text(
            f'<ir_version: 10, opset_import: ["": 18]> g (float[{size}] a0) => (float[{size}] a{count}) {{ {body} }}'
        )
    )[0]
    data = Samples(lambda: iter([Sample({"a0": np.arange(size, dtype=np.float32)})]), "test")
    monkeypatch.setenv("ONNXSMITH_MEMORY_LIMIT", "600MB")
    found = ranges.measured(long, get("onnxruntime"), data)
    assert len(found.by_name) == count + 1
    assert found.by_name["a0"].high == size - 1
    names = [f"a{index}" for index in range(1, count + 1)]
    ranges.channel_peaks(long, get("onnxruntime"), data, dict.fromkeys(names, Channels(64, 0)))
    ranges.clipped(long, found, names[:20], get("onnxruntime"), data)
