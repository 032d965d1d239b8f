"""Eager PyTorch is called with named arrays, and nothing that it does outlives the call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import onnxsmith
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure.signature import Port, Signature
from onnxsmith.runtimes.base import get
from onnxsmith.runtimes.torch_eager import TorchProgram, to_array, to_tensor
from tests.conftest import Refused

X = np.array([1, 2, 3], np.float32)


def program(
    module: torch.nn.Module,
    *,
    inputs: Sequence[Port] = (Port("x", "float", ("n",)),),
    outputs: Sequence[str] = ("y",),
    leaves: Sequence[Any] = (None,),
) -> TorchProgram:
    ports = tuple(Port(name, "float", ("n",)) for name in outputs)
    named: list[str | None] = [port.name for port in inputs]
    names = named + [None] * (len(leaves) - len(inputs))
    return TorchProgram(module, Signature(tuple(inputs), ports), leaves, names, lambda items: (tuple(items), {}))


class Calls(torch.nn.Module):
    """A module whose forward is the given function."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def run(module: torch.nn.Module, x: np.ndarray = X, **more: Any) -> dict[str, Any]:
    with get("torch-eager").prepare(program(module, **more)) as session:
        return session.run({"x": x})


@pytest.mark.parametrize(
    "dtype",
    [
        np.float32, np.float64, np.float16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32,
        np.uint64, np.bool_, np.complex64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz,
        ml_dtypes.float8_e5m2, ml_dtypes.float8_e5m2fnuz,
    ],
)  # fmt: skip
@pytest.mark.parametrize("shape", [(2, 3), (), (0,), (1,)], ids=str)
def test_arrays_become_tensors_and_back_to_the_bit(dtype: type, shape: tuple[int, ...]) -> None:
    array = (np.arange(int(np.prod(shape))) % 2 + 1).astype(dtype).reshape(shape)
    tensor = to_tensor(array)
    found = to_array(tensor)
    assert tuple(tensor.shape) == shape
    assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes())


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_dtypes_that_numpy_lacks_mean_the_same_in_torch(dtype: type) -> None:
    assert to_tensor(np.array([0.5, -2], dtype)).to(torch.float32).tolist() == [0.5, -2]


@pytest.mark.parametrize("array", [np.arange(6.0).reshape(2, 3).T, np.arange(6.0)[::-1], np.broadcast_to(1.0, (2, 2))])
def test_any_layout_of_an_array_is_taken(array: np.ndarray) -> None:
    assert to_tensor(array).tolist() == array.tolist()


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (torch.arange(6.0).reshape(2, 3).T, [[0, 3], [1, 4], [2, 5]]),
        (torch.tensor([1 + 2j]).conj(), [1 - 2j]),
        (torch.ones(2, requires_grad=True), [1, 1]),
        (5, 5),
        (True, True),
        (torch.arange(4, dtype=torch.bfloat16)[::2], [0, 2]),
    ],
)
def test_any_result_becomes_an_array(value: Any, wanted: Any) -> None:
    assert to_array(value).tolist() == wanted


def test_outputs_come_by_name() -> None:
    found = run(Calls(lambda x: {"b": x + 1, "a": [x * 2, None]}), outputs=("p", "q"))
    assert {name: value.tolist() for name, value in found.items()} == {"p": [2, 3, 4], "q": [2, 4, 6]}


def test_constants_are_given_along() -> None:
    assert run(Calls(lambda x, k: x * k), leaves=(None, 10))["y"].tolist() == [10, 20, 30]


def test_no_gradient_is_kept() -> None:
    seen: list[bool] = []
    run(Calls(lambda x: (seen.append(torch.is_grad_enabled()), x)[1]))
    assert seen == [False]


def test_a_forward_that_writes_to_its_input_harms_nobody() -> None:
    given = X.copy()
    assert run(Calls(lambda x: x.add_(5)), given)["y"].tolist() == [6, 7, 8]
    assert given.tolist() == [1, 2, 3]


def test_an_output_is_not_the_input() -> None:
    given = X.copy()
    run(Calls(lambda x: x), given)["y"][:] = 0
    assert given.tolist() == [1, 2, 3]


def test_a_forward_that_writes_to_a_constant_harms_nobody() -> None:
    constant = torch.ones(3)
    run(Calls(lambda x, k: k.add_(x)), leaves=(None, constant))
    assert constant.tolist() == [1, 1, 1]


