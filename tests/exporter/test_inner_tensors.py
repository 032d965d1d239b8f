"""Networks whose outputs hardly depend on their weights: the tensors inside are compared, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.settings import Save, Verify
from onnxsmith.exporter import inner_tensors, strategy_run
from onnxsmith.exporter.factory import TorchModel
from onnxsmith.exporter.inputs.module_program import build
from onnxsmith.exporter.taps.eager_values import EagerValues
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.verification.by_layer.part_verification import Inside
from onnxsmith.verification.ladder import Subject, climbed


class Faint(nn.Module):
    """A convolution with a normalisation, one that is called twice, operations in place, and outputs in which nearly
    nothing of them is left."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.twice = nn.Conv2d(8, 8, 3, padding=1)
        self.last = nn.Linear(8, 4)
        with torch.no_grad():
            for held in (self.norm.running_mean, self.norm.bias):
                held.uniform_(-1, 1)
            for held in (self.norm.running_var, self.norm.weight):
                held.uniform_(0.5, 2)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.relu(self.norm(self.first(x)))
        x = self.twice(self.twice(x).relu_()).relu_()
        x *= 1e-2
        x = x.mean((2, 3))
        return torch.softmax(1e-3 * self.last(x), -1), torch.sigmoid(1e-8 * x)


IMAGE = torch.rand(2, 3, 12, 12, generator=torch.Generator().manual_seed(0))


def faint() -> Faint:
    torch.manual_seed(0)
    made = Faint()
    made.eval()
    return made


def exported(file: Path | None, **more: Any) -> tuple[onnxsmith.Result, Verification]:
    result = onnxsmith.export(faint(), (IMAGE,), output=file, strategy="torch-export", **more)
    return result, result.report.part(Verification)


def weights_of(model: ir.Model) -> list[ir.Value]:
    held = [(value, value.const_value) for value in model.graph.initializers.values()]
    return [
        value for value, tensor in held if tensor is not None and tensor.dtype == ir.DataType.FLOAT and tensor.size > 1
    ]


def spoil(value: ir.Value, fault: str) -> None:
    assert value.const_value is not None
    array = np.array(value.const_value.numpy())
    if fault == "share":
        array *= 1 + 0.01 * np.random.default_rng(0).choice((-1, 1), array.shape)
    elif fault == "element":
        array.flat[np.argmax(np.abs(array))] *= 1.1
    else:
        array = array.ravel()[::-1].reshape(array.shape)
    value.const_value = ir.tensor(array.astype(np.float32), name=value.name)


@pytest.fixture(scope="module")
def asked() -> tuple[Any, ...]:
    """The verification of an export that cannot tell, and the arguments with which it asks for the tensors inside."""
    met: list[tuple[Any, ...]] = []

    def recorded(*args: Any) -> None:
        met.append(args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inner_tensors, "inside", recorded)
        result, found = exported(None)
    assert result.report.verdict is Verdict.CANNOT_TELL
    return found, *met[0]


class Looking(Subject):
    """A comparison that can look inside, and nothing else."""

    def __init__(self, *args: Any) -> None:
        self.args = args

    def compared(self) -> Verification:
        raise AssertionError("it was made before")

    def inside(self) -> Inside | None:
        return inner_tensors.inside(*self.args)


def with_inside(found: Verification, *args: Any) -> Verification:
    return climbed(Looking(*args), found)


@pytest.mark.parametrize("dynamic", [None, "x:0=batch"])
def test_tensors_inside_verify_what_outputs_do_not_show(dynamic: str | None, tmp_path: Path) -> None:
    result, found = exported(tmp_path / "m.onnx", dynamic=dynamic)
    assert result.report.verdict is Verdict.DONE
    assert found.inside > 5
    assert f"verified on {len(found.runs)} inputs and {found.inside} tensors inside" in result.report.headline
    assert found.power is not None
    assert found.power.seen == found.power.tried == found.power.of == 6
    assert (tmp_path / "m.onnx").exists()


@pytest.mark.parametrize("place", range(6))
@pytest.mark.parametrize("fault", ["share", "element", "order"])
def test_a_wrong_weight_that_no_output_shows_is_named(place: int, fault: str, asked: tuple[Any, ...]) -> None:
    found, program, example, candidate, *rest = asked
    wrong = cloned(candidate)
    weights = weights_of(wrong)
    assert len(weights) == 6
    spoil(weights[place], fault)
    said = with_inside(found, program, example, wrong, *rest)
    assert not said.equal
    assert said.inside == 0
    assert "differs from the module's, but no output shows this" in said.unsure[-1]


def test_a_wrong_attribute_that_no_output_shows_is_named(asked: tuple[Any, ...]) -> None:
    found, program, example, candidate, *rest = asked
    wrong = cloned(candidate)
    pooled = next(node for node in wrong.graph if node.op_type == "ReduceMean")
    pooled.op_type = "ReduceMax"
    said = with_inside(found, program, example, wrong, *rest)
    assert not said.equal
    assert "differs from the module's" in said.unsure[-1]


def test_no_file_is_written_where_a_tensor_inside_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = strategy_run.simplified

    def wrong(model: ir.Model, *args: Any, **options: Any) -> Any:
        made, part = plain(model, *args, **options)
        spoil(weights_of(made)[0], "order")
        return made, part

    monkeypatch.setattr(strategy_run, "simplified", wrong)
    result, found = exported(tmp_path / "m.onnx")
    assert result.report.verdict is Verdict.CANNOT_TELL
    assert "differs from the module's" in found.unsure[-1]
    assert "differs from the module's" in result.report.problems[0].what
    assert not (tmp_path / "m.onnx").exists()
    result, _ = exported(tmp_path / "m.onnx", save=Save(write_unsure=True))
    assert result.report.verdict is Verdict.CANNOT_TELL


def test_nothing_inside_is_compared_where_a_tolerance_was_asked_for() -> None:
    _, found = exported(None, verify=Verify(tolerance=1e-3))
    assert found.inside == 0


def test_a_tensor_counts_if_the_module_itself_computes_it() -> None:
    class InPlace(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x * 2
            y += 1
            return y

    x = torch.rand(3, 5, generator=torch.Generator().manual_seed(0))
    program = build(TorchModel(InPlace(), (x,), {}), {}).program
    known = EagerValues(program, {"x": x.numpy()})
    assert known.has((x * 2).numpy()), "the value from before it was overwritten"
    assert known.has((x * 2 + 1).numpy())
    assert not known.has((x * 3).numpy())
    assert not known.has((x * 2).numpy().astype(np.float64))
    assert not known.has((x * 2).numpy().T)


def test_a_comparison_of_module_and_file_looks_inside_too(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    exported(file)
    found = onnxsmith.compare((faint(), (IMAGE,)), file).report
    assert found.verdict is Verdict.DONE
    assert found.part(Verification).inside > 5
    assert " tensors inside" in found.headline
    wrong = onnxsmith.load(file)
    spoil(weights_of(wrong)[1], "share")
    found = onnxsmith.compare((faint(), (IMAGE,)), wrong).report
    assert found.verdict is Verdict.CANNOT_TELL
    assert "differs from the module's" in found.part(Verification).unsure[-1]
