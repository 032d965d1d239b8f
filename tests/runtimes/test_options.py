"""A runtime is named with its options, and has those that it says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from onnxsmith import compare, run
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.runtimes.base import Options, get, parse
from tests.conftest import Refused

TEXT = '<ir_version: 10, opset_import: ["": 21]>\ng (float[n] x) => (float[n] y) { a = Abs(x)\n y = Abs(a) }'


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("onnxruntime", Options()),
        ("reference", Options()),
        ("openvino:cpu", Options()),
        ("openvino:gpu:threads=2", Options(provider="gpu", threads=2)),
        ("onnxruntime:cuda", Options(provider="cuda")),
        ("onnxruntime:disable", Options(optimization="disable")),
        ("onnxruntime:disable_all", Options(optimization="disable")),
        ("onnxruntime:enable_basic:threads=1", Options(optimization="basic", threads=1)),
    ],
)
def test_options_are_read(text: str, options: Options) -> None:
    runtime, found = parse(text)
    assert found == options
    assert type(runtime) is type(get(text.split(":")[0]))


@pytest.mark.parametrize(
    ("text", "problem_id", "named"),
    [
        ("onnxruntime:fast", "runtime/unknown-option", "disable"),
        ("onnxruntime:threads", "runtime/unknown-option", "threads=NUMBER"),
        ("onnxruntime:threads=-1", "runtime/unknown-option", "threads=NUMBER"),
        ("onnxruntime:", "runtime/unknown-option", "cuda"),
        ("openvino:disable", "runtime/unknown-option", "npu"),
        ("reference:cuda", "runtime/unknown-option", "cpu"),
        ("tensorflow:cpu", "runtime/unknown", "onnxruntime"),
    ],
)
def test_options_that_there_are_not(text: str, problem_id: str, named: str, refused: Refused) -> None:
    for ask in (parse, get):
        with refused(problem_id) as refusal:
            ask(text)
        assert named in refusal.problem.fix


def test_what_a_caller_asks_for_counts_where_the_name_says_nothing() -> None:
    seen: list[Options | None] = []
    runtime = get("onnxruntime:basic")
    inner = runtime._runtime  # type: ignore[attr-defined]
    inner.prepare = lambda source, options: seen.append(options)
    runtime.prepare(from_text(TEXT))
    runtime.prepare(from_text(TEXT), Options(threads=3, optimization="disable"))
    assert seen == [Options(optimization="basic"), Options(optimization="disable", threads=3)]
    assert runtime.newest_opset() == get("onnxruntime").newest_opset()


def test_sides_and_runs_take_options(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    save(from_text(TEXT), path)
    result = compare(path, f"{path}@onnxruntime:disable_all")
    assert result.report.verdict is Verdict.DONE
    assert "onnxruntime:disable_all" in result.report.headline
    assert compare(f"{path}@openvino", f"{path}@reference").report.verdict is Verdict.DONE
    x = np.array([-1], np.float32)
    assert run(path, {"x": x}, runtime="onnxruntime:threads=1").outputs["y"].tolist() == [1]
