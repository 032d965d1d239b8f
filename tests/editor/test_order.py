"""The step `order`: graph inputs and outputs in another order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import onnxsmith
from onnxsmith.graph.files.text import from_text
from tests.conftest import Refused

TWO = """<ir_version: 10, opset_import: ["": 20]>
net (float[n,2] a, float[n,2] b, float[2] c) => (float[n,2] y, float[n,2] z) <float[2] c = {1, 2}>
{ y = Sub(a, b) s = Add(a, b) z = Mul(s, c) }"""


def test_inputs_and_outputs(tmp_path: Path) -> None:
    onnxsmith.save(from_text(TWO), tmp_path / "m.onnx")
    with onnxsmith.edit(tmp_path / "m.onnx", tmp_path / "e.onnx") as m:
        m.rename("b", to="second")
        m.order(["second", "a"], ["z", "y"])  # c has a default
    graph = onnxsmith.load(tmp_path / "e.onnx").graph
    assert [value.name for value in graph.inputs] == ["second", "a", "c"]
    assert [value.name for value in graph.outputs] == ["z", "y"]
    with onnxsmith.edit(tmp_path / "e.onnx", tmp_path / "back.onnx") as m:
        m.rename("second", to="b")
        m.order(inputs=["a", "b", "c"], outputs=["y", "z"])
    assert (tmp_path / "back.onnx").read_bytes() == (tmp_path / "m.onnx").read_bytes()


def test_a_wrong_wire_is_noticed(tmp_path: Path, refused: Refused) -> None:
    onnxsmith.save(from_text(TWO), tmp_path / "m.onnx")
    with refused("verify/different"), onnxsmith.edit(tmp_path / "m.onnx", tmp_path / "e.onnx") as m:
        m.order(["b", "a", "c"])
        a, b, _ = m.model.graph.inputs
        a.name, b.name = b.name, a.name
    assert not (tmp_path / "e.onnx").exists()


WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "nothing": ({}, "edit/step-argument", 'outputs = ["y", "z"]'),
    "an input that is absent": ({"inputs": ["a", "x", "c"]}, "edit/port-order", "b"),
    "an output that is absent": ({"outputs": ["y", "zz"]}, "edit/port-order", "z"),
    "an input twice": ({"inputs": ["a", "b", "a"]}, "edit/port-order", "leave one 'a' out"),
    "an output left out": ({"outputs": ["z"]}, "edit/port-order", 'outputs = ["z", "y"]'),
    "an input left out": ({"inputs": ["b"]}, "edit/port-order", 'inputs = ["b", "a"]'),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_orders_are_refused(name: str, tmp_path: Path, refused: Refused) -> None:
    fields, problem, fix = WRONG[name]
    onnxsmith.save(from_text(TWO), tmp_path / "m.onnx")
    with refused(problem) as refusal, onnxsmith.edit(tmp_path / "m.onnx", tmp_path / "e.onnx") as m:
        m.order(**fields)
    assert fix in refusal.problem.fix
    assert not (tmp_path / "e.onnx").exists()
