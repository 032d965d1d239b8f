"""Turns answers into the types of numpy and Python, whichever library made them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np


def plain(answer: Any) -> Any:
    """Returns an answer in the types of numpy and Python: tensors and pictures as arrays, dataclasses, named tuples and
    arrays with named fields as mappings, arrays of objects as lists."""
    if hasattr(answer, "detach") and hasattr(answer, "cpu"):
        return _of_tensor(answer.detach().cpu())
    if dataclasses.is_dataclass(answer) and not isinstance(answer, type):
        return {one.name: getattr(answer, one.name) for one in dataclasses.fields(answer)}
    if isinstance(answer, tuple) and hasattr(answer, "_asdict"):
        return dict(answer._asdict())
    if type(answer).__module__.startswith("PIL."):
        return np.asarray(answer)
    if isinstance(answer, list) and answer and all(isinstance(one, float) for one in answer):
        return np.asarray(answer)
    if isinstance(answer, np.ndarray) and answer.dtype == object:
        return answer.tolist()
    if isinstance(answer, np.ndarray | np.void) and answer.dtype.names:
        return {name: answer[name] for name in answer.dtype.names}
    return answer


def _of_tensor(tensor: Any) -> Any:
    """Returns a tensor as an array, a nested one as a list. numpy has no narrow floats, and no sparse arrays."""
    if getattr(tensor, "is_nested", False):
        return [_of_tensor(one) for one in tensor.unbind()]
    if str(getattr(tensor, "layout", "torch.strided")) != "torch.strided":
        tensor = tensor.to_dense()
    if "bfloat16" in str(tensor.dtype) or "float8" in str(tensor.dtype):
        tensor = tensor.float()
    return np.asarray(tensor)


def is_list(value: Any) -> bool:
    """Whether a value is a sequence of items, and no text."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
