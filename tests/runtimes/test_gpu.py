"""The CUDA and TensorRT providers of onnxruntime on a machine with a GPU: `make gpu`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.environment import Environment
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli.commands.explain import Doctor
from onnxsmith.cli.commands.run import Run
from onnxsmith.graph.files.text import from_text
from onnxsmith.runtimes import base
from onnxsmith.runtimes.base import Options

TEXT = """
<ir_version: 10, opset_import: ["": 20]>
g (float[n,64] x) => (float[n,64] y) { a = Exp(x)\n y = Softmax(a) }
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    onnxsmith.save(from_text(TEXT), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


@pytest.mark.gpu("onnxruntime")
def test_the_cuda_provider_is_the_one_that_runs_and_agrees_with_the_cpu() -> None:
    x = np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32)
    runtime = base.get("onnxruntime")
    with runtime.prepare(from_text(TEXT), Options(provider="cuda")) as gpu, runtime.prepare(from_text(TEXT)) as cpu:
        assert gpu.provider == "CUDAExecutionProvider"
        assert gpu.nodes_by_provider.get("CUDAExecutionProvider")  # type: ignore[attr-defined]
        np.testing.assert_allclose(gpu.run({"x": x})["y"], cpu.run({"x": x})["y"], rtol=1e-4, atol=1e-6)


@pytest.mark.gpu("onnxruntime")
def test_the_command_line_runs_on_cuda(path: Path) -> None:
    report = Run(str(path), random=True, dim=("n=2",), provider="cuda").run()
    assert report.verdict is Verdict.DONE
    assert "CUDAExecutionProvider" in report.to_json()


@pytest.mark.gpu("onnxruntime")
def test_a_model_on_cuda_is_compared_with_itself_on_the_cpu(path: Path) -> None:
    assert onnxsmith.compare(path, f"{path}@onnxruntime:cuda").report.verdict is Verdict.DONE
    assert onnxsmith.compare(path, f"{path}@onnxruntime:cuda", per_layer=True).report.verdict is Verdict.DONE


@pytest.mark.gpu("onnxruntime")
def test_doctor_sees_that_cuda_starts() -> None:
    report = Doctor().run()
    starts = {provider.name: provider.starts for provider in report.part(Environment).providers}
    assert starts["CUDAExecutionProvider"] is True
    assert not [problem for problem in report.problems if problem.id == "doctor/gpu-hidden"]


@pytest.mark.gpu("onnxruntime")
def test_tensorrt_runs_or_is_refused(path: Path) -> None:
    """Without TensorRT's library onnxruntime would silently run on CUDA or on the CPU."""
    try:
        with base.get("onnxruntime").prepare(path, Options(provider="tensorrt")) as session:
            outcome = session.provider
    except OnnxsmithError as error:
        outcome = error.problem.id
    assert outcome in ("TensorrtExecutionProvider", "runtime/provider-fallback", "runtime/provider-missing")
