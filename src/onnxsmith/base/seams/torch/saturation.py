"""Says whether sums of 8-bit products saturate here, and whether a module computes such sums.

Without VNNI a processor of x86 adds two products of 8-bit integers in 16 bits, in PyTorch's kernels (FBGEMM) as in
onnxruntime's: values beyond the calibrated range give other numbers than elsewhere.

Compared with torch 2.13 and 2.14. If the name is gone, no processor counts as one that saturates.
"""

from __future__ import annotations

import platform
from typing import Any

import torch

from onnxsmith.base.seams.base import private

_VNNI = "torch.cpu:_is_vnni_supported"
REACHES = (_VNNI,)
_PACKAGES = ("torch.ao.nn.quantized", "torch.ao.nn.intrinsic.quantized")


def saturates_here() -> bool:
    """Whether this processor is one of x86 without VNNI."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    known: Any = private(_VNNI)
    return known is not None and not known()


def multiplies_bytes(module: torch.nn.Module) -> bool:
    """Whether a part of the module runs PyTorch's 8-bit kernels, not floats between quantisers."""
    kinds = [type(part).__module__ for part in module.modules()]
    return any(kind.startswith(_PACKAGES) and ".reference." not in kind for kind in kinds)
