"""prune: models of torch, and the modules cut alike."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import onnxsmith
from onnxsmith.base.report.parts.pruning import Pruning
from onnxsmith.base.report.verdict import Verdict

pytestmark = pytest.mark.torch


def test_the_module_is_cut_like_the_file(tmp_path: Path) -> None:
    import torch
    from torch import nn

    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3, groups=16, bias=False),
        nn.BatchNorm2d(16, affine=False),
        nn.Conv2d(16, 12, 1, groups=4), nn.ReLU(), nn.Flatten(), nn.Linear(12 * 16, 10), nn.ReLU(), nn.Linear(10, 4),
    ).eval()  # fmt: skip
    x = torch.randn(1, 3, 8, 8)
    onnxsmith.export(network, (x,), output=tmp_path / "net.onnx", input_names=["x"], simplify=False)
    small, kept = tmp_path / "small.onnx", tmp_path / "kept.json"
    result = onnxsmith.prune(tmp_path / "net.onnx", small, share=0.5, keep_list=kept, measure_time=False)
    assert result.report.verdict is Verdict.DONE
    onnxsmith.shrink(network, kept)
    assert network[3].weight.shape == (8, 1, 3, 3)
    assert network[5].weight.shape == (8, 2, 1, 1)
    ours = network(x).detach().numpy()
    theirs = onnxsmith.run(small, {"x": x.numpy()}).outputs
    np.testing.assert_allclose(next(iter(theirs.values())), ours, rtol=1e-4, atol=1e-5)


def test_a_transformer_is_cut_like_its_file(tmp_path: Path) -> None:
    """The exporter stores the transposed weight of a Linear on three axes, under another name."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.heads = 4
            self.norm, self.qkv, self.out = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 32)
            self.wide, self.narrow = nn.Linear(32, 64), nn.Linear(64, 32)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            q, k, v = self.qkv(self.norm(x)).view(x.shape[0], 16, 3, self.heads, 8).permute(2, 0, 3, 1, 4).unbind(0)
            weights = (q @ k.transpose(-1, -2) / 8**0.5).softmax(-1)
            x = x + self.out((weights @ v).transpose(1, 2).flatten(2))
            result: torch.Tensor = x + self.narrow(self.wide(x).relu())
            return result

    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(10, 32), Block(), Block(), nn.Linear(32, 5)).eval()
    x = torch.randn(2, 16, 10)
    onnxsmith.export(network, (x,), output=tmp_path / "net.onnx", input_names=["x"], simplify=False)
    small, kept = tmp_path / "small.onnx", tmp_path / "kept.json"
    result = onnxsmith.prune(tmp_path / "net.onnx", small, share=0.5, keep_list=kept, measure_time=False)
    assert result.report.verdict is Verdict.DONE
    found = json.loads(kept.read_text())
    assert {"1.qkv.weight", "1.qkv.bias", "1.out.weight", "2.wide.weight", "2.narrow.weight"} <= set(found)
    onnxsmith.shrink(network, found)
    for index in (1, 2):
        setattr(network[index], "heads", 2)  # noqa: B010 — modules have no type here
    theirs = onnxsmith.run(small, {"x": x.numpy()}).outputs
    np.testing.assert_allclose(next(iter(theirs.values())), network(x).detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("simplify", [True, False])
def test_heads_of_a_transformer(tmp_path: Path, simplify: bool) -> None:
    """One linear layer makes queries, keys and values; the heads are the middle part of its channels."""
    import torch
    from torch import nn

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.qkv, self.out = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 32)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            n, t, d = x.shape
            q, k, v = self.qkv(self.norm(x)).reshape(n, t, 3, 4, d // 4).permute(2, 0, 3, 1, 4)
            made = nn.functional.scaled_dot_product_attention(q, k, v)
            result: torch.Tensor = x + self.out(made.transpose(1, 2).reshape(n, t, d))
            return result

    torch.manual_seed(0)
    path = tmp_path / "net.onnx"
    onnxsmith.export(Attention().eval(), (torch.randn(2, 5, 32),), output=path, simplify=simplify)
    result = onnxsmith.prune(path, share=0.5, measure_time=False)
    assert result.report.verdict is Verdict.DONE
    part = next(one for one in result.report.parts if isinstance(one, Pruning))
    assert (96, 48) in {(one.before, one.after) for one in part.layers}
