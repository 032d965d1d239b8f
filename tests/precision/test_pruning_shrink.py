"""prune: a torch module is cut as its file was, by the keep-list."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.verdict import Verdict

pytestmark = pytest.mark.torch


def convolutions(norm: Callable[[int], Any], *, bias: bool = True) -> Any:
    """Two convolutions with normalisations of equal initial weights, of which the exporter makes one."""
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(3, 16, 3, bias=bias), norm(16), nn.ReLU(), nn.Conv2d(16, 16, 3, bias=bias), norm(16), nn.ReLU(),
        nn.Conv2d(16, 2, 1),
    )  # fmt: skip


def zero_biases() -> Any:
    import torch
    from torch import nn

    network = nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.ReLU(), nn.ConvTranspose2d(16, 12, 3, groups=2), nn.ReLU(),
        nn.ConvTranspose2d(12, 12, 3, groups=12), nn.ReLU(), nn.Conv2d(12, 6, 1), nn.Flatten(), nn.Linear(384, 8),
        nn.ReLU(), nn.Linear(8, 3),
    )  # fmt: skip
    for name, parameter in network.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.zeros_(parameter)
    return network


def tied() -> Any:
    import torch
    from torch import nn

    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encode, self.inside = nn.Linear(108, 12), nn.Linear(12, 12)
            self.last = nn.Parameter(torch.rand(108))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = self.inside(self.encode(x.flatten(1)).relu()).relu()
            return nn.functional.linear(h, self.encode.weight.t(), self.last)

    return Tied()


def recurrent(kind: str) -> Any:
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before = nn.Linear(12, 10)
            self.cells = getattr(nn, kind)(10, 16, 2, batch_first=True, bidirectional=True)
            self.after = nn.Linear(32, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.after(self.cells(self.before(x.flatten(1).view(-1, 9, 12)).relu())[0])
            return result

    return Net()


def networks() -> dict[str, Callable[[], Any]]:
    from torch import nn

    return {
        "batch normalisations": lambda: convolutions(nn.BatchNorm2d),
        "instance normalisations": lambda: convolutions(lambda count: nn.InstanceNorm2d(count, affine=True)),
        "instance normalisations without parameters": lambda: convolutions(nn.InstanceNorm2d),
        "group normalisations": lambda: convolutions(lambda count: nn.GroupNorm(4, count)),
        "group normalisations without parameters": lambda: convolutions(
            lambda count: nn.GroupNorm(4, count, affine=False), bias=False
        ),
        "slopes": lambda: convolutions(nn.PReLU),
        "biases of zeros": zero_biases,
        "a weight and its transpose": tied,
        "LSTM": lambda: recurrent("LSTM"),
        "GRU": lambda: recurrent("GRU"),
        "RNN": lambda: recurrent("RNN"),
    }


CASES = (
    "batch normalisations", "instance normalisations", "instance normalisations without parameters",
    "group normalisations", "group normalisations without parameters", "slopes", "biases of zeros",
    "a weight and its transpose", "LSTM", "GRU", "RNN",
)  # fmt: skip


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("error:input's size at dim")  # of a normalisation that expects the old channels
def test_the_module_computes_what_its_file_does(case: str, tmp_path: Path) -> None:
    import torch

    torch.manual_seed(0)
    network = networks()[case]().eval()
    x = torch.randn(2, 3, 6, 6)
    onnxsmith.export(
        network, (x,), output=tmp_path / "net.onnx", input_names=["x"], simplify=False,
        save=onnxsmith.Save(write_unsure=True),
    )  # fmt: skip
    small, kept = tmp_path / "small.onnx", tmp_path / "kept.json"
    result = onnxsmith.prune(tmp_path / "net.onnx", small, share=0.5, multiple=1, keep_list=kept, measure_time=False)
    assert result.report.verdict is Verdict.DONE
    before = sum(one.numel() for one in network.parameters())
    onnxsmith.shrink(network, kept)
    assert sum(one.numel() for one in network.parameters()) < 0.8 * before
    theirs = next(iter(onnxsmith.run(small, {"x": x.numpy()}).outputs.values()))
    np.testing.assert_allclose(theirs, network(x).detach().numpy(), rtol=1e-4, atol=1e-5)
    network.train()(x).sum().backward()
    assert all(one.grad is not None for one in network.parameters() if one.requires_grad)


def test_a_shared_parameter_stays_shared() -> None:
    from torch import nn

    network = nn.Sequential(nn.Linear(4, 4, bias=False), nn.ReLU(), nn.Linear(4, 4, bias=False))
    network[2].weight = network[0].weight
    onnxsmith.shrink(network, {"0.weight": {"0": [0, 2], "1": [0, 2]}})
    assert network[0].weight is network[2].weight
    assert network[2].weight.shape == (2, 2)
    assert network[2].in_features == network[2].out_features == 2


@pytest.mark.parametrize(
    ("kept", "why"),
    [
        ({"val_4": {"1": [0, 1]}}, "the network has no val_4"),
        ({"0.weight": {"0": [9]}}, "0.weight has the shape"),
        ({"0.weight": {"0": [0]}, "1.weight": {"0": [1]}}, "cuts it differently"),
        ([], "the content is not a keep-list"),
    ],
)
def test_a_list_that_does_not_fit_changes_nothing(kept: Any, why: str) -> None:
    from torch import nn

    network = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    network[1].weight = network[0].weight
    before = copy.deepcopy(network.state_dict())
    with pytest.raises(OnnxsmithError, match="prune/other-network") as error:
        onnxsmith.shrink(network, kept)
    assert why in error.value.problem.why
    assert all((before[name] == value).all() for name, value in network.state_dict().items())


def test_the_list_is_read_from_its_file(tmp_path: Path) -> None:
    from torch import nn

    path, network = tmp_path / "kept.json", nn.Linear(4, 4)
    with pytest.raises(OnnxsmithError, match="input/unreadable"):
        onnxsmith.shrink(network, path)
    path.write_text(json.dumps({"weight": {"0": [1, 3]}}))
    onnxsmith.shrink(network, path)
    assert network.weight.shape == (2, 4)
    assert network.bias.shape == (2,)
