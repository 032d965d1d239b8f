"""Runtimes are named as `compare` names them, and each with its options has a process of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from onnxsmith.comparison.reduction.checks import failure_checks
from onnxsmith.comparison.reduction.runtime_workers import Bench, identity
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from tests.conftest import Refused

ABS = '<ir_version: 10, opset_import: ["": 20]> g (float[2] x) => (float[2] y) { y = Abs(x) }'
X = {"x": np.array([-1, 2], np.float32)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save(from_text(ABS), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_other_options_do_not_end_a_session(path: Path, refused: Refused) -> None:
    with Bench(60) as bench:
        first = bench.prepare("onnxruntime:disable_all", path)
        second = bench.prepare("onnxruntime", path)
        for session in (first, second, first):
            assert session.run(X)["y"].tolist() == [1, 2]
        bench.prepare("onnxruntime:disable", path)
        with refused("runtime/closed"):
            first.run(X)
        assert second.run(X)["y"].tolist() == [1, 2]


def test_a_limit_of_its_own_needs_no_process_of_its_own(path: Path) -> None:
    with Bench(60) as bench:
        bench.prepare("reference", path, time_limit=5).run(X)
        bench.tracer()
        bench.prepare("reference", path).run(X)
        assert len(bench._preparers) == 1


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("onnxruntime", "onnxruntime:cpu", True),
        ("onnxruntime:disable", "onnxruntime:disable_all", True),
        ("onnxruntime:disable:threads=1", "onnxruntime:threads=1:disable", True),
        ("onnxruntime", "onnxruntime:disable", False),
        ("openvino", "onnxruntime", False),
    ],
)
def test_texts_that_name_the_same(one: str, other: str, same: bool) -> None:
    assert (identity(one) == identity(other)) is same


@pytest.mark.parametrize(
    ("runtime", "line", "expression"),
    [
        ("reference", "", 'ReferenceEvaluator("model.onnx")'),
        ("onnxruntime", "", 'providers=["CPUExecutionProvider"]'),
        ("onnxruntime:cuda", "", 'providers=["CUDAExecutionProvider", "CPUExecutionProvider"]'),
        ("onnxruntime:disable", ".graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL", ", options_"),
        ("onnxruntime:threads=2", ".intra_op_num_threads = 2", ", options_"),
        ("openvino", '"INFERENCE_PRECISION_HINT": "f32"', 'compile_model("model.onnx", "CPU", options_'),
        ("openvino:gpu:threads=2", '"INFERENCE_NUM_THREADS": "2"', '"GPU"'),
    ],
)
def test_a_program_says_how_it_runs(runtime: str, line: str, expression: str) -> None:
    opening = "\n".join(failure_checks.script_opening(runtime, "reference"))
    assert line in opening
    assert expression in failure_checks.script_call(runtime)
    assert "onnxsmith" not in opening + failure_checks.script_call(runtime)


def test_other_runtimes_are_reached_through_onnxsmith() -> None:
    assert "from onnxsmith.runtimes.base import get" in failure_checks.script_opening("fake", "reference")
    assert failure_checks.script_call("fake").startswith('list(get("fake")')
