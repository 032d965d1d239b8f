"""`state`: tensors that forward changes become inputs and outputs, and are handed from call to call."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.base.report.parts.verification import OutputCheck, State, Verification
from onnxsmith.exporter.factory import TorchModel
from onnxsmith.exporter.inputs import module_program as programs
from onnxsmith.exporter.state.state_arguments import carrying
from onnxsmith.exporter.state.state_feeding import Feeding
from onnxsmith.graph.structure.signature import signature
from onnxsmith.runtimes.base import Session
from onnxsmith.verification.explore import Run
from onnxsmith.verification.inputs.generate import Feed


class Stream(nn.Module):
    """A convolution over a stream: the cache has the last two samples, `count` the calls."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.zeros(1, 3, 2))
        self.register_buffer("count", torch.tensor(0))
        self.conv = nn.Conv1d(3, 3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        whole = torch.cat([self.cache, x], -1)
        self.cache.copy_(whole[..., -2:])
        self.count += 1
        return self.conv(whole) * self.count


class Bound(nn.Module):
    """A recurrence whose state is bound anew, and widened by the first call."""

    def __init__(self, first: torch.Tensor | None, *, buffer: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        if buffer:
            self.register_buffer("h", first)
        else:
            self.h = first

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.h = torch.tanh(self.linear(x) + (0 if self.h is None else self.h))
        return 2 * self.h


class Growing(nn.Module):
    """A cache that every call makes longer, in a list of a submodule."""

    def __init__(self) -> None:
        super().__init__()
        self.past = [torch.zeros(1, 0, 3)]
        self.linear = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.past[0] = torch.cat([self.past[0], self.linear(x)], 1)
        return self.past[0].sum(1)


class Cache:
    def __init__(self, begun: Any) -> None:
        self.layers = [begun]


class Kept(nn.Module):
    """A running sum inside what an attribute holds: `read` gets it there, `write` gives the next one."""

    def __init__(
        self, held: Any, read: Callable[[Any], torch.Tensor], write: Callable[[Any, torch.Tensor], Any]
    ) -> None:
        super().__init__()
        self.held, self.read, self.write = held, read, write

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = self.read(self.held) + x
        self.held = self.write(self.held, found)
        return found


def _cached(cache: Cache, found: torch.Tensor) -> Cache:
    cache.layers[0] = (found, cache.layers[0][1])
    return cache


def _appended(queue: deque[torch.Tensor], found: torch.Tensor) -> deque[torch.Tensor]:
    queue.append(found)
    return queue


ZERO = torch.zeros(1, 4)
INSIDE = [
    Kept((ZERO, ZERO), lambda held: held[0], lambda _, found: (found, found * 2)),
    Kept({"a": [ZERO]}, lambda held: held["a"][0], lambda _, found: {"a": [found]}),
    Kept(Cache((ZERO, ZERO)), lambda held: held.layers[0][0], _cached),
    Kept(deque([ZERO, ZERO], maxlen=2), lambda held: held[-1], _appended),
]


class Outer(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) + 1


class Counting(nn.Module):
    """Keeps a Python number beside its tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("h", torch.zeros(1, 4))
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.h = self.h + x
        self.calls += 1
        return self.h * self.calls


def fed_back(path: Path, inputs: list[torch.Tensor]) -> list[np.ndarray[Any, Any]]:
    """The first output of calls in a row, as a user runs the file: by its metadata alone."""
    session = onnxruntime.InferenceSession(path)
    pairs = json.loads(session.get_modelmeta().custom_metadata_map["onnxsmith.state"])
    kinds = {"float": np.float32, "int64": np.int64}
    state = {one["input"]: np.full(one["shape"], one["initial"]["fill"], kinds[one["dtype"]]) for one in pairs}
    names = [output.name for output in session.get_outputs()]
    found = []
    for x in inputs:
        outputs = dict(zip(names, session.run(None, {"x": x.numpy(), **state}), strict=True))
        found.append(outputs[names[0]])
        state = {one["input"]: outputs[one["output"]] for one in pairs}
    return found


@pytest.mark.parametrize(
    ("make", "shape", "dynamic", "inputs"),
    [
        (Stream, (1, 3, 8), "x:2=t", ["state.cache", "state.count"]),
        (lambda: Bound(torch.zeros(1, 4), buffer=True), (3, 4), "x:0=n", ["state.h"]),
        (lambda: Bound(torch.zeros(1, 4), buffer=False), (1, 4), {"x": {0: "n"}}, ["state.h"]),
        (lambda: Outer(Growing()), (1, 2, 3), "", ["state.inner.past.0"]),
    ],
)
def test_calls_in_a_row(
    tmp_path: Path, make: Callable[[], nn.Module], shape: tuple[int, ...], dynamic: Any, inputs: list[str]
) -> None:
    torch.manual_seed(0)
    module = make().eval()
    result = onnxsmith.export(module, (torch.randn(shape),), output=tmp_path / "m.onnx", dynamic=dynamic, state="auto")
    assert result.ok, result.report
    assert [pair.input for pair in result.report.part(State).pairs] == inputs
    assert result.report.part(State).steps == 6
    assert "dropped" not in result.report.headline
    xs = [torch.randn(shape) for _ in range(4)]
    with torch.no_grad():
        wanted = [module(x).numpy() for x in xs]  # the export left the module's own state as it was
    for ours, theirs in zip(wanted, fed_back(tmp_path / "m.onnx", xs), strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("compared_once")
def test_the_axis_of_a_state_follows_the_batch() -> None:
    torch.manual_seed(0)
    module = Bound(torch.zeros(1, 4), buffer=True)
    result = onnxsmith.export(module, (torch.randn(3, 4),), dynamic="x:0=n", state="h")
    assert result.model is not None
    assert [port.shape for port in signature(result.model).inputs] == [("n", 4), ("n", 4)]


@pytest.mark.usefixtures("compared_once")
def test_names_for_forwards_own_inputs_only() -> None:
    torch.manual_seed(0)
    result = onnxsmith.export(
        Stream(), (torch.randn(1, 3, 8),), state=["c*"], input_names=["audio"], output_names=["made"]
    )
    assert result.model is not None
    found = signature(result.model)
    assert [port.name for port in found.inputs] == ["audio", "state.cache", "state.count"]
    assert [port.name for port in found.outputs] == ["made", "next_state.cache", "next_state.count"]


@pytest.mark.usefixtures("compared_once")
@pytest.mark.parametrize("make", [Stream, lambda: Bound(torch.zeros(1, 4), buffer=False), Counting])
def test_the_headline_names_a_dropped_state(make: Callable[[], nn.Module]) -> None:
    torch.manual_seed(0)
    module = make()
    example = torch.randn(1, 3, 8) if isinstance(module, Stream) else torch.randn(1, 4)
    assert "is dropped" in onnxsmith.export(module, (example,)).report.headline


@pytest.mark.usefixtures("compared_once")
@pytest.mark.parametrize("module", INSIDE)
def test_a_state_inside_what_an_attribute_holds(module: Kept, tmp_path: Path) -> None:
    inputs = [torch.randn(1, 4) for _ in range(3)]
    assert "is dropped" in onnxsmith.export(module, (inputs[0],)).report.headline
    result = onnxsmith.export(module, (inputs[0],), output=tmp_path / "kept.onnx", state="auto")
    assert "dropped" not in result.report.headline
    wanted = [sum(inputs[: number + 1]).numpy() for number in range(3)]  # type: ignore[union-attr]
    for ours, theirs in zip(fed_back(tmp_path / "kept.onnx", inputs), wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)


@pytest.mark.usefixtures("compared_once")
def test_a_state_that_begins_as_none_and_becomes_a_tuple() -> None:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.state = nn.LSTM(4, 4, batch_first=True), None

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y, self.state = self.lstm(x, self.state)
            return y

    example = (torch.randn(2, 3, 4),)
    assert "the state state.0, state.1 is dropped" in onnxsmith.export(Recurrent(), example).report.headline
    with pytest.raises(onnxsmith.OnnxsmithError, match=r"state\.0 holds no tensor") as caught:
        onnxsmith.export(Recurrent(), example, state="auto")
    begun = "self.state = (torch.zeros(1, 2, 4), torch.zeros(1, 2, 4),)"
    assert begun in caught.value.problem.fix


@pytest.mark.usefixtures("compared_once")
def test_a_write_that_nothing_reads_is_no_state() -> None:
    class Logs(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.last = x.mean()
            return x + 1

    assert "dropped" not in onnxsmith.export(Logs(), (torch.randn(3),)).report.headline
    result = onnxsmith.export(nn.Linear(2, 2), (torch.randn(1, 2),), state="auto")
    assert any("no state to pass from call to call" in text for text in result.report.parts[0].notes)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("module", "asked", "what", "fix"),
    [
        (Bound(None, buffer=False), "auto", "h holds no tensor", 'register_buffer("h", torch.zeros(1, 4))'),
        (Bound(None, buffer=True), "h", "h holds no tensor", 'register_buffer("h", torch.zeros(1, 4))'),
        (Counting(), "auto", "keeps more state than h", 'register_buffer("calls"'),
        (Counting(), "cache", "holds no tensor 'cache'", "forward changes: h"),
        (Bound(torch.zeros(2, 1, 1, 4), buffer=True), "auto", "", ""),
    ],
)
def test_what_cannot_be_handed_on(module: nn.Module, asked: str, what: str, fix: str) -> None:
    if not what:
        module.forward = lambda x: setattr(module, "h", x.sum()) or x * module.h  # type: ignore[method-assign,assignment]
        what, fix = "h is float32[2, 1, 1, 4] before the first call", 'register_buffer("h", torch.zeros(()))'
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.export(module, (torch.randn(1, 4),), state=asked)
    assert caught.value.problem.id == "export/state"
    assert what in caught.value.problem.what
    assert fix in caught.value.problem.fix


class Forgets(Session):
    """Computes a call from the first state rightly, and ignores any other state."""

    provider = "test"

    def __init__(self, module: Bound, *, forgets: bool) -> None:
        self._module, self._forgets = module, forgets

    def run(self, feeds: Any) -> Any:
        with torch.no_grad():
            before = torch.zeros(1, 4) if self._forgets else torch.tensor(feeds["state.h"])
            h = torch.tanh(self._module.linear(torch.tensor(feeds["x"])) + before)
        return {"output": (2 * h).numpy(), "next_state.h": h.numpy()}


@pytest.mark.parametrize("forgets", [True, False])
def test_calls_in_a_row_refuse_a_state_that_stays(forgets: bool) -> None:
    torch.manual_seed(0)
    module = Bound(torch.zeros(1, 4), buffer=True).eval()
    x = torch.randn(1, 4)
    checks = tuple(OutputCheck(name, "float", True, 0, 0, 1, 1e-5, "", 4) for name in ("output", "next_state.h"))
    found = Verification("", "", True, True, (), None, 0, checks)
    with carrying(TorchModel(module, (x,)), ["auto"]) as (model, carried):
        feed = Feed("", {}, {"x": x.numpy(), **carried.initial})
        feeding = Feeding(carried, programs.build(model, {}).program)
        after = feeding.compared(found, [Run(feed, {})], Forgets(module, forgets=forgets))
    assert after.differs is forgets
    if forgets:
        assert "in call 2 of 6 in a row" in next(one for one in after.outputs if not one.equal).reason
