"""A torch module beside a file that does not say where its nodes come from: it is exported, if that gives the same."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.base.report.parts.layers import Layers
from onnxsmith.exporter.graph import program_capture as capturing


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 4)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = nn.functional.elu(self.norm(self.stem(image)))
        x = nn.functional.pad(x, (1, 1, 1, 1), mode="reflect")
        out: torch.Tensor = self.head(nn.functional.avg_pool2d(x, 3).mean((2, 3)))
        return out


def built() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    net = Net().eval()
    net.norm.running_mean.normal_()  # type: ignore[union-attr, operator]
    return net, (torch.randn(1, 3, 13, 13),)


@pytest.fixture(scope="module")
def older() -> onnx.ModelProto:
    """The file as torch's older exporter writes it."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(*built(), buffer, dynamo=False, opset_version=17)
    return onnx.load_from_string(buffer.getvalue())


def layers_of(candidate: onnx.ModelProto) -> Layers:
    return onnxsmith.compare(built(), candidate, per_layer=True).report.part(Layers)


def set_mode(model: onnx.ModelProto) -> str:
    found = next(node for node in model.graph.node if node.op_type == "Pad")
    next(one for one in found.attribute if one.name == "mode").s = b"edge"
    return found.name


def set_alpha(model: onnx.ModelProto) -> str:
    found = next(node for node in model.graph.node if node.op_type == "Elu")
    del found.attribute[:]
    found.attribute.append(onnx.helper.make_attribute("alpha", 0.5))
    return found.name


@pytest.mark.parametrize("fault", [set_mode, set_alpha])
def test_a_fault_in_a_file_of_the_older_exporter_is_named_with_its_line(fault: Any, older: onnx.ModelProto) -> None:
    candidate = onnx.ModelProto()
    candidate.CopyFrom(older)
    culprit = fault(candidate)
    layers = layers_of(candidate)
    first = layers.layer(layers.culprits[0])
    assert first.steps[0] == culprit
    assert Path(__file__).name in first.source
    assert layers.cause is not None
    assert layers.cause.agrees
    assert any("was exported for this comparison" in note for note in layers.notes)


def test_without_a_fault_none_is_named(older: onnx.ModelProto) -> None:
    layers = layers_of(older)
    assert layers.culprits == ()
    assert layers.share > 0.9


def test_a_graph_with_other_outputs_does_not_stand_for_the_module(
    older: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = capturing.capture

    def wrong(*args: Any) -> Any:
        made = capture(*args)
        node = next(node for node in made.model.graph if node.op_type == "Elu")
        node.attributes["alpha"] = ir.AttrFloat32("alpha", 0.9)
        return made

    monkeypatch.setattr(capturing, "capture", wrong)
    layers = layers_of(older)
    assert layers.culprits == ()
    assert not any("was exported for this comparison" in note for note in layers.notes)
    assert any("could not be exported" in note and "differ from those of the module" in note for note in layers.notes)


def test_why_a_module_could_not_be_exported_is_told(older: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        raise RuntimeError("no translation\nof this operation")

    monkeypatch.setattr(capturing, "capture", fails)
    notes = layers_of(older).notes
    assert any("could not be exported" in note and "no translation of this operation" in note for note in notes)


@pytest.mark.parametrize("trained", [False, True])
def test_a_normalisation_that_hardly_changes_the_weights_it_is_folded_into_is_no_error(
    trained: bool, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4)).eval()
    if trained:
        net[1].running_var.fill_(1.0 + 1e-4)  # type: ignore[union-attr, operator]
    args, path = (torch.randn(1, 3, 8, 8),), tmp_path / "m.onnx"
    onnxsmith.export(net, args, output=path)
    report = onnxsmith.compare((net, args), path, per_layer=True).report
    assert report.verdict.exit_code == 0, report.headline
    net[3].weight.data[1] *= 1.01  # type: ignore[union-attr, operator]
    wrong = onnxsmith.compare((net, args), path, per_layer=True).report
    assert wrong.part(Layers).culprits
    assert "Conv" in wrong.problems[-1].where
