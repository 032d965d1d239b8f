"""`dynamic` in every form that torch.export and torch.onnx.export take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn
from torch.export import Dim

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.capture import Capture
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.exporter.inputs.dynamic_axes_syntax import parse
from tests.exports import assert_follows

BATCH = Dim("batch")
X = torch.rand(3, 4)


def shapes(module: nn.Module, *args: Any, kwargs: Any = None, **options: Any) -> dict[str, tuple[Any, ...]]:
    result = onnxsmith.export(module, args, kwargs, strategy="torch-export", **options)
    assert result.ok, result.report.problems
    return {port.name: port.shape for port in result.report.part(Capture).inputs}


class Nested(nn.Module):
    def forward(self, x: Any, times: int, pair: Any, named: Any, flag: Any = None) -> Any:
        return x * times + pair[0] + pair[1] + named["a"] + named["b"]


NESTED = (X, 2, [X, X], {"a": X, "b": X})
ALL = dict.fromkeys(("x", "pair.0", "pair.1", "named.a", "named.b"), ("batch", 4))


@pytest.mark.usefixtures("compared_once")
@pytest.mark.parametrize(
    "dynamic",
    [
        ({0: BATCH}, None, [{0: BATCH}, {0: BATCH}], {"a": {0: BATCH}, "b": {0: BATCH}}),
        [(BATCH, None), None, ((BATCH, 4), [BATCH, Dim.STATIC]), {"a": {0: BATCH}, "b": {0: "batch", 1: 4}}],
        {"x": {0: BATCH}, "times": None, "pair": [{0: BATCH}] * 2, "named": {"b": {0: BATCH}, "a": {0: BATCH}}},
        {"x": {0: "batch"}, "times": Dim.STATIC, "pair": {0: "batch"}, "named": ("batch", None)},
        {"x": {0: "batch"}, "times": 2, "pair": {0: "batch"}, "named": {0: "batch"}},
        {"x": {0: "batch"}, "pair.0": {0: "batch"}, "pair.1": {0: "batch"}, "named": {0: BATCH}},
        "x:0=batch;pair:0=batch;named:0=batch",
        "x:0=batch, pair:0=batch,named:0=batch",
    ],
)
def test_nested_as_the_arguments(dynamic: Any) -> None:
    assert shapes(Nested(), *NESTED, dynamic=dynamic) == ALL


@pytest.mark.usefixtures("compared_once")
def test_part_of_the_tensors_and_none() -> None:
    class Apart(nn.Module):
        def forward(self, x: torch.Tensor, y: Any) -> Any:
            return x * 2, y["a"] + 1, y["b"] * 3

    args = (X, {"a": X, "b": X})
    found = shapes(Apart(), *args, dynamic=({}, {"a": None, "b": {0: BATCH}}))
    assert found == {"x": (3, 4), "y.a": (3, 4), "y.b": ("batch", 4)}
    assert shapes(Apart(), *args, dynamic=(None, None)) == {"x": (3, 4), "y.a": (3, 4), "y.b": (3, 4)}
    names = {"input_names": ["one", "two", "three"]}
    found = shapes(Apart(), *args, dynamic={"one": {0: "n"}, "y": {"b": {0: "m"}}}, **names)
    assert found == {"one": ("n", 4), "two": (3, 4), "three": ("m", 4)}


class Variadic(nn.Module):
    def forward(self, x: torch.Tensor, *others: torch.Tensor, **named: torch.Tensor) -> Any:
        return x + others[0] + others[1] + named["y"]


@pytest.mark.usefixtures("compared_once")
@pytest.mark.parametrize(
    "dynamic",
    [
        {"x": {0: BATCH}, "others": ({0: BATCH}, {0: BATCH}), "named": {"y": {0: BATCH}}},
        {"x": {0: BATCH}, "*others": ({0: BATCH}, {0: BATCH}), "**named": {"y": {0: BATCH}}},
        ({0: BATCH}, ({0: BATCH}, {0: BATCH}), {"y": {0: BATCH}}),
        {"x": {0: BATCH}, "others": {0: BATCH}, "y": {0: BATCH}},
    ],
)
def test_variadic_arguments(dynamic: Any) -> None:
    found = shapes(Variadic(), X, X, X, kwargs={"y": X}, dynamic=dynamic)
    assert found == dict.fromkeys(("x", "others.0", "others.1", "y"), ("batch", 4))


class Point(NamedTuple):
    a: Any
    b: Any


@dataclass
class Registered:
    a: Any
    b: Any


@dataclass
class Plain:
    a: Any
    b: Any


torch.export.register_dataclass(Registered, serialized_type_name="test_dynamic_shapes.Registered")


class Adds(nn.Module):
    def forward(self, both: Any) -> Any:
        return both.a * 2 + both.b


@pytest.mark.usefixtures("compared_once")
@pytest.mark.parametrize("kind", [Point, Registered, Plain])
def test_objects(kind: Any) -> None:
    one = {0: BATCH}
    entries = [one, one], kind(one, one), {"a": one, "b": one}
    for dynamic in [*({"both": entry} for entry in entries), *((entry,) for entry in entries)]:
        assert shapes(Adds(), kind(X, X), dynamic=dynamic) == {"both.a": ("batch", 4), "both.b": ("batch", 4)}


class Layer:
    def __init__(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        self.keys, self.values = keys, values


class Cache:
    """Holds its tensors by layer, as transformers' cache does."""

    def __init__(self, *layers: Layer) -> None:
        self.layers = list(layers)


