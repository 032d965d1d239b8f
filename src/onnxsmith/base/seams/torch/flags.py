"""Sets the flags by which code chooses between the path of a call and the path of a trace.

Compared with torch 2.11 to 2.14. If a flag is gone, code that reads it takes the path of a call. Without the name in
`Distribution`, distributions check their parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import torch

from onnxsmith.base.seams.base import alone, private, replaced, replaced_at

_FLAGS = ("_is_compiling_flag", "_is_exporting_flag")
_ONNX = "torch.onnx._internal.exporter._flags:_is_onnx_exporting"
_PATCH = "torch.fx.experimental._config:patch"
REACHES = (
    *(f"torch.compiler:{name}" for name in _FLAGS),
    _ONNX,
    _PATCH,
    "torch.distributions:Distribution._validate_args",
)


@contextmanager
def exporting(value: bool) -> Iterator[None]:
    """Inside, `torch.compiler.is_exporting()`, `is_compiling()` and `torch.onnx.is_in_onnx_export()` return `value`."""
    with ExitStack() as stack:
        stack.enter_context(exporting_to_onnx(value))
        for flag in _FLAGS:
            stack.enter_context(replaced(torch.compiler, flag, value))
        yield


def exporting_to_onnx(value: bool) -> AbstractContextManager[None]:
    """Inside, `torch.onnx.is_in_onnx_export()` returns `value`. torch.export does not set it."""
    return replaced_at(_ONNX, value)


@contextmanager
def without_contraction_paths() -> Iterator[None]:
    """Inside, einsum multiplies its operands from left to right. The package opt_einsum, where it is installed, looks
    for a shorter order and takes the sizes as Python numbers, which fixes every axis."""
    with alone():
        paths = torch.backends.opt_einsum
        was_enabled = paths.enabled
        paths.enabled = was_enabled and not paths.is_available()
        try:
            yield
        finally:
            paths.enabled = was_enabled


@contextmanager
def without_kernels() -> Iterator[None]:
    """Inside, nn.TransformerEncoderLayer and nn.MultiheadAttention compute by their formulas."""
    with alone():
        was_enabled = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            yield
        finally:
            torch.backends.mha.set_fastpath_enabled(was_enabled)


def one_symbol_a_dimension() -> AbstractContextManager[Any]:
    """Inside, dimensions that have one size in the example are not taken for one dimension. Without the setting they
    are."""
    patch = private(_PATCH)
    return nullcontext() if patch is None else patch(use_duck_shape=False)


@contextmanager
def unchecked_distributions() -> Iterator[None]:
    """Inside, a new `torch.distributions` object does not check the values of its parameters."""
    with replaced(torch.distributions.Distribution, "_validate_args", False):
        yield
