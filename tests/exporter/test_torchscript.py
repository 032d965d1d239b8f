"""The second way to capture: what it can, and what it must not do in silence."""

from __future__ import annotations

import faulthandler
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.parts.capture import Capture
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.cli.application import main
from onnxsmith.exporter.strategies import torchscript
from onnxsmith.exporter.strategy_choice import strategies
from onnxsmith.exporter.strategy_run import option

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


class Counting(nn.Module):
    """A loop over a size: scripted it is a Loop, traced it is unrolled."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i in range(x.shape[0]):
            x = x + i
        return x


class EndsEarly(nn.Module):
    """A loop that no other way keeps."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i in range(x.shape[0]):
            if i > 4:
                break
            x = x + i
        return x


class Branch(nn.Module):
    """With more in it than assignments, so that it is not written otherwise."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 1e9:
            for _ in range(3):
                x = -x
        return x * 2


def problem_of(module: nn.Module, *args: Any, **options: Any) -> Problem:
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.export(module, args, **options)
    return caught.value.problem


def test_a_scripted_module_keeps_its_loop() -> None:
    scripted = torch.jit.script(Counting())
    result = onnxsmith.export(scripted, (torch.rand(2, 3),), dynamic={"x": {0: "batch"}})
    assert result.ok
    assert "torch.jit.trace" in result.report.part(Capture).how
    assert "scripted" in result.report.part(Capture).tried[0]
    assert len(result.report.part(Verification).sizes["batch"]) > 1


def test_a_loop_that_a_trace_unrolls_is_found_and_kept_by_compiling_the_module() -> None:
    result = onnxsmith.export(EndsEarly(), (torch.rand(2, 3),), dynamic={"x": {0: "batch"}})
    assert result.ok
    assert "Loop" in [node.op_type for node in result.model.graph]
    assert any("jit.trace" in one and "other results" in one for one in result.report.part(Capture).tried)


class NotCompiled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        names = {one.lower() for one in ("A", "B")}  # no TorchScript
        if x.sum() > 0:
            names.add("c")
            return (x * len(names)).long()  # another dtype than the other side
        return x * len(names)


def test_a_branch_on_data_is_refused_with_its_line() -> None:
    problem = problem_of(NotCompiled(), torch.rand(2, 3))
    assert problem.id == "forward/branch-on-data"
    assert problem.why.startswith("one side returns INT64, the other FLOAT")
    others = problem.why.partition(" (tried as well: ")[2].split("; ")
    assert [one.partition(" + ")[0] for one in others] == ["torch.jit.trace", "torch.jit.script"], "not the same again"
    assert all(len(one) < 160 for one in others), "one sentence each; the exception's notes hold the rest"
    by_name = onnxsmith.export(Branch(), (torch.rand(2, 3),), strategy="torchscript")
    assert by_name.ok
    assert any(
        "test_torchscript.py" in note and "became a constant" in note for note in by_name.report.part(Capture).notes
    )


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_keep_time_and_batch_open(layer: type[nn.Module]) -> None:
    result = onnxsmith.export(layer(4, 3), (torch.rand(5, 2, 4),), dynamic={"input": {0: "time", 1: "batch"}})
    assert result.ok
    sizes = result.report.part(Verification).sizes
    assert len(sizes["time"]) > 1
    assert len(sizes["batch"]) > 1


@pytest.mark.usefixtures("compared_once")
@pytest.mark.parametrize("opset", [9, 12])
def test_low_opsets(opset: int) -> None:
    capture = onnxsmith.export(nn.Linear(3, 2), (torch.rand(2, 3),), opset=opset).report.part(Capture)
    assert capture.opset_got == opset
    assert capture.opset_how == "converted from 18"


@pytest.mark.usefixtures("compared_once")
def test_an_input_that_is_not_used_stays_where_it_is() -> None:
    class Second(nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"twice": b * 2}

    result = onnxsmith.export(Second(), (torch.rand(3), torch.rand(2, 2)), strategy="torchscript")
    assert result.ok
    assert [port.name for port in result.report.part(Capture).inputs] == ["a", "b"]
    assert [port.used for port in result.report.part(Capture).inputs] == [False, True]


@pytest.mark.usefixtures("compared_once")
def test_parameters_are_called_what_the_module_calls_them(tmp_path: Path) -> None:
    torch.manual_seed(0)  # with some weights the ReLU hides both outputs
    result = onnxsmith.export(
        nn.Sequential(nn.Linear(3, 2), nn.ReLU()), (torch.rand(2, 3),), strategy="torchscript", simplify=False
    )
    assert result.model is not None
    assert {"0.weight", "0.bias"} <= set(result.model.graph.initializers)


@pytest.mark.usefixtures("new_processes")
def test_a_process_that_dies_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object) -> None:
        faulthandler.disable()  # pytest's, which would say it once more
        os.kill(os.getpid(), signal.SIGSEGV)

    monkeypatch.setattr(torchscript, "_trace", crash)
    problem = problem_of(nn.Linear(3, 2), torch.rand(2, 3), strategy="torchscript")
    assert problem.id == "export/capture-failed"
    assert "SIGSEGV" in problem.why


def test_there_is_no_other_strategy() -> None:
    problem = problem_of(nn.Linear(3, 2), torch.rand(2, 3), strategy="best")
    assert problem.id == "export/unknown-strategy"
    assert problem.fix.startswith("one of: torch-export, ")


def test_the_help_names_every_strategy(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["onnxsmith", "export", "--help-all"])
    with pytest.raises(SystemExit):
        main()
    said = "".join(capsys.readouterr().out.split())
    names = [option(one).split()[1] for one in strategies(None)]
    assert [name for name in names if name not in said] == []


@pytest.mark.parametrize("name", ["torch-resized", "torch-joined", "torch-all-sides", "torch-branched"])
def test_a_strategy_for_branches_takes_a_module_without_branches(name: str) -> None:
    module = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    assert onnxsmith.export(module, (torch.rand(2, 3),), dynamic={"input": {0: "batch"}}, strategy=name).ok


def test_a_branch_on_data_is_kept_by_compiling_the_module() -> None:
    result = onnxsmith.export(Branch(), (torch.rand(2, 3),), dynamic={"x": [0]}, strategy="torchscript-script")
    assert result.ok
    assert "If" in [node.op_type for node in result.model.graph]


def test_plain_torch_takes_over_from_a_translation_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    from onnxsmith.exporter.translating import exporter_hooks as translating

    monkeypatch.setattr(translating, "_own", lambda: {torch.ops.aten.relu.default: lambda x: x * 2})
    result = onnxsmith.export(nn.ReLU(), (torch.rand(2, 3) - 0.5,))
    assert result.ok
    assert "without translations" in result.report.part(Capture).how


class ThreeRows(nn.Module):
    """Compiling it keeps its loop; it takes one size only."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x
        while bool(y.sum() < 100.0):
            y = y + 1
        if x.shape[1] != 4:
            raise ValueError("four columns")
        return y


