"""One file run in two ways: rounding that grows on its way through a graph is told from an operation that errs."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.comparison.outputs.sides import side
from onnxsmith.comparison.outputs.single_input_layers import only_grown
from onnxsmith.graph.files.text import from_text
from onnxsmith.verification.arbiter import Arbiter
from onnxsmith.verification.explore import Run
from onnxsmith.verification.inputs.generate import Feed

HEAD = '<ir_version: 10, opset_import: ["": 20]> g (float[n,256] x) => (float[n,1] y) <int64[1] a = {1}> '
CANCELS = HEAD + "{ s = Mul(x, x) t = ReduceMean(s, a) m = ReduceMean(x, a) q = Mul(m, m) y = Sub(t, q) }"
WRONG = CANCELS.replace("y = Sub(t, q)", "f = Constant<value_float = 1.001>() o = Mul(q, f) y = Sub(t, o)")
FAR = Feed("far", {}, {"x": np.random.default_rng(0).standard_normal((3, 256)).astype(np.float32) + np.float32(30)})


def sides(tmp_path: Path, first: str, second: str) -> bool:
    files = [tmp_path / "a.onnx", tmp_path / "b.onnx"]
    for file, text in zip(files, (first, second), strict=True):
        ir.save(from_text(text), file)
    with ExitStack() as stack:
        a = side(f"{files[0]}@onnxruntime", None, stack, in_pieces=False)
        b = side(f"{files[1]}@reference", None, stack, in_pieces=False)
        stack.callback(a.close)
        stack.callback(b.close)
        return only_grown(a, b, FAR)


def test_rounding_that_a_cancellation_makes_much_of_is_no_error(tmp_path: Path) -> None:
    assert sides(tmp_path, CANCELS, CANCELS)


def test_an_operation_that_errs_is_one(tmp_path: Path) -> None:
    assert not sides(tmp_path, CANCELS, WRONG)


def test_outputs_that_agree_say_nothing(tmp_path: Path) -> None:
    plain = HEAD + "{ y = ReduceMax(x, a) }"
    assert not sides(tmp_path, plain, plain)


@pytest.mark.parametrize("grown", [True, False])
def test_an_input_on_which_rounding_grows_decides_nothing(grown: bool) -> None:
    asked: list[str] = []

    def look(feed: Feed) -> bool:
        asked.append(feed.label)
        return grown

    arbiter = Arbiter(lambda: None, lambda: None, look)
    runs = [Run(Feed(f"{number}", {}, {}), {"y": np.ones(1, np.float32)}) for number in range(20)]
    said = [arbiter.same(run, "y", np.ones(1, np.float32)) for run in runs for _ in range(2)]
    assert bool(said[0]) is grown
    assert len(asked) < len(runs), "each input takes many runs: a few are looked at, each once"
    assert not said[-1]


def test_files_are_compared_without_torch(tmp_path: Path) -> None:
    for name, text in (("a.onnx", CANCELS), ("b.onnx", WRONG)):
        ir.save(from_text(text), tmp_path / name)
    code = (
        "import sys, onnxsmith\n"
        "report = onnxsmith.compare('a.onnx', 'b.onnx', per_layer=True).report\n"
        "print(report.verdict.value, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["different", "False"]