class Attends(nn.Module):
    def forward(self, x: torch.Tensor, cache: Any) -> Any:
        return sum((x * layer.keys + layer.values for layer in cache.layers), start=x)


@pytest.mark.usefixtures("compared_once")
@pytest.mark.parametrize(
    "entry",
    [
        [[{0: BATCH}] * 3, [{0: BATCH}] * 3],
        {"key_cache": [{0: BATCH}] * 3, "value_cache": [{0: BATCH}] * 3},
        {"keys": [{0: BATCH}] * 3, "values": {0: BATCH}},
        [{"keys": {0: BATCH}, "values": {0: BATCH}}] * 3,
        {"layers": [{"key": {0: BATCH}, "value": {0: BATCH}}] * 3},
        {0: BATCH},
    ],
)
def test_a_cache(entry: Any) -> None:
    found = shapes(Attends(), X, Cache(*(Layer(X, X) for _ in range(3))), dynamic={"x": {0: BATCH}, "cache": entry})
    assert set(found.values()) == {("batch", 4)}
    assert list(found)[1:3] == ["cache.0.key", "cache.0.value"]


@pytest.mark.usefixtures("compared_once")
def test_a_collection_of_torch() -> None:
    collection = torch.export.ShapesCollection()
    collection[X] = (BATCH, None)
    assert shapes(nn.Linear(4, 2), X, dynamic=collection) == {"input": ("batch", 4)}


@pytest.mark.usefixtures("compared_once")
def test_axes_of_outputs_and_lists_as_dynamic_axes_has_them() -> None:
    names = {"input_names": ["image"], "output_names": ["score"]}
    assert shapes(nn.Linear(4, 2), X, dynamic={"image": [0], "score": [0]}, **names) == {"image": ("image.0", 4)}
    assert shapes(nn.Linear(4, 2), X, dynamic={"image": {0: "n"}, "score": {0: "n"}}, **names) == {"image": ("n", 4)}


