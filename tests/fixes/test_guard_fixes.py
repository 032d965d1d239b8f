"""Fixes of problems of `guard`, and of the forms of a report."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from safetensors.numpy import save

from onnxsmith.graph.files.save import save as save_model
from onnxsmith.graph.files.text import from_text
from tests.fixes.harness import Case, helps, parameters

NET = (
    '<ir_version: 10, opset_import: ["": 20]> g (float[2] x) => (float[2] y) { a = Identity(x) b = Neg(a) y = Relu(b) }'
)
TRAINED = NET.replace("a = Identity(x)", "go = Constant<value = bool {1}>() r = Constant<value = float {0.5}>() "
                      "a = Dropout(x, r, go)")  # fmt: skip


def leaking(path: Path) -> None:
    model = from_text(NET)
    model.metadata_props["source"] = "/home/anna/net.py"
    model.graph[0].metadata_props["trace"] = "File '/home/anna/net.py'"
    model.graph[1].doc_string = "/Users/anna/net.py"
    save_model(model, path)


CASES = [
    Case("guard/too-large", "onnxsmith guard m.onnx --max-size 10", {"m.onnx": NET}),
    Case(
        "guard/pickled",
        "onnxsmith guard w.pt",
        {"w.pt": pickle.dumps({"a": 1})},
        changes={"w.safetensors": save({})},
        by_hand="onnxsmith guard w.safetensors",
        says=["safetensors"],
    ),
    Case(
        "guard/pickled",
        "onnxsmith guard m.onnx",
        {"m.onnx": pickle.dumps({"a": 1})},
        changes={"m.onnx": NET},
        says=["export the module"],
        name="with the name of a model",
    ),
    Case("guard/training-mode", "onnxsmith guard m.onnx", {"m.onnx": TRAINED}, changes={"m.onnx": NET},
         says=["`module.eval()`", "export it again"]),
    Case("guard/local-path", "onnxsmith guard m.onnx", {"m.onnx": leaking}),
    Case("guard/not-simplified", "onnxsmith guard m.onnx --simplified", {"m.onnx": NET}),
    Case("guard/no-file", "onnxsmith guard", {"model.onnx": NET}, goes_on=False),
    Case("guard/bad-size", "onnxsmith guard m.onnx --max-size much", {"m.onnx": NET}),
    Case("report/unknown-form", "onnxsmith inspect m.onnx --report out.txt", {"m.onnx": NET},
         by_hand="onnxsmith inspect m.onnx --report out.md", says=["write out.md in its place"]),
]  # fmt: skip


@pytest.mark.parametrize("one", parameters(CASES))
def test_the_fix_helps(one: Case, tmp_path: Path) -> None:
    helps(one, tmp_path)
