"""Branches on data: both sides in one graph, chosen by an If; and inputs for both sides."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
import sympy
import torch
from torch import nn

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.capture import Capture
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.exporter.strategies import _data_sides
from onnxsmith.exporter.tracing.data_branches import implied
from onnxsmith.graph.surgery.alternative_models import either

_BRANCHED = "torch-branched"


class Kept(nn.Module):
    """Nothing is kept: an early return."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        keep = x[x[:, 0] > 2.5]
        if len(keep) == 0:
            return torch.zeros(0, 3)
        y = keep[:, :3] * 2
        return y - y.min()


class Layers(nn.Module):
    """A layer for each side, an inner branch, a check that raises, and a loop that ends early."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean = x.mean()
        for step in range(2):
            if mean > 0.1 * step:
                x = self.a(x)
                break
            if mean < -0.2:
                x = self.b(x)
        if torch.isnan(x).any():
            raise ValueError("not a number")
        return x


class Above(nn.Module):
    """Few inputs take the first side."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.min() > 3:
            return x * 2
        return x + 1


class Never(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if (x * x).sum() < 0:
            return x * 2
        return x + 1


class Largest(nn.Module):
    """A number of a tensor is a size."""

    def forward(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        rows = int(index.max()) + 1 if index.numel() > 0 else 0
        return torch.zeros(rows, 4).index_add(0, index, x)


def _export(module: nn.Module, *example: torch.Tensor, dynamic: str = "x:0=n", strategy: str | None = _BRANCHED):  # type: ignore[no-untyped-def]
    return onnxsmith.export(module.eval(), example, dynamic=dynamic, strategy=strategy)


def _kinds(model: ir.Model) -> list[str]:
    return [node.op_type for node in model.graph]


def test_an_early_return_for_an_empty_selection() -> None:
    result = _export(Kept(), torch.randn(6, 4))
    assert result.ok
    assert _kinds(result.model).count("If") == 1
    assert "NonZero" in _kinds(result.model)  # what both sides need stays before the If
    assert len(result.model.graph.outputs) == 1
    line = Kept.forward.__code__.co_firstlineno + 2
    assert [note for note in result.report.part(Capture).notes if f":{line}" in note and "If" in note]


def test_layers_on_each_side_and_a_check_that_raises() -> None:
    result = _export(Layers(), torch.randn(6, 4))
    assert result.ok
    notes = result.report.part(Capture).notes
    assert [note for note in notes if "raises" in note]
    assert not [note for note in notes if note.startswith("torch captured")]


def test_inputs_are_looked_for_that_take_a_side() -> None:
    found = _export(Above(), torch.randn(6, 4)).report.part(Verification)
    assert found.equal
    assert [label for label in found.runs if "plus" in label]
    assert not [clause for clause in found.untried if "side" in clause]


def test_a_side_that_no_input_takes_is_in_the_headline() -> None:
    result = _export(Never(), torch.randn(6, 4))
    line = Never.forward.__code__.co_firstlineno + 1
    assert f":{line} where its condition is true" in result.report.headline


def test_sides_the_wrong_way_round_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def turned(condition: object, first: ir.Model, second: ir.Model) -> ir.Model:
        both = either(condition, first, second)  # type: ignore[arg-type]
        for node in both.graph:
            if node.op_type == "If":
                branches = node.attributes["then_branch"].as_graph(), node.attributes["else_branch"].as_graph()
                del node.attributes["then_branch"], node.attributes["else_branch"]
                for name, graph in zip(("else_branch", "then_branch"), branches, strict=True):
                    node.attributes[name] = ir.AttrGraph(name, graph)
        return both

    monkeypatch.setattr(_data_sides, "either", turned)
    result = _export(Above(), torch.randn(6, 4))
    assert not result.ok
    assert "DIFFERENT" in result.report.headline


def test_a_wrong_side_that_only_a_search_reaches_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the search for inputs, the wrong side would not be seen."""

    def spoiled(condition: object, first: ir.Model, second: ir.Model) -> ir.Model:
        both = either(condition, first, second)  # type: ignore[arg-type]
        (chosen,) = [node for node in both.graph if node.op_type == "If"]
        branch = chosen.attributes["then_branch"].as_graph()
        twice = ir.node("Neg", [branch.outputs[0]])
        twice.outputs[0].name, twice.outputs[0].type = "spoiled", branch.outputs[0].type
        twice.outputs[0].shape = branch.outputs[0].shape
        branch.append(twice)
        branch.outputs[0] = twice.outputs[0]
        return both

    monkeypatch.setattr(_data_sides, "either", spoiled)
    assert "DIFFERENT" in _export(Above(), torch.randn(6, 4)).report.headline


def test_a_number_of_a_tensor_is_a_size() -> None:
    result = _export(Largest(), torch.randn(5, 4), torch.tensor([0, 2, 1, 2, 0]), dynamic="x:0=n;index:0=n")
    assert result.ok


def test_sides_with_other_dtypes_are_a_problem() -> None:
    class Mixed(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if x.sum() > 0:
                x = x.clone()
                x[0] = 1
                return x.long()
            return x

    with pytest.raises(OnnxsmithError) as caught:
        _export(Mixed(), torch.randn(6, 4))
    assert "dtype" in caught.value.problem.what


class Both(nn.Module):
    """A branch on a size whose sides differ, and one on data in each side."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] > 8:
            x = x[::2]
        keep = x[x[:, 0] > 0]
        if keep.shape[0] == 0:
            return x[:1] * 5
        return keep / keep.sum()


def test_branches_on_sizes_and_on_data() -> None:
    result = _export(Both(), torch.randn(6, 4), strategy=None)
    assert result.ok
    assert "sizes and data" in result.report.part(Capture).how


_COUNT = sympy.Symbol("u0", integer=True, nonnegative=True)
_NUMBER = sympy.Symbol("zuf0", real=True)


@pytest.mark.parametrize(
    ("condition", "known", "wanted"),
    [
        (sympy.Eq(_COUNT, 0), [sympy.Eq(_COUNT, 0)], True),
        (sympy.Eq(_COUNT, 0), [sympy.Ne(_COUNT, 0)], False),
        (_COUNT > 0, [sympy.Eq(_COUNT, 0)], False),
        (_COUNT > 0, [sympy.Ne(_COUNT, 0)], True),
        (_COUNT > 5, [_COUNT > 2], None),
        (_NUMBER > 0, [_NUMBER > 1], None),
        (_COUNT > 0, [], None),
    ],
)
def test_what_follows_from_known_conditions(
    condition: sympy.Basic, known: list[sympy.Basic], wanted: bool | None
) -> None:
    assert implied(condition, known) is wanted


def test_short_lists_of_flags_are_options() -> None:
    class Optioned(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.flags = torch.tensor([True, False, True])
            self.register_buffer("index", torch.tensor([3, 1, 2]))
            self.layer = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for flag in self.flags:
                if flag:
                    x = self.layer(x)
            if self.index[0] > 1:
                x = x + 1
            return x

    result = _export(Optioned(), torch.randn(6, 4), strategy="torch-export")
    assert result.ok
    assert "If" not in _kinds(result.model)


def test_indices_of_a_triangle_follow_the_size() -> None:
    class Pairs(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            left, right = torch.triu_indices(x.shape[0], x.shape[0], 1)
            below = torch.tril_indices(x.shape[0], x.shape[0] + 1, -1)
            return x[left] * x[right] + below.sum()

    assert _export(Pairs(), torch.randn(5, 4), strategy="torch-export").ok


def test_an_einsum_of_three_operands_follows_the_size() -> None:
    class Three(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.einsum("ni,ij,nj->n", x, y, x)

    before = torch.backends.opt_einsum.enabled
    result = _export(Three(), torch.randn(5, 4), torch.randn(4, 4), strategy="torch-export")
    assert result.ok
    assert torch.backends.opt_einsum.enabled == before


@pytest.mark.parametrize("length", [12, 16])
def test_a_fourier_transform_of_any_length(length: int) -> None:
    class Spectrum(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.fft.irfft(torch.fft.rfft(x) * 2, n=x.shape[-1])

    example = torch.from_numpy(np.random.default_rng(0).standard_normal((2, length), np.float32))
    assert onnxsmith.export(Spectrum(), (example,), dynamic="x:0=n,1=length").ok


def test_a_short_range_holds_no_data() -> None:
    class Axes(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            axes = torch.arange(1, x.dim()).tolist()
            return x - x.mean(dim=axes, keepdim=True)

    result = _export(Axes(), torch.randn(5, 4, 3))
    assert result.ok
    assert "If" not in _kinds(result.model)
