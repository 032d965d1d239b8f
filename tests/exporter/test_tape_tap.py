"""Modules that cannot be traced, as sides of a comparison by layer: every operation of the run is on tape."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from torch import nn

from onnxsmith.exporter.factory import TorchModel
from onnxsmith.exporter.inputs.module_program import build
from onnxsmith.exporter.taps.tape_tap import TapeTap
from onnxsmith.runtimes.torch_eager import TorchEager


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, turns: int) -> torch.Tensor:
        for _ in range(turns):
            x = torch.relu(self.linear(x))
        if bool(x.sum() > 0):
            x = x * 2
        return x


class Outer(nn.Module):
    """TorchScript inside Python, numbers from tensors, memory written over by views, and a tensor from NumPy."""

    def __init__(self) -> None:
        super().__init__()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            self.inner = torch.jit.script(Inner())
        self.last = nn.Linear(8, 8)
        self.register_buffer("count", torch.zeros(8))

    def forward(self, x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
        self.count += 1  # type: ignore[operator]
        y = self.inner(x, int(turns))
        y = torch.from_numpy(y.numpy().copy()) + self.count
        y[:, :4].mul_(3)
        left, right = y.chunk(2, 1)
        left.add_(right)
        result: torch.Tensor = self.last(y)
        return result


def recorded() -> tuple[TapeTap, dict[str, np.ndarray], np.ndarray]:
    torch.manual_seed(0)
    module = Outer().eval()
    args = (torch.randn(3, 8), torch.tensor(2))
    program = build(TorchModel(module, args), {}).program
    feeds = {port.name: arg.numpy() for port, arg in zip(program.signature.inputs, args, strict=True)}
    with TorchEager().prepare(program) as session:
        wanted = np.asarray(session.run(feeds)["output"])
    return TapeTap(program, "it", feeds), feeds, wanted


def test_played_again_it_gives_what_the_module_gives() -> None:
    tap, feeds, wanted = recorded()
    for _ in range(2):
        np.testing.assert_array_equal(tap.values(feeds, ["output"])["output"], wanted)


def test_what_scripted_modules_compute_is_there_with_the_module_of_its_weights() -> None:
    tap, _, _ = recorded()
    steps = [step for step in tap.outline.steps if step.op.startswith("aten.addmm")]
    assert [step.module for step in steps][-1] == "last"
    assert len(steps) == 3
    assert all("test_tape_tap.py:" in step.source for step in tap.outline.steps if step.source)


def test_what_comes_from_numpy_is_said_and_still_depends_on_the_inputs() -> None:
    tap, _, _ = recorded()
    assert "come from outside PyTorch" in tap.notes[0]
    assert "output" in tap.outline.moving


def test_a_tensor_written_over_by_a_view_is_read_with_what_was_written() -> None:
    tap, feeds, wanted = recorded()
    last = tap.outline.steps[-1]
    steps, boundary = tap.outline.segment("output", ())
    assert any(step.op.startswith("aten.mul_") for step in steps)
    assert any(step.op.startswith("aten.add_") for step in steps)
    values = tap.values(feeds, tap.outline.tensors())
    given = {name: value for name, value in values.items() if name in boundary and name != "output"}
    again = tap.forced(feeds, given, ["output"])["output"]
    np.testing.assert_array_equal(again, wanted)
    assert last.outputs == ("output",)


def test_what_is_given_is_computed_with() -> None:
    tap, feeds, _ = recorded()
    step = next(step for step in tap.outline.steps if step.outputs == ("output",))
    before = next(name for name in step.inputs if tap.outline.types[name].shape == (3, 8))
    zeros = np.zeros((3, 8), np.float32)
    module = tap._program.module
    bias = module.last.bias.detach().numpy()  # type: ignore[union-attr]
    found = np.asarray(tap.forced(feeds, {before: zeros}, ["output"])["output"])
    np.testing.assert_allclose(found, np.broadcast_to(bias, (3, 8)), rtol=1e-6)


def test_in_float64_it_is_near_what_it_is_in_float32() -> None:
    tap, feeds, wanted = recorded()
    exact = np.asarray(tap.exact(feeds, {}, "output"))
    assert exact.dtype == np.float64
    np.testing.assert_allclose(exact, wanted, rtol=1e-4, atol=1e-5)
