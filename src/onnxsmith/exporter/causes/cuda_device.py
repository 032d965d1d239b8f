"""`Torch not compiled with CUDA enabled`, `Expected all tensors to be on the same device`."""

from __future__ import annotations

import re

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.causes.base import Cause

_TOLD = re.compile(r"not compiled with CUDA enabled|No CUDA GPUs|Found no NVIDIA driver|to be on the same device")


class CudaDevice(Cause):
    """forward moves a tensor to a fixed device."""

    def read(self, text: str) -> Problem | None:
        if not _TOLD.search(text):
            return None
        return Problem(
            "forward/device",
            "forward names a fixed device",
            why="a graph has no devices, and the export runs on the CPU",
            fix="use the device of an input: .to(x.device), device=x.device",
        )
