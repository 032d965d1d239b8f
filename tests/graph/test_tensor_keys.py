"""Samples of tensors, by which large weights are told apart without being read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.graph.structure.tensor_keys import glimpse


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, ml_dtypes.bfloat16, ml_dtypes.int4])
@pytest.mark.parametrize("size", [16, 20_000])
def test_a_tensor_outside_and_in_memory_have_one_glimpse(tmp_path: Path, dtype: type, size: int) -> None:
    arrays: list[np.ndarray[Any, Any]] = [
        (np.random.default_rng(seed).integers(-8, 8, size)).astype(dtype) for seed in range(3)
    ]
    inside = [ir.tensor(array) for array in arrays]
    outside = ir.external_data.convert_tensors_to_external(inside, tmp_path, "weights")
    glimpses = [glimpse(tensor) for tensor in outside]
    assert glimpses == [glimpse(tensor) for tensor in inside]
    assert len(set(glimpses)) == 3
    for tensor in outside:
        tensor.numpy()  # maps it
    assert [glimpse(tensor) for tensor in outside] == glimpses


def test_a_glimpse_at_a_large_tensor_outside_maps_nothing(tmp_path: Path) -> None:
    (tensor,) = ir.external_data.convert_tensors_to_external([ir.tensor(np.zeros(1 << 20))], tmp_path, "weights")
    assert glimpse(tensor) == bytes(3 * 4096)
    assert isinstance(tensor, ir.ExternalTensor)
    assert tensor.raw is None