def test_a_trace_of_one_size_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(OnnxsmithError):
        onnxsmith.export(ThreeRows(), (torch.rand(3, 4),), output=tmp_path / "m.onnx", dynamic={"x": {1: "n"}})
    assert not list(tmp_path.iterdir())


def test_without_verification_no_trace_takes_over(tmp_path: Path) -> None:
    with pytest.raises(OnnxsmithError, match="not tried without verification"):
        onnxsmith.export(
            torch.jit.script(nn.Linear(2, 3)), (torch.rand(4, 2),), output=tmp_path / "m.onnx", verify=False
        )
    assert not list(tmp_path.iterdir())
    assert (
        onnxsmith.export(
            torch.jit.script(nn.Linear(2, 3)), (torch.rand(4, 2),), verify=False, strategy="torchscript"
        ).path
        is None
    )


class _Home(nn.Module):
    """Knows in which process it was made."""

    def __init__(self) -> None:
        super().__init__()
        self.home = os.getpid()


class _Elsewhere(_Home):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        own = {"MainThread", "end with parent"}
        threads = {thread.name for thread in threading.enumerate()}
        assert os.getpid() == self.home or threads <= own, "a new process has no thread of its parent's"
        return x * 2


@pytest.mark.usefixtures("new_processes")
def test_the_process_is_a_new_one() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert onnxsmith.export(_Elsewhere(), (torch.ones(3),), strategy="torchscript", verify=False).ok
    finally:
        stop.set()
        thread.join()


