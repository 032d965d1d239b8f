"""Allows logarithms of sizes in programs of torch.export.

torch computes logarithms symbolically (`torch._sym_log2`), but its check of a program accepts only square roots.

Compared with torch 2.13 and 2.14. If a name is gone, there is no symbolic logarithm, and a logarithm of a size fixes
the axis.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from onnxsmith.base.seams.base import private, replaced_at

_LOG2 = "torch:_sym_log2"
_ALLOWED = "torch._export.verifier:Verifier.allowed_op_types"
REACHES = (_LOG2, _ALLOWED)
LOG2: Any = private(_LOG2)
"""The logarithm to base 2 of a symbolic number; None if this torch has none."""


class _Kind(type):
    def __instancecheck__(cls, found: Any) -> bool:
        return found is not None and found is LOG2


class _Logarithm(metaclass=_Kind):
    """The type of the symbolic logarithm, for a check that asks for types."""


def allowed() -> AbstractContextManager[None]:
    """Makes torch's check accept the logarithm in programs while the block runs."""
    usual: Any = private(_ALLOWED)

    def kinds(verifier: Any) -> tuple[type, ...]:
        return (*usual(verifier), _Logarithm)

    return replaced_at(_ALLOWED, kinds)
