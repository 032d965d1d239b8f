"""Sets the flags by which code tells an export from a normal call.

Compared with torch 2.11 to 2.14. If a flag is gone, code that reads it takes the path of a normal call. If the name in
`Distribution` is gone, distributions check their parameters.
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
    """Makes `torch.compiler.is_exporting()`, `is_compiling()` and `torch.onnx.is_in_onnx_export()` return `value`."""
    with ExitStack() as stack:
        stack.enter_context(exporting_to_onnx(value))
        for flag in _FLAGS:
            stack.enter_context(replaced(torch.compiler, flag, value))
        yield


def exporting_to_onnx(value: bool) -> AbstractContextManager[None]:
    """Makes `torch.onnx.is_in_onnx_export()` return `value`. torch.export does not set it."""
    return replaced_at(_ONNX, value)


@contextmanager
def without_contraction_paths() -> Iterator[None]:
    """Makes einsum multiply its operands from left to right. With the package opt_einsum installed, it would look for a
    shorter order and take the sizes as Python numbers, which fixes every axis."""
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
    """Makes nn.TransformerEncoderLayer and nn.MultiheadAttention compute by their formulas, without fused kernels."""
    with alone():
        was_enabled = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            yield
        finally:
            torch.backends.mha.set_fastpath_enabled(was_enabled)


def one_symbol_a_dimension() -> AbstractContextManager[Any]:
    """Gives each dimension a symbol of its own. By default, torch gives one symbol to dimensions that have the same
    size in the example."""
    patch = private(_PATCH)
    return nullcontext() if patch is None else patch(use_duck_shape=False)


@contextmanager
def unchecked_distributions() -> Iterator[None]:
    """Keeps new `torch.distributions` objects from checking the values of their parameters."""
    with replaced(torch.distributions.Distribution, "_validate_args", False):
        yield
