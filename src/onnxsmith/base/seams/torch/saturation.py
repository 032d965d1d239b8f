"""Finds whether sums of 8-bit products saturate on this processor, and whether a module computes such sums.

An x86 processor without VNNI adds two products of 8-bit integers in 16 bits, in the kernels of PyTorch (FBGEMM) and of
onnxruntime. Values beyond the calibrated range then give other results than on other processors.

Compared with torch 2.13 and 2.14. If the name is gone, no processor counts as saturating.
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
    """Whether this is an x86 processor without VNNI."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    known: Any = private(_VNNI)
    return known is not None and not known()


def multiplies_bytes(module: torch.nn.Module) -> bool:
    """Whether a part of the module runs PyTorch's 8-bit kernels, rather than floats between quantisers."""
    kinds = [type(part).__module__ for part in module.modules()]
    return any(kind.startswith(_PACKAGES) and ".reference." not in kind for kind in kinds)
