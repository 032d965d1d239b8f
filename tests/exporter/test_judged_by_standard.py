"""A graph that onnxruntime refuses, or on which its kernel fails, is judged by the reference evaluator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from onnxscript import opset18 as op
from torch import nn

import onnxsmith
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.settings import Verify
from onnxsmith.exporter.translating.register import forget, registered


@torch.library.custom_op("test_standard::centred", mutates_args=())
def centred(x: torch.Tensor) -> torch.Tensor:
    """Subtracts the mean of the axes behind the second: here, of no axis."""
    return torch.zeros_like(x)


@centred.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


class Centred(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.test_standard.centred(x) + x.sin()


def fails(x: Any) -> Any:
    """Has a kernel in onnxruntime that takes three axes or more."""
    one, zero = op.Constant(value_floats=[1.0] * 3), op.Constant(value_floats=[0.0] * 3)
    return op.InstanceNormalization(x, one, zero)


def differs(x: Any) -> Any:
    return op.Add(fails(x), op.Constant(value_float=1.0))


def is_refused(x: Any) -> Any:
    """Has a kernel in onnxruntime that refuses an even size."""
    axes = op.Constant(value_ints=[2, 3])
    return op.Sub(x, op.Squeeze(op.LRN(op.Unsqueeze(x, axes), size=2, alpha=0.0, bias=1.0), axes))


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    yield
    for one in registered():
        forget(one.target)


def exported(translation: Any, **options: Any) -> Any:
    onnxsmith.register("test_standard::centred", translation)
    return onnxsmith.export(Centred(), (torch.rand(2, 3),), dynamic={}, **options)


@pytest.mark.parametrize("translation", [fails, is_refused])
def test_the_reference_evaluator_judges(translation: Any) -> None:
    result = exported(translation)
    assert result.report.verdict is Verdict.DONE, result.report.problems
    assert "run on reference: onnxruntime refused or failed: " in result.report.headline


def test_a_wrong_graph_is_found_there() -> None:
    assert exported(differs).report.verdict is Verdict.DIFFERENT


def test_a_named_runtime_is_kept_to() -> None:
    assert exported(fails, verify=Verify(runtime="onnxruntime")).report.verdict is Verdict.DIFFERENT
