"""Calls of local functions that leave outputs out: they are edited, simplified, inlined, and written as they were."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import onnxsmith

MODEL = """<ir_version: 10, opset_import: ["": 21, "my": 1]>
g (float[n,4] x) => (float[n,4] y, float[n,4] z) { a, "" = my.Outer(x) y, "" = my.Inner(a) "", z = my.Inner(a) }
<domain: "my", opset_import: ["": 21]> Inner (a) => (o, p) { o = Relu(a) p = Neg(a) }
<domain: "my", opset_import: ["": 21, "my": 1]> Outer (a) => (o, q) {
    "", t = my.Inner(a)
    o, "" = my.Inner(t)
    q = Abs(o)
}"""
X = {"x": np.array([[-2, -0.5, 1, 3]], np.float32)}
STEPS: dict[str, Callable[[Any], Any]] = {
    "strip": lambda m: m.strip(),
    "opset": lambda m: m.opset(22),
    "set-dim": lambda m: m.set_dim("n=1"),
    "expose": lambda m: m.expose("a"),
    "rename": lambda m: m.rename("a", "b"),
    "inline": lambda m: m.inline(),
    "inline one function": lambda m: m.inline("my::Inner"),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    message = onnx.parser.parse_model(MODEL)
    onnx.checker.check_model(message, full_check=True)
    onnx.save(message, tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def computes_the_same(path: Path) -> bool:
    found = [onnxsmith.run(path, X, runtime=name).outputs for name in ("onnxruntime", "reference")]
    return all(one["y"].tolist() == [[2, 0.5, 0, 0]] and one["z"].tolist() == [[-2, -0.5, 0, 0]] for one in found)


@pytest.mark.parametrize("name", STEPS)
def test_edited(name: str, file: Path, tmp_path: Path) -> None:
    with onnxsmith.edit(file, tmp_path / "new.onnx") as m:
        STEPS[name](m)
    assert m.result.ok
    written = onnx.load(tmp_path / "new.onnx")
    onnx.checker.check_model(written, full_check=True)
    if "inline" not in name:
        assert [len(node.output) for node in written.graph.node] == [2, 2, 2]
        assert [len(node.output) for node in written.functions[1].node] == [2, 2, 1]
    assert computes_the_same(tmp_path / "new.onnx")


@pytest.mark.parametrize("inline_functions", [False, True])
def test_simplified(inline_functions: bool, file: Path, tmp_path: Path) -> None:
    result = onnxsmith.simplify(file, tmp_path / "new.onnx", inline_functions=inline_functions)
    assert result.ok
    onnx.checker.check_model(onnx.load(tmp_path / "new.onnx"), full_check=True)
    assert computes_the_same(tmp_path / "new.onnx")
