"""The table of dtypes that the child process uses says what the graph library says."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnxsmith.runtimes import _dtypes


def test_the_table_is_onnx_irs() -> None:
    known = {dtype.name.lower() for dtype in ir.DataType} - {"undefined"}
    assert set(_dtypes.NAMES) == known
    for name in known - {"string"}:
        dtype = ir.DataType[name.upper()]
        assert _dtypes.numpy_dtype(name) == np.dtype(dtype.numpy()), name
        assert _dtypes.bits(name) == dtype.bitwidth, name