FACTORY = """
import pathlib, torch

with pathlib.Path(__file__).with_name("imports").open("a") as log:
    log.write("once ")

class Doubled(torch.nn.Module):
    def forward(self, x):
        return x * 2

def build():
    return Doubled(), (torch.ones(3),)
"""


@pytest.mark.usefixtures("new_processes")
def test_only_the_factory_of_the_module_goes_to_the_other_process(tmp_path: Path) -> None:
    """Another factory that this process loaded is not imported there: its file may be gone, and its code would run."""
    first, second = tmp_path / "first_factory.py", tmp_path / "second" / "second_factory.py"
    second.parent.mkdir()
    for file in (first, second):
        file.write_text(FACTORY)
    script: dict[str, Any] = {"strategy": "torchscript", "verify": False}
    assert onnxsmith.export(f"{first}:build", **script).ok
    assert (tmp_path / "imports").read_text() == "once once "
    first.unlink()
    assert onnxsmith.export(f"{second}:build", **script).ok
    assert (tmp_path / "imports").read_text() == "once once "


class _Holds(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with self.lock:
            return x * 2


def test_a_module_that_cannot_be_sent_is_a_problem() -> None:
    problem = problem_of(_Holds(), torch.ones(3), strategy="torchscript")
    assert problem.id == "export/capture-failed"
    assert "cannot be sent to another process" in problem.why


class _Slow(_Home):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if os.getpid() != self.home:
            time.sleep(60)
        return x * 2


@pytest.mark.usefixtures("new_processes")
def test_a_process_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONNXSMITH_TIME_LIMIT", "8")
    problem = problem_of(_Slow(), torch.ones(3), strategy="torchscript", verify=False)
    assert "it took longer than 8 s; ONNXSMITH_TIME_LIMIT sets another limit" in problem.why


def test_a_class_of_a_script_is_sent_by_value(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import torch, onnxsmith\n"
        "class Mine(torch.nn.Module):\n    def forward(self, x):\n        return x * 3\n"
        "made = onnxsmith.export(Mine(), (torch.ones(2),), strategy='torchscript')\n"
        "print(made.report.verdict.value)\n"
    )
    found = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=300)
    assert found.stdout.strip() == "done", found.stderr


class Chooses(nn.Module):
    """By a number that torch.export cannot follow, between two ways that compute the same."""

    def forward(self, x: torch.Tensor, kinds: torch.Tensor) -> torch.Tensor:
        largest = int(kinds.max())
        names = {str(largest)}
        if len(names) and largest > 2:
            return x + x
        return x + x


class Checks(nn.Module):
    """Raises in another function, which torch.export cannot follow either."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        names = {str(x.dtype)}
        if (x < 0).any():
            raise ValueError(f"negative values, {names}")
        return x.sqrt()


class Hidden(nn.Module):
    """Either of two values alone decides nothing."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        names = {"a"}
        low, high = bool(x.sum() > 0), bool(x.max() > 0)
        names.add("b")
        return x * 2 if low or high else x * len(names) * 3


class Repeats(nn.Module):
    """Ends only when a value of the data says so."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        names = {"a"}
        while not x.sum() > 1:
            x = x * 2
            names.add("b")
        return x


def test_a_value_that_decides_nothing_is_no_constant() -> None:
    x, kinds = torch.rand(3), torch.tensor([0, 3, 1])
    result = onnxsmith.export(Chooses(), (x, kinds), dynamic="x:0=n;kinds:0=n", strategy="torchscript")
    assert result.ok
    assert not any("became a constant" in note for note in result.report.part(Capture).notes)


def test_a_check_that_raises_is_no_constant() -> None:
    result = onnxsmith.export(Checks(), (torch.rand(3),), strategy="torchscript")
    assert result.ok
    assert not any("became a constant" in note for note in result.report.part(Capture).notes)


@pytest.mark.parametrize("module", [Hidden(), Repeats(), NotCompiled()])
def test_a_value_that_decides_is_a_constant(module: nn.Module) -> None:
    result = onnxsmith.export(module, (torch.ones(3),), strategy="torchscript", verify=False)
    assert any("became a constant" in note for note in result.report.part(Capture).notes)
