"""Objects that hold tensors, flattened and made again."""

from __future__ import annotations

import dataclasses
import types
from collections import OrderedDict
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

import onnxsmith
from onnxsmith.base.report.parts.capture import Capture
from onnxsmith.exporter.inputs import object_flattening


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
    found, _ = object_flattening.flatten(Cache(3))
    paths = [".".join(filter(None, map(object_flattening.step, path))) for path, _ in found]
    assert paths == ["0.key", "0.value", "1.key", "1.value"]


def test_a_length_follows_its_tensor() -> None:
    found, spec = object_flattening.flatten(Cache(3))
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


class Output(OrderedDict[str, Any]):
    """As libraries have it: a dictionary with attributes, registered without names of its parts."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


pytree.register_pytree_node(
    Output, lambda value: (list(value.values()), list(value)), lambda parts, keys: Output(zip(keys, parts, strict=True))
)


@dataclasses.dataclass
class Registered:
    sample: Any
    more: Any = None


pytree.register_pytree_node(
    Registered, lambda value: ([value.sample, value.more], None), lambda parts, _: Registered(*parts)
)


@dataclasses.dataclass(slots=True)
class Slotted:
    sample: Any
    more: Any


@dataclasses.dataclass(frozen=True)
class Frozen:
    sample: Any
    more: Any


class Dictionary(dict[str, Any]):
    """A dictionary of a class that torch does not know, with attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(name) from error


@dataclasses.dataclass
class Both(dict[str, Any]):
    """A dataclass whose fields are items as well, as transformers had it."""

    sample: Any = None
    more: Any = None

    def __post_init__(self) -> None:
        self.update(sample=self.sample, more=self.more)


class Sequence(list[Any]):
    """A list of a class of its own."""

    def __init__(self, sample: Any, more: Any) -> None:
        super().__init__([sample, more])

    sample = property(lambda self: self[0])
    more = property(lambda self: self[1])


class Pair(tuple[Any, ...]):
    """A tuple of a class of its own."""

    __slots__ = ()

    def __new__(cls, sample: Any, more: Any) -> Pair:
        return super().__new__(cls, (sample, more))

    sample = property(lambda self: self[0])
    more = property(lambda self: self[1])


class Gives(torch.nn.Module):
    def __init__(self, make: Any) -> None:
        super().__init__()
        self.make = make

    def forward(self, x: torch.Tensor) -> Any:
        return self.make(sample=x + 1, more=x * 2)


@pytest.mark.usefixtures("compared_once")
@pytest.mark.parametrize("make", [Output, Registered, Slotted, Frozen, Dictionary, Both])
def test_results_of_any_class_are_called_after_their_parts(make: Any) -> None:
    result = onnxsmith.export(Gives(make), (torch.rand(2, 3),), dynamic={"x": {0: "n"}})
    assert result.ok, result.report.problems
    assert [port.name for port in result.report.part(Capture).outputs] == ["sample", "more"]


class Takes(torch.nn.Module):
    def forward(self, given: Any) -> torch.Tensor:
        return given.sample + 2 * given.more  # type: ignore[no-any-return]


@pytest.mark.usefixtures("compared_once")
@pytest.mark.parametrize("make", [Sequence, Pair])
def test_results_without_names_are_numbered(make: Any) -> None:
    result = onnxsmith.export(Gives(make), (torch.rand(2, 3),))
    assert result.ok, result.report.problems
    assert [port.name for port in result.report.part(Capture).outputs] == ["output.0", "output.1"]


@pytest.mark.usefixtures("compared_once")
def test_a_distribution_among_the_results() -> None:
    def checks() -> bool:
        """Whether a new distribution checks its parameters. TorchDynamo, once used, switches that off for good."""
        try:
            torch.distributions.Normal(torch.zeros(1), -torch.ones(1))
        except ValueError:
            return True
        return False

    before = checks()

    class Encoder(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Registered:
            return Registered(torch.distributions.Normal(x, x.exp()))

    result = onnxsmith.export(Encoder(), (torch.rand(2, 3),), dynamic={"x": {0: "n"}})
    assert result.ok, result.report.problems
    assert [port.name for port in result.report.part(Capture).outputs] == ["sample.loc", "sample.scale"]
    assert checks() == before


@pytest.mark.usefixtures("compared_once")
def test_a_class_that_is_registered_after_a_first_export() -> None:
    @dataclasses.dataclass
    class Late:
        sample: Any
        more: Any

    module = Gives(Late)
    assert onnxsmith.export(module, (torch.rand(2, 3),)).ok
    pytree.register_pytree_node(Late, lambda value: ([value.more, value.sample], None), lambda parts, _: Late(*parts))
    result = onnxsmith.export(module, (torch.rand(2, 3),))
    assert [port.name for port in result.report.part(Capture).outputs] == ["more", "sample"]


def test_made_again_an_object_has_its_class_its_items_and_one_tensor_for_two_names() -> None:
    for value in (Both(torch.ones(2), torch.zeros(2)), types.MappingProxyType({"sample": torch.ones(2)})):
        found, spec = object_flattening.flatten(value)
        made = pytree.tree_unflatten([leaf for _, leaf in found], spec)
        assert type(made) is type(value)
        assert list(made) == list(value)
        assert isinstance(made, types.MappingProxyType) or made.sample is made["sample"]


@pytest.mark.usefixtures("compared_once")
def test_tensors_in_a_set_are_named_as_constants() -> None:
    class Sums(torch.nn.Module):
        def forward(self, x: torch.Tensor, given: Any) -> torch.Tensor:
            return x + sum(given)

    result = onnxsmith.export(Sums(), (torch.rand(2), {torch.ones(2)}))
    assert any("class set" in note for note in result.report.part(Capture).notes)


@pytest.mark.usefixtures("compared_once")
@pytest.mark.parametrize("make", [Output, Registered, Slotted, Frozen, Dictionary, Both, Sequence, Pair])
def test_arguments_of_any_class_are_taken_apart(make: Any) -> None:
    given = make(sample=torch.rand(2, 3), more=torch.rand(2, 3))
    result = onnxsmith.export(Takes(), (given,))
    assert result.ok, result.report.problems
    parts = ["given.0", "given.1"] if make in (Sequence, Pair) else ["given.sample", "given.more"]
    assert [port.name for port in result.report.part(Capture).inputs] == parts


def test_no_exception_but_a_problem_leaves_an_export(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise KeyError("something of torch")

    monkeypatch.setattr(object_flattening, "flatten", broken)
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.export(torch.nn.ReLU(), (torch.rand(2),))
    assert caught.value.problem.id == "export/unforeseen"
    assert "something of torch" in caught.value.problem.why


@pytest.mark.usefixtures("compared_once")
def test_another_way_is_tried_after_an_error_that_nobody_foresaw(monkeypatch: pytest.MonkeyPatch) -> None:
    from onnxsmith.exporter.strategies.torch_export import TorchExport

    own = TorchExport.capture

    def broken(self: Any, *args: Any) -> Any:
        if type(self) is TorchExport:
            raise KeyError("something of torch")
        return own(self, *args)

    monkeypatch.setattr(TorchExport, "capture", broken)
    result = onnxsmith.export(torch.nn.ReLU(), (torch.rand(2),))
    assert result.ok
    assert "something of torch" in result.report.part(Capture).tried[0]
