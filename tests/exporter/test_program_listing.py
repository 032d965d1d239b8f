"""`inspect TARGET --program`: the program of a torch model, beside the nodes of its ONNX file."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from onnxsmith import export
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.capture import Program
from onnxsmith.cli.commands.inspect import Inspect

SOURCE = """
import torch


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        y = self.linear(x)
        return torch.relu(y) + x


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block(), Block()])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x * 2


class Branch(torch.nn.Module):
    def forward(self, x):
        return x + 1 if x.sum() > 0 else x


def net():
    return Net().eval(), (torch.randn(3, 4),)


def branch():
    return Branch().eval(), (torch.randn(3, 4),)


def scripted():
    return torch.jit.script(Branch()), (torch.randn(3, 4),)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "shown_net.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shown(target: str, onnx: str | None = None) -> Program:
    report = Inspect(target, program=True, onnx=onnx).run()
    assert Report.from_json(report.to_json()) == report
    return report.part(Program)


@pytest.mark.usefixtures("compared_once")
def test_a_module_beside_its_file(folder: Path) -> None:
    export("shown_net.py:net", output="m.onnx")
    found = shown("shown_net.py:net", "m.onnx")
    assert found.origin == "torch.export"
    assert found.unpaired == ()
    nodes = {(line.module, line.code): [node.op for node in line.nodes] for line in found.lines if line.nodes}
    assert set(nodes) >= {
        ("blocks.0.linear", "y = self.linear(x)"),
        ("blocks.1.linear", "y = self.linear(x)"),
        ("blocks.0", "return torch.relu(y) + x"),
        ("", "return x * 2"),
    }
    assert nodes["blocks.0.linear", "y = self.linear(x)"] == ["Gemm"]
    relu = [line for line in found.lines if "aten.relu" in line.text]
    assert [[node.op for node in line.nodes] for line in relu] == [["Relu"], ["Relu"]]
    own = Inspect("m.onnx", program=True).run().part(Program)
    assert own.origin == "the model"
    assert [line.source for line in own.lines][-1] == "shown_net.py:23"


def test_a_module_without_a_file(folder: Path) -> None:
    found = shown("shown_net.py:net")
    assert not found.compared
    assert [line.text.split(" = ")[1].split("(")[0] for line in found.lines][:3] == [
        "aten.linear.default", "aten.relu.default", "aten.add.Tensor",
    ]  # fmt: skip


@pytest.mark.filterwarnings(r"ignore:`torch\.jit\..*` is deprecated:DeprecationWarning")
def test_a_saved_program_and_scripted_modules(folder: Path) -> None:
    torch.export.save(torch.export.export(torch.nn.Sequential(torch.nn.ReLU()), (torch.ones(2),)), "p.pt2")
    assert [line.name for line in shown("p.pt2").lines] == ["relu"]
    branching = shown("shown_net.py:scripted")
    assert branching.origin == "TorchScript"
    assert any(line.text.startswith(("prim::If", "%")) and line.depth == 0 for line in branching.lines)
    assert any(line.depth == 1 and "aten::add" in line.text for line in branching.lines)
    assert {Path(line.source).name for line in branching.lines} == {"shown_net.py:28"}
    torch.jit.save(torch.jit.trace(torch.nn.Sequential(torch.nn.ReLU()), torch.ones(2)), "t.pt")  # type: ignore[no-untyped-call]
    assert ["aten::relu" in line.text for line in shown("t.pt").lines] == [True]


def test_what_has_no_program_is_a_problem(folder: Path) -> None:
    torch.save({"w": torch.ones(2)}, "weights.pt")
    (folder / "broken.pt2").write_bytes(b"nothing")
    for target, expected in (
        ("weights.pt", "inspect/program-unreadable"),
        ("absent.pt", "inspect/program-unreadable"),
        ("broken.pt2", "compare/program"),
        ("shown_net.py:absent", "export/target-factory"),
        ("shown_net.py:branch", "inspect/program-unreadable"),
    ):
        with pytest.raises(OnnxsmithError) as caught:
            shown(target)
        assert caught.value.problem.id == expected, target
    with pytest.raises(OnnxsmithError) as caught:
        shown("shown_net.py:net", "absent.onnx")
    assert caught.value.problem.id == "model/not-found"


def test_without_torch_the_problem_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxsmith.runtimes.torch_eager.TorchEager.missing", lambda _: _missing())
    with pytest.raises(OnnxsmithError) as caught:
        shown("shown_net.py:net")
    assert "torch" in caught.value.problem.fix
    with pytest.raises(OnnxsmithError) as caught:
        Inspect("m.onnx", program=True).run()  # a file needs no torch
    assert caught.value.problem.id == "model/not-found"


def _missing() -> object:
    from onnxsmith.base.problem import Problem

    return Problem("runtime/missing", "torch is not installed", fix='pip install "onnxsmith[torch]"')
