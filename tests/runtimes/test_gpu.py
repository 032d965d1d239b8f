"""What only a machine with a CUDA device can show: `pytest -m gpu`, with `onnxruntime-gpu` installed."""

from __future__ import annotations

import numpy as np
import pytest

from onnxsmith.model.files.text import from_text
from onnxsmith.runtimes import base
from onnxsmith.runtimes.base import Options

TEXT = """
<ir_version: 10, opset_import: ["": 20]>
g (float[n,64] x) => (float[n,64] y) { a = Exp(x)\n y = Softmax(a) }
"""


@pytest.mark.gpu
def test_the_cuda_provider_is_the_one_that_runs_and_agrees_with_the_cpu() -> None:
    x = np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32)
    runtime = base.get("onnxruntime")
    with runtime.prepare(from_text(TEXT), Options(provider="cuda")) as gpu, runtime.prepare(from_text(TEXT)) as cpu:
        assert gpu.provider == "CUDAExecutionProvider"
        assert gpu.nodes_by_provider.get("CUDAExecutionProvider")  # type: ignore[attr-defined]
        np.testing.assert_allclose(gpu.run({"x": x})["y"], cpu.run({"x": x})["y"], rtol=1e-4, atol=1e-6)
