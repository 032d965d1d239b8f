"""Fixes of exports, and of what a `forward` may not do."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import onnxsmith
from tests.fixes.harness import Call, Case, helps, parameters

HEAD = "import torch\n\n\n"
LINEAR = HEAD + "def build():\n    return torch.nn.Linear(3, 2), (torch.ones(2, 3),)\n"
BARE = HEAD + "def build():\n    return torch.nn.Linear(3, 2)\n"
EXPORT = "onnxsmith export model.py:build -o m.onnx"


def module(*lines: str, example: str = "torch.rand(2, 4)", takes: str = "self, x", init: str = "") -> str:
    """A file with a module that has these lines as its `forward`."""
    body = "".join(f"        {line}\n" for line in lines)
    made = f"    def __init__(self):\n        super().__init__()\n        {init}\n\n" if init else ""
    return (
        f"{HEAD}class Net(torch.nn.Module):\n{made}    def forward({takes}):\n{body}\n\n"
        f"def build():\n    return Net(), ({example},)\n"
    )


def code(id_: str, before: str, after: str, *says: str, command: str = EXPORT, name: str = "") -> Case:
    """A case in which the reader of a fix writes the module anew."""
    return Case(id_, command, {"model.py": before}, changes={"model.py": after}, says=says, name=name)


def diagnosed(id_: str, before: str, after: str, *says: str, dynamic: str = "") -> Case:
    """A case in which the module is diagnosed before and after the reader of the fix writes it anew."""
    command = "onnxsmith diagnose model.py:build" + (f" --dynamic {dynamic}" if dynamic else "")
    return code(id_, before, after, *says, command=command)


def alone(id_: str, before: str, after: str, *says: str) -> Case:
    """A case in which torch.export alone captures the module, so that no other way hides the problem."""
    return code(id_, before, after, *says, command=f"{EXPORT} --strategy torch-export")


COUNTED = module("self.count.add_(1)", "return x + self.count", init='self.register_buffer("count", torch.zeros(1))')
net, x = torch.nn.Linear(3, 2), torch.ones(2, 3)
LINEAR_FILES = {"model.py": LINEAR}

CASES: list[Case | Call] = [
    Case("export/no-output", "onnxsmith export model.py:build", LINEAR_FILES),
    Case(
        "export/target-syntax",
        "onnxsmith export model.py -o m.onnx",
        LINEAR_FILES,
        by_hand=EXPORT,
        says=["model.py:build"],
    ),
    Case(
        "export/target-import",
        "onnxsmith export modle.py:build -o m.onnx",
        LINEAR_FILES,
        by_hand=EXPORT,
        says=["write model.py in place of modle.py"],
    ),
    Case(
        "export/target-factory",
        "onnxsmith export model.py:bild -o m.onnx",
        LINEAR_FILES,
        by_hand=EXPORT,
        says=["write build"],
    ),
    code(
        "export/target-factory",
        LINEAR.replace("return torch.nn.Linear(3, 2), (torch.ones(2, 3),)", "return 3"),
        LINEAR,
        "return module, or (module, args)",
        name="returns something else",
    ),
    code(
        "export/target-factory",
        LINEAR.replace("build()", "build(size)"),
        LINEAR.replace("build()", "build(size=3)"),
        "give its parameters defaults",
        name="needs arguments",
    ),
    Case(
        "export/no-inputs",
        EXPORT,
        {"model.py": BARE},
        by_hand=f"{EXPORT} --input input=float32[2,3]",
        says=["--input input=float32[SIZES]"],
    ),
    Case(
        "export/unknown-input",
        f"{EXPORT} --dynamic inptu:0=batch",
        LINEAR_FILES,
        by_hand=f"{EXPORT} --dynamic input:0=batch",
        says=["'input'"],
    ),
    Case(
        "export/unknown-input",
        f"{EXPORT} --input x=float32[2,3]",
        LINEAR_FILES,
        by_hand=f"{EXPORT} --input input=float32[2,3]",
        says=["input"],
        name="an argument",
    ),
    Case(
        "export/dynamic-syntax",
        f"{EXPORT} --dynamic input=batch",
        LINEAR_FILES,
        by_hand=f"{EXPORT} --dynamic input:0=batch",
        says=["input:0=batch"],
    ),
    Case(
        "export/dynamic-syntax",
        f"{EXPORT} --dynamic input:4=batch",
        LINEAR_FILES,
        by_hand=f"{EXPORT} --dynamic input:0=batch",
        says=["0 to 1"],
        name="an axis",
    ),
    Case(
        "export/names",
        f"{EXPORT} --output-names a,b",
        LINEAR_FILES,
        by_hand=f"{EXPORT} --output-names a",
        says=["give 1"],
    ),
    Case(
        "export/unknown-strategy",
        f"{EXPORT} --strategy torch_export",
        LINEAR_FILES,
        by_hand=f"{EXPORT} --strategy torch-export",
        says=["write torch-export"],
    ),
    Case("export/opset", f"{EXPORT} --opset 99", LINEAR_FILES, by_hand=f"{EXPORT} --opset 20", says=["opset"]),
    code("export/forward-failed", LINEAR.replace("(2, 3),)", "(2, 4),)"), LINEAR, "float32[2, 4]"),
    code("export/no-outputs", module("self.y = x"), module("return x + 1"), "return the tensors"),
    Case(
        "export/dimension-conflict",
        f"{EXPORT} --dynamic x:0=n,1=n",
        {"model.py": module("return x + 1")},
        by_hand=f"{EXPORT} --dynamic x:0=n,1=m",
        says=["different names"],
    ),
    Call(
        "export/task",
        lambda: onnxsmith.export(net, (x,), task="text-generation"),
        lambda: onnxsmith.export(net, (x,)),
        ["remove the task"],
    ),
    Call(
        "export/arguments",
        lambda: onnxsmith.export(net, (x,), "m.onnx"),
        lambda: onnxsmith.export(net, (x,), output="m.onnx"),
        ['output="m.onnx"'],
    ),
    Case(
        "export/state",
        f"{EXPORT} --state cout",
        {"model.py": COUNTED},
        by_hand=f"{EXPORT} --state count",
        says=["forward changes: count"],
    ),
    alone(
        "forward/numpy",
        module("import numpy as np", "return torch.from_numpy(np.tanh(x.numpy()))"),
        module("return torch.tanh(x)"),
        "torch",
    ),
    diagnosed(
        "forward/device",
        module("return x + torch.ones(4, device='cuda')"),
        module("return x + torch.ones(4, device=x.device)"),
        "x.device",
    ),
    alone(
        "forward/branch-on-data",
        module("if x.sum() > 0:", "    return x * 2", "return x"),
        module("return torch.where(x.sum() > 0, x * 2, x)"),
        "torch.where",
    ),
    alone(
        "forward/loop-on-data",
        module("for i in range(int(x.sum())):", "    x = x + i", "return x"),
        module("for i in range(3):", "    x = x + i", "return x"),
        "number",
    ),
    diagnosed(
        "forward/table-length",
        module("return x + self.table", init="self.register_buffer('table', torch.rand(1, 4))"),
        module("return x + self.table[:, : x.shape[1]]", init="self.register_buffer('table', torch.rand(1, 64))"),
        "slice it: self.table[..., :x.shape[-1]]",
        dynamic="x:1=length",
    ),
]


@pytest.mark.parametrize("one", parameters(CASES))
def test_the_fix_helps(one: Case | Call, tmp_path: Path) -> None:
    helps(one, tmp_path)
