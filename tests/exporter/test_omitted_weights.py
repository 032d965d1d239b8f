"""An export without weights has none of them, under whatever name, or says which stay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

import onnxsmith
from onnxsmith.exporter.graph.omitted_weights import Weights

pytestmark = pytest.mark.usefixtures("compared_once")


class Does(nn.Module):
    def __init__(self, function: Callable[[Any, torch.Tensor], torch.Tensor], **parts: Any) -> None:
        super().__init__()
        self.function = function
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(self, x)


def table() -> nn.Module:
    module = Does(lambda self, x: x @ self.table)
    module.register_buffer("table", torch.randn(8, 8), persistent=False)
    return module


MODULES: dict[str, Callable[[], nn.Module]] = {
    "mlp": lambda: nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8)),
    "conv and norm": lambda: nn.Sequential(nn.Unflatten(1, (2, 4)), nn.Conv1d(2, 3, 3), nn.BatchNorm1d(3)),
    "attention": lambda: Does(lambda self, x: self.layer(x[None]), layer=nn.TransformerEncoderLayer(8, 2, 16)),
    "recurrent": lambda: Does(lambda self, x: self.layer(x[None])[0], layer=nn.GRU(8, 4, 2, batch_first=True)),
    "weight norm": lambda: weight_norm(nn.Linear(8, 4)),
    "no buffer of the state": table,
    "plain attribute": lambda: Does(
        lambda self, x: x @ self.w @ self.more[0], w=torch.randn(8, 8), more=[torch.eye(8)]
    ),
    "copied": lambda: Does(lambda self, x: x @ self.l.weight.detach().clone().t(), l=nn.Linear(8, 8)),
    "named like ports": lambda: Does(
        lambda self, x: x * self.x + self.output, x=nn.Parameter(torch.randn(8)), output=nn.Parameter(torch.randn(8))
    ),
}


@pytest.mark.parametrize("kind", MODULES)
@pytest.mark.parametrize("strategy", [None, "torchscript"])
def test_no_weight_is_in_the_file(kind: str, strategy: str | None, tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = MODULES[kind]().eval()
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    file = tmp_path / "m.onnx"
    result = onnxsmith.export(module, (torch.randn(3, 8),), output=file, weights=False, strategy=strategy)
    assert result.ok, result.report.problems
    proto = onnx.load(file)
    known = Weights.of(module)
    held = [numpy_helper.to_array(one) for one in proto.graph.initializer]
    held += [numpy_helper.to_array(a.t) for node in proto.graph.node for a in node.attribute if a.name == "value"]
    assert not [array.shape for array in held if array.dtype.kind == "f" and array.size > 8]
    inputs = len(proto.graph.input) - 1
    assert inputs > 0
    assert f"{inputs} of " in result.report.headline
    assert "weights left out" in result.report.headline
    assert known.digests


def test_what_is_left_out_can_be_given_again(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module, x = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8)).eval(), torch.randn(3, 8)
    onnxsmith.export(module, (x,), output=tmp_path / "m.onnx", weights=False)
    feeds = {"input": x.numpy(), **{name: value.numpy() for name, value in module.state_dict().items()}}
    got = onnxsmith.run(tmp_path / "m.onnx", feeds).outputs["output"]
    assert np.allclose(np.asarray(got), module(x).detach().numpy(), atol=1e-5)


class Folds(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(8, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ torch.tensor((self.w * 2).tolist())


def test_weights_that_stay_as_constants_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.export(
            Folds(), (torch.randn(3, 8),), output=tmp_path / "m.onnx", weights=False, strategy="torchscript"
        )
    assert caught.value.problem.id == "export/weights-stay"
    assert not (tmp_path / "m.onnx").exists()


def test_a_weight_that_the_graph_does_not_use_is_named(tmp_path: Path) -> None:
    module = Does(lambda self, x: x @ self.l.weight, l=nn.Linear(8, 8))
    result = onnxsmith.export(module, (torch.randn(3, 8),), output=tmp_path / "m.onnx", weights=False)
    assert "1 of 2 weights left out (the graph does not use l.bias)" in result.report.headline
