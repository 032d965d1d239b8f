"""A module on another device is copied to the CPU. No device but the CPU is at hand in most places: a mark on a tensor
stands for one there, and `pytest -m gpu` asks a real one."""

from __future__ import annotations

import copy
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.seams.torch import memo
from onnxsmith.compat import torch_export
from onnxsmith.exporter.factory import TorchModel
from onnxsmith.exporter.tracing import on_cpu as placing
from onnxsmith.exporter.tracing.torch_logging import quiet
from onnxsmith.runtimes.torch_eager import to_array

CUDA = pytest.param("cuda", marks=pytest.mark.gpu("torch"))


class Held:
    """An object of the user that holds a tensor."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tables = {"first": [tensor]}


class Net(torch.nn.Module):
    """Tensors in all places: parameters, two of them tied, a buffer, an attribute, an object."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.register_buffer("scale", torch.full((4,), 2.0))
        self.plain = torch.arange(4.0)
        self.held = Held(torch.ones(4) / 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        table = self.held.tables["first"][0]
        return self.second(torch.relu(self.first(x)) * self.scale + self.plain) * table


def tensors(net: Net) -> list[torch.Tensor]:
    return [*net.parameters(), *net.buffers(), net.plain, net.held.tables["first"][0]]


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a module's tensors on a device that exists in name only."""
    away: dict[int, torch.Tensor] = {}
    monkeypatch.setattr(placing, "is_away", lambda tensor: id(tensor) in away)
    return lambda found: away.update({id(one): one for one in found})


def test_a_model_on_the_cpu_is_the_model() -> None:
    model = TorchModel(Net(), (torch.ones(2, 4),))
    assert placing.on_cpu(model) is model


def test_the_copy_has_no_tensor_of_the_module(marked: Any) -> None:
    net, x = Net(), torch.ones(2, 4)
    marked([*tensors(net), x])
    model = placing.on_cpu(TorchModel(net, (x,), {"mask": {"a": x}}))
    mine = {id(one) for one in tensors(net)}
    assert not mine & {id(one) for one in tensors(model.module)}
    assert model.module.second.weight is model.module.first.weight
    assert model.kwargs["mask"]["a"] is model.args[0] is not x
    assert isinstance(model.module.first.weight, torch.nn.Parameter)
    assert torch.equal(model.module(model.args[0]), net(x))
    assert "a copy on the CPU" in model.notes[0]


def test_tensors_are_not_looked_for_in_modules_of_python() -> None:
    net = torch.nn.Linear(2, 2)
    net.library = torch  # type: ignore[assignment]
    assert {id(one) for one in placing._tensors(net)} == {id(one) for one in net.parameters()}


def test_a_lazy_module_stays_without_values(marked: Any) -> None:
    net = torch.nn.LazyLinear(3)
    marked(net.parameters())
    model = placing.on_cpu(TorchModel(net, (torch.ones(2, 4),)))
    assert torch.nn.parameter.is_lazy(model.module.weight)
    assert model.module(*model.args).shape == (2, 3)


def test_a_compiled_module_is_copied(marked: Any) -> None:
    with quiet():
        net = torch.jit.script(torch.nn.Linear(4, 4))
    marked(net.parameters())
    x = torch.ones(2, 4)
    model = placing.on_cpu(TorchModel(net, (x,)))
    assert model.module is not net
    assert torch.equal(model.module(x), net(x))


def test_a_module_that_cannot_be_copied_is_refused(marked: Any) -> None:
    net = Net()
    net.lock = threading.Lock()
    marked(tensors(net))
    with pytest.raises(OnnxsmithError) as error:
        placing.on_cpu(TorchModel(net, (torch.ones(2, 4),)))
    assert error.value.problem.id == "export/device"
    assert "lock" in error.value.problem.why


def test_a_program_is_copied(marked: Any) -> None:
    with quiet():
        program = torch.export.export(Net(), (torch.ones(2, 4),))
    assert placing.program_on_cpu(program) is program
    marked(program.state_dict.values())
    copied = placing.program_on_cpu(program)
    assert copied is not program
    x = torch.randn(2, 4)
    assert torch.equal(copied.module()(x), program.module()(x))


def test_forward_that_mixes_devices_says_what_to_write() -> None:
    class Fixed(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("Expected all tensors to be on the same device, but found at least two devices")

    with pytest.raises(OnnxsmithError) as error:
        onnxsmith.export(Fixed(), (torch.ones(2),))
    assert "device=x.device" in error.value.problem.fix


@pytest.mark.parametrize("device", [CUDA])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_module_on_a_device_is_exported_and_stays_there(device: str, dtype: torch.dtype, tmp_path: Path) -> None:
    net = Net().to(dtype).eval()
    net.plain, table = net.plain.to(dtype), net.held.tables["first"]
    table[0] = table[0].to(dtype)
    here = copy.deepcopy(net)
    net = net.to(device)
    net.plain, table[0] = net.plain.to(device), net.held.tables["first"][0].to(device)
    x = torch.randn(3, 4, dtype=dtype)
    result = onnxsmith.export(net, (x.to(device),), output=tmp_path / "m.onnx", dynamic={"x": {0: "batch"}})
    assert result.report.verdict.exit_code == 0, result.report.headline
    assert all(one.device.type == device for one in tensors(net))
    assert net(x.to(device)).device.type == device
    found = onnxsmith.run(tmp_path / "m.onnx", {"x": to_array(x)}).outputs
    wanted = here(x).float().detach().numpy()
    np.testing.assert_allclose(np.asarray(next(iter(found.values())), np.float32), wanted, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("device", [CUDA])
def test_a_module_on_a_device_is_compared(device: str, tmp_path: Path) -> None:
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU()).to(device).eval()
    x = torch.randn(1, 3, 8, 8, device=device)
    onnxsmith.export(net, (x,), output=tmp_path / "m.onnx")
    result = onnxsmith.compare((net, (x,)), tmp_path / "m.onnx", per_layer=True)
    assert result.report.verdict.exit_code == 0
    with torch.no_grad():
        net[0].weight[0] *= 1.5
    assert onnxsmith.compare((net, (x,)), tmp_path / "m.onnx").report.verdict.exit_code == 1


@pytest.mark.parametrize("device", [CUDA])
def test_programs_and_compiled_modules_of_a_device(device: str, tmp_path: Path) -> None:
    class Made(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + torch.arange(4, device=x.device) * torch.ones(4, device=x.device)

    net, x = Made().to(device), torch.randn(2, 4, device=device)
    with quiet():
        program, scripted = torch.export.export(net, (x,)), torch.jit.trace(net, (x,))
    result = onnxsmith.export(net, (x,), output=tmp_path / "m.onnx")
    assert result.report.verdict.exit_code == 0
    assert onnxsmith.compare(program, tmp_path / "m.onnx").report.verdict.exit_code == 0
    with pytest.raises(OnnxsmithError, match=r"torch\.jit\.trace"):  # its graph holds the device's name
        onnxsmith.export(scripted, (x,))


@pytest.mark.parametrize("device", [CUDA])
def test_diagnose_takes_a_module_of_a_device(device: str) -> None:
    net = Net().to(device)
    net.plain, net.held = net.plain.to(device), Held(torch.ones(4, device=device))
    assert onnxsmith.diagnose(net, (torch.randn(2, 4, device=device),)).report.verdict.exit_code == 0


@pytest.mark.parametrize("device", [CUDA])
def test_torch_export_takes_modules_and_programs_of_a_device(device: str, tmp_path: Path) -> None:
    net, x = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()).to(device).eval(), torch.randn(2, 4)
    with quiet():
        program = torch.export.export(net, (x.to(device),))
    torch_export(net, (x.to(device),), tmp_path / "module.onnx")
    torch_export(program, (), tmp_path / "program.onnx")
    assert next(net.parameters()).device.type == device
    wanted = net(x.to(device)).detach().cpu().numpy()
    for name in ("module.onnx", "program.onnx"):
        (port,) = onnxsmith.load(tmp_path / name).graph.inputs
        (found,) = onnxsmith.run(tmp_path / name, {port.name: to_array(x)}).outputs.values()
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("device", [CUDA])
def test_caches_keep_the_kernels_of_a_device(device: str) -> None:
    """A machine with CUDA has its dispatch keys; an export there is as without the caches."""
    keys = [torch._C.DispatchKey.CPU, torch._C.DispatchKey.CUDA, torch._C.DispatchKey.AutogradCUDA]
    assert memo._of_this_machine(keys) == keys


class Raising:
    """Answers no question itself."""

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(name)

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("equal")

    def __bool__(self) -> bool:
        raise RuntimeError("true")

    __hash__ = None  # type: ignore[assignment]


class Unmeasured(tuple[Any, ...]):
    __slots__ = ()

    def __len__(self) -> int:
        raise NotImplementedError


class Guarded:
    __slots__ = ("tensor",)

    def __init__(self) -> None:
        self.tensor = torch.ones(3)

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        raise RuntimeError("attributes")


class Strange(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.held = [Raising(), Unmeasured((1, 2)), Guarded()]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.held[2].tensor


def test_objects_that_answer_in_their_own_way() -> None:
    assert onnxsmith.export(Strange(), (torch.rand(2, 3),), strategy="torch-export").ok
