"""Branches on sizes: both sides as one computation, and traces at sizes that take the other side."""

from __future__ import annotations

import math

import pytest
import sympy
import torch
from torch import nn
from torch.nn import functional

import onnxsmith
from onnxsmith.base.report.parts.capture import Capture
from onnxsmith.exporter.factory import TorchModel
from onnxsmith.exporter.module import source_linting
from onnxsmith.exporter.module.run_observation import observe
from onnxsmith.exporter.tracing.size_branches import SizeBranch, other_sizes


class PaddedBlocks(nn.Module):
    """Softmax over blocks of four, of a length that is padded where it is no multiple of four."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length = x.shape[1]
        pad = (4 - length % 4) % 4
        if pad > 0:
            x = torch.cat([x, x.new_zeros(x.shape[0], pad)], 1)
        return x.reshape(x.shape[0], -1, 4).softmax(2).reshape(x.shape[0], -1)[:, :length]


class Joined(nn.Module):
    """Joins a map with itself at half the size, which is one short where the size is odd."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        half = functional.interpolate(functional.max_pool2d(x, 2), scale_factor=2.0)
        ends = [0] * 4
        for axis in (2, 3):
            if half.shape[axis] != x.shape[axis]:
                ends[7 - 2 * axis] = 1
        return torch.cat([x, functional.pad(half, ends, "replicate")], 1)


class EvenRows(nn.Module):
    """Softmax over pairs of rows; an odd map is stretched to an even number of rows, and back. `int` of a computed size
    fixes it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, columns = x.shape[2:]
        even = int(math.ceil(rows / 2) * 2)
        stretched = even != rows
        if stretched:
            x = functional.interpolate(x, size=(even, columns), mode="bilinear", align_corners=False)
        x = x.reshape(*x.shape[:2], even // 2, 2, columns).softmax(3).reshape(*x.shape[:2], even, columns)
        if stretched:
            x = functional.interpolate(x, size=(rows, columns), mode="bilinear", align_corners=False)
        return x


class Halves(nn.Module):
    """Computes otherwise for an odd length: neither side is right for all."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[1] % 2:
            x = x.flip(1) * 2
        return x.cumsum(1)


def test_the_side_with_the_pad_is_right_for_all_lengths() -> None:
    result = onnxsmith.export(PaddedBlocks(), (torch.rand(2, 12),), dynamic="x:1=length")
    assert result.ok
    capture = result.report.part(Capture)
    assert "at other sizes" in capture.how
    line = PaddedBlocks.forward.__code__.co_firstlineno + 3
    assert [one for one in capture.notes if one.startswith("traced at length = 13") and f":{line} " in one]


def test_a_computed_size_is_not_made_a_number() -> None:
    result = onnxsmith.export(EvenRows(), (torch.rand(2, 3, 6, 4),), dynamic="x:2=rows")
    assert result.ok
    capture = result.report.part(Capture)
    assert "at other sizes" in capture.how
    assert [one for one in capture.notes if "torch.sym_int(math.ceil(rows / 2) * 2)" in one]


def test_a_number_that_depends_on_sizes_is_computed() -> None:
    result = onnxsmith.export(Joined(), (torch.rand(1, 2, 8, 8),), dynamic="x:2=height,3=width")
    assert result.ok
    capture = result.report.part(Capture)
    assert [one for one in capture.notes if "torch.sym_min" in one]
    assert "If" not in {node.op_type for node in result.model.graph}


def test_a_side_that_is_wrong_for_the_example_is_refused() -> None:
    result = onnxsmith.export(Halves(), (torch.rand(2, 12),), dynamic="x:1=length", strategy="torch-resized")
    assert not result.ok
    assert "DIFFERENT" in result.report.headline


def test_sizes_of_most_remainders_come_first() -> None:
    h, w, b = (sympy.Symbol(name, integer=True, positive=True) for name in "hwb")
    axes = {"h": ("x", 2), "w": ("x", 3), "b": ("x", 0)}
    asked = [sympy.Eq(sympy.Mod(h, 8), 0), sympy.Eq(sympy.Mod(w, 8), 0), b < 64]
    branches = [SizeBranch("m.py:1", one, axes) for one in asked]
    found = other_sizes(
        branches, {"n": 2, "height": 16, "width": 24}, {("x", 0): "n", ("x", 2): "height", ("x", 3): "width"}
    )
    assert found[0] == {"n": 3, "height": 17, "width": 25}
    assert {"n": 65, "height": 16, "width": 24} in found
    assert other_sizes([], {"height": 16}, {("x", 2): "height"}) == []


def test_conditions_that_hold_are_not_turned() -> None:
    h = sympy.Symbol("h", integer=True, positive=True)
    branch = SizeBranch("m.py:1", h <= 16, {"h": ("x", 2)})
    assert branch.holds({("x", 2): 16})
    assert not branch.holds({("x", 2): 17})
    assert branch.numbers() == {16}
    assert not branch.is_of_remainder


class Choices(nn.Module):
    """Branches on sizes, of which all but the last two choose whole numbers."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        size, side = x.shape[1], 0
        step = 2 if size > 4 and size != 6 else 1
        if size % 2:
            side += 3
        else:
            side = size
        scale = 0.5 if size < 3 else 1.5
        if size >= 9:
            x = x * 2
        return x * step + side * scale


def test_patches_only_where_both_sides_choose_whole_numbers() -> None:
    x = torch.rand(1, 5)
    module = Choices()
    seen = observe(TorchModel(module, (x,), {}))
    found = [
        (remark, patch)
        for _, remark, patch in source_linting.patched(module, seen.calls, lambda file: file == __file__)
        if remark.problem.id == "forward/size-compared"
    ]
    first = Choices.forward.__code__.co_firstlineno
    assert sorted(remark.node.lineno - first for remark, _ in found) == [2, 3]
    for size in range(1, 12):
        for _, patch in found:
            names = {"torch": torch, "size": size, "side": 0}
            exec("\n".join(line.removeprefix(" " * 8) for line in patch.text.splitlines()), names)
            if "step" in names:
                assert names["step"] == (2 if size > 4 and size != 6 else 1)
            else:
                assert names["side"] == (3 if size % 2 else size)


class Reflected(nn.Module):
    """A short input is made longer before it is reflected."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length, wanted = x.shape[-1], 6
        if length <= wanted:
            x = functional.pad(x, (0, wanted - length + 1))
        return functional.pad(x, (wanted, wanted), "reflect")


@pytest.mark.parametrize("size", [4, 6, 9])
def test_a_pad_in_a_branch_has_a_width_that_may_be_none(size: int) -> None:
    result = onnxsmith.export(Reflected(), (torch.rand(2, size),), dynamic="x:0=b,1=n", strategy="torch-resized")
    assert result.ok
    assert any("sym_min" in note for note in result.report.part(Capture).notes)
