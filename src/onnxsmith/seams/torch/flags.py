"""Sets the flags by which code chooses between the path of a call and the path of a trace.

Compared with torch 2.11 to 2.13. If a flag is gone, code that reads it takes the path of a call. Without the name in
`Distribution`, distributions check their parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

from onnxsmith.seams.base import alone, replaced

_FLAGS = ("_is_compiling_flag", "_is_exporting_flag")
REACHES = (
    *(f"torch.compiler:{name}" for name in _FLAGS),
    "torch.distributions:Distribution._validate_args",
)


@contextmanager
def exporting(value: bool) -> Iterator[None]:
    """Inside, `torch.compiler.is_exporting()` and `is_compiling()` return `value`."""
    with ExitStack() as stack:
        for flag in _FLAGS:
            stack.enter_context(replaced(torch.compiler, flag, value))
        yield


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


@contextmanager
def unchecked_distributions() -> Iterator[None]:
    """Inside, a new `torch.distributions` object does not check the values of its parameters."""
    with replaced(torch.distributions.Distribution, "_validate_args", False):
        yield
