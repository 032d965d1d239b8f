"""Resizes the user's example."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from onnxsmith.graph.structure.signature import Port
from onnxsmith.runtimes.torch_eager import TorchProgram
from onnxsmith.verification.inputs.shapes import size_of

Arrays = Mapping[str, np.ndarray[Any, Any]]


def resized(program: TorchProgram, example: Arrays, sizes: dict[str, int]) -> dict[str, np.ndarray[Any, Any]]:
    """Returns the example with other sizes of its dimensions; new entries are copies of old ones."""
    return {port.name: _repeat(example[port.name], port, sizes) for port in program.signature.inputs}


def _repeat(array: np.ndarray[Any, Any], port: Port, wanted_sizes: dict[str, int]) -> np.ndarray[Any, Any]:
    """Resizes the axes whose size changed, also axes that are sums of dimensions."""
    for axis, dim in enumerate(port.shape or ()):
        wanted = size_of(dim, wanted_sizes)
        if array.shape[axis] == 0:
            array = np.zeros([*array.shape[:axis], wanted, *array.shape[axis + 1 :]], array.dtype)
        elif array.shape[axis] != wanted:
            array = np.take(array, np.arange(wanted) % array.shape[axis], axis=axis)
    return array