class Stateful(torch.nn.Module):
    """Remembers in every way a module can."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way
        self.register_buffer("buffer", torch.zeros(3))
        self.plain = torch.zeros(3)
        self.count = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        match self.way:
            case "writes to a buffer":
                self.buffer += x
                return self.buffer.clone()
            case "binds a buffer anew":
                self.buffer = self.buffer + x
                return self.buffer
            case "resizes a buffer":
                self.buffer.resize_(6).fill_(0)
                return x + len(self.buffer) - 6
            case "writes to a plain tensor":
                self.plain += x
                return self.plain.clone()
            case "binds a plain tensor anew":
                self.plain = self.plain + x
                return self.plain
            case "adds a buffer":
                if not hasattr(self, "late"):
                    self.register_buffer("late", torch.zeros(3))
                self.late = self.late + x
                return self.late
        self.count += 1
        return x * self.count


@pytest.mark.parametrize(
    "way",
    [
        "writes to a buffer",
        "binds a buffer anew",
        "resizes a buffer",
        "writes to a plain tensor",
        "binds a plain tensor anew",
        "adds a buffer",
        "counts in an attribute",
    ],
)
@pytest.mark.parametrize("inner", [False, True])
def test_each_run_starts_from_the_same_state(way: str, inner: bool) -> None:
    stateful = Stateful(way)
    module = torch.nn.Sequential(torch.nn.Identity(), stateful) if inner else stateful
    session = get("torch-eager").prepare(program(module))
    first, second = (np.asarray(session.run({"x": X})["y"]).tolist() for _ in range(2))
    assert first == second == [1, 2, 3]
    assert (stateful.buffer.tolist(), stateful.plain.tolist(), stateful.count) == ([0, 0, 0], [0, 0, 0], 0)


def test_the_state_is_put_back_after_a_failure(refused: Refused) -> None:
    module = Stateful("writes to a buffer")
    with refused("runtime/failed"):
        run(Calls(lambda x: module(x) @ torch.zeros(7, 7)))
        run(module, np.zeros(4, np.float32))
    assert isinstance(module.buffer, torch.Tensor)


@pytest.mark.parametrize("shared", [True, False])
def test_parameters_stay_the_same_objects(shared: bool) -> None:
    module = torch.nn.Linear(3, 3)
    before = dict(module.named_parameters())
    run(torch.nn.Sequential(module, module) if shared else module)
    assert all(after is before[name] for name, after in module.named_parameters())


def test_a_scripted_module_runs() -> None:
    with pytest.warns(DeprecationWarning, match="jit.trace"):
        module = torch.jit.trace(torch.nn.BatchNorm1d(3).eval(), torch.zeros(2, 3))
    ports = (Port("x", "float", ("n", 3)),)
    assert run(module, np.zeros((2, 3), np.float32), inputs=ports)["y"].shape == (2, 3)


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (Calls(lambda x: x @ torch.zeros(7, 7)), "RuntimeError"),
        (Calls(lambda x: x.nobody), "AttributeError"),
        (Calls(lambda x: (x, x)), "2 outputs"),
    ],
)
def test_a_forward_that_fails_is_told(module: torch.nn.Module, said: str, refused: Refused) -> None:
    with refused("runtime/failed") as refusal:
        run(module)
    assert said in str(refusal.problem)


def test_the_shapes_of_a_failure_are_told(refused: Refused) -> None:
    with refused("runtime/failed") as refusal:
        run(Calls(lambda x: x @ torch.zeros(7, 7)))
    assert refusal.problem.where == "x [3]"


def test_an_array_that_torch_does_not_have_is_told(refused: Refused) -> None:
    ports = (Port("x", "string", ("n",)),)
    with refused("runtime/failed"):
        run(Calls(lambda x: x), np.array(["a"], dtype=object), inputs=ports)


@pytest.mark.parametrize("kind", ["model", "path"])
def test_a_model_of_onnx_is_the_wrong_source(kind: str, refused: Refused, tmp_path: Any) -> None:
    model = from_text('<ir_version: 10, opset_import: ["": 20]>\ng (float x) => (float y) { y = Abs(x) }')
    with refused("runtime/wrong-source"):
        get("torch-eager").prepare(model if kind == "model" else tmp_path / "m.onnx")


def test_feeds_are_checked_like_everywhere(refused: Refused) -> None:
    with refused("run/wrong-dtype"):
        run(Calls(lambda x: x), np.zeros(3))


class CollectsByHooks(torch.nn.Module):
    """Registers hooks in its first call that collect what its layers give, as models of transformers do."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: list[torch.Tensor] = []
        if not hasattr(self, "hooked"):
            self.hooked = True
            self.layer.register_forward_hook(lambda layer, given, result: self.found.append(result))
        self.found = found
        self.layer(x)
        return torch.stack(found)


def test_hooks_of_the_first_call_are_not_registered_twice() -> None:
    module = CollectsByHooks().eval()
    result = onnxsmith.export(module, (torch.rand(2, 3),), dynamic="x:0=batch")
    assert result.ok
    assert [str(size) for size in result.model.graph.outputs[0].shape] == ["1", "batch", "3"]
    assert not module.layer._forward_hooks