def test_an_expression() -> None:
    class Pairs(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
            return x + y.reshape(-1, 2).sum(1)

    n = Dim("n")
    assert shapes(Pairs(), torch.rand(3), torch.rand(6), dynamic=({0: n}, {0: 2 * n})) == {"x": ("n",), "y": ("2*n",)}


class Guarded(nn.Module):
    """Computes something else for more than 6 rows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[0] <= 6 else x * 3


@pytest.mark.parametrize("dim", [Dim("n", min=2, max=6), Dim.DYNAMIC(min=2, max=6), Dim.AUTO(min=2, max=6)])
def test_the_limits_of_a_dim_are_kept(dim: Any) -> None:
    result = onnxsmith.export(Guarded(), (X,), dynamic={"x": {0: dim}}, strategy="torch-export")
    assert result.ok, result.report.problems
    sizes = result.report.part(Verification).sizes
    assert sizes is not None
    (seen,) = sizes.values()
    assert len(seen) > 1
    assert all(2 <= size <= 6 for size in seen)


def test_without_limits_the_other_branch_is_found() -> None:
    assert not onnxsmith.export(Guarded(), (X,), dynamic={"x": {0: Dim("n")}}, strategy="torch-export").ok


class Fixes(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(-1, 4) + torch.ones(3, 4)


@pytest.mark.usefixtures("compared_once")
def test_an_axis_that_may_be_fixed_and_one_that_may_not() -> None:
    result = onnxsmith.export(Fixes(), (X,), dynamic={"x": {0: Dim.AUTO}}, strategy="torch-export")
    assert result.ok
    assert any("x:0 left fixed" in note for note in result.report.part(Capture).notes)
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.export(Fixes(), (X,), dynamic={"x": {0: Dim.DYNAMIC}}, strategy="torch-export")
    assert caught.value.problem.id == "export/frozen-axis"


def refusals() -> Iterator[Any]:
    yield {"y": {0: "n"}}, "export/unknown-input", "x"
    yield {"xs": None}, "export/unknown-input", "write 'x'"
    yield {"named": {"aa": {0: "n"}}}, "export/unknown-input", "'a'"
    yield {"pair": [{0: "n"}]}, "export/dynamic-syntax", "2 entries"
    yield {"times": {0: "n"}}, "export/dynamic-syntax", "None"
    yield {"times": Dim.DYNAMIC}, "export/dynamic-syntax", "None"
    yield {"x": {0: 5}}, "export/dynamic-syntax", "[3, 4]"
    yield {"x": {5: "n"}}, "export/dynamic-syntax", "2 dimensions"
    yield {"x": {"0": "n"}}, "export/dynamic-syntax", "number of an axis"
    yield [None] * 9, "export/dynamic-syntax", "9 entries"
    yield {"x": 3.5}, "export/dynamic-syntax", "mapping"


@pytest.mark.parametrize(("dynamic", "id_", "said"), list(refusals()))
def test_refused(dynamic: Any, id_: str, said: str) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.export(Nested(), NESTED, dynamic=dynamic)
    assert caught.value.problem.id == id_
    assert said in str(caught.value)


def test_hints_and_gaps() -> None:
    found = parse({"x": {0: Dim.DYNAMIC, 1: Dim.STATIC, 2: Dim.AUTO, 3: None, 4: 7}})
    assert found.axes == {"x": {0: "x.0", 2: "x.2"}}
    assert found.optional == {("x", 2)}
    assert found.sizes == [("x", 4, 7)]
    assert parse({"x": (None, Dim("n", max=8))}).limits == {"n": (0, 8)}
    assert parse({"x": [0, 2]}).axes == {"x": {0: "x.0", 2: "x.2"}}


class Numbers(nn.Module):
    def __init__(self, of: Any) -> None:
        super().__init__()
        self.of = of

    def forward(self, x: torch.Tensor) -> Any:
        return x * 2, self.of(x)


@pytest.mark.usefixtures("compared_once")
@pytest.mark.parametrize(
    "of",
    [
        lambda x: x.shape[0],
        lambda x: torch.sym_max(*x.shape),
        lambda x: torch.sym_float(x.shape[1]),
        lambda x: torch.sym_not(x.shape[0] == x.shape[1]),
        lambda x: x.shape[0] / 2,
        lambda x: 3,
    ],
)
def test_numbers_that_follow_dynamic_axes_are_outputs(of: Any) -> None:
    module = Numbers(of)
    result = onnxsmith.export(module, (X,), dynamic=({0: Dim.DYNAMIC, 1: Dim.DYNAMIC},), strategy="torch-export")
    assert result.ok, result.report.problems
    assert_follows(result.model, module, *((torch.rand(sizes),) for sizes in ((1, 1), (2, 7), (5, 3), (6, 6))))


def test_a_number_is_no_output_of_a_graph_of_fixed_sizes() -> None:
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.export(Numbers(lambda x: x.shape[0]), (X,))
    assert caught.value.problem.id == "export/no-outputs"
    assert "dynamic" in caught.value.problem.fix


@pytest.mark.usefixtures("compared_once")
def test_a_module_without_inputs() -> None:
    class Constant(nn.Module):
        def forward(self) -> torch.Tensor:
            return torch.ones(3) * 2

    assert onnxsmith.export(Constant(), strategy="torch-export").ok


def test_a_dimension_that_only_an_expression_names() -> None:
    class Pairs(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x[:, ::2] * 2

    h = Dim("h")
    assert shapes(Pairs(), torch.randn(2, 8), dynamic={"x": {1: 2 * h}}) == {"x": (2, "2*h")}
    with pytest.raises(onnxsmith.OnnxsmithError, match="dimension '2\\*h' is 7"):
        shapes(Pairs(), torch.randn(2, 7), dynamic={"x": {1: 2 * h}})
