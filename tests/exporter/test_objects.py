"""Objects that hold tensors, flattened and made again."""

from __future__ import annotations

import torch

import onnxsmith
from onnxsmith.exporter import objects
from onnxsmith.report.parts.capture import Capture


class Layer:
    def __init__(self, steps: int) -> None:
        self.keys = torch.rand(1, 2, steps, 4)
        self.values = torch.rand(1, 2, steps, 4)
        self.total_length = steps
        self._window = torch.tensor(9)


class Cache:
    def __init__(self, steps: int) -> None:
        self.layers = [Layer(steps), Layer(steps)]
        self.updated = {0: True}


def test_paths_are_readable_and_what_is_private_stays_inside() -> None:
    found, _ = objects.flatten(Cache(3))
    paths = [".".join(filter(None, map(objects.step, path))) for path, _ in found]
    assert paths == ["0.key", "0.value", "1.key", "1.value"]


def test_a_length_follows_its_tensor() -> None:
    found, spec = objects.flatten(Cache(3))
    made = torch.utils._pytree.tree_unflatten([torch.zeros(1, 2, 5, 4) for _ in found], spec)
    assert isinstance(made, Cache)
    assert [layer.total_length for layer in made.layers] == [5, 5]
    assert made.updated == {0: True}


class Appends(torch.nn.Module):
    def forward(self, x: torch.Tensor, past_key_values: Cache) -> dict[str, object]:
        for layer in past_key_values.layers:
            layer.keys = torch.cat([layer.keys, x], 2)
            layer.values = torch.cat([layer.values, x * 2], 2)
            layer.total_length += x.shape[2]
        return {"x": x + 1, "past_key_values": past_key_values}


def test_a_cache_goes_in_and_comes_out() -> None:
    dynamic = "x:2=new;past_key_values:2=past"
    result = onnxsmith.export(Appends(), (torch.rand(1, 2, 3, 4), Cache(5)), dynamic=dynamic)
    assert result.ok
    part = result.report.part(Capture)
    assert [port.name for port in part.inputs][1:3] == ["past_key_values.0.key", "past_key_values.0.value"]
    assert [port.name for port in part.outputs][:2] == ["output.x", "present.0.key"]


def test_a_dimension_may_be_a_sum() -> None:
    class Joined(torch.nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return torch.cat([a, b]) * mask

    args = (torch.rand(2), torch.rand(3), torch.rand(5))
    result = onnxsmith.export(Joined(), args, dynamic="a:0=m;b:0=n;mask:0=m+n")
    assert result.ok
