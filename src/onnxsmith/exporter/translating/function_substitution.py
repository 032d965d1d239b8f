"""Replaces calls of torch's functions that a trace cannot follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch.overrides import TorchFunctionMode


class InPlaceOf(TorchFunctionMode):
    """Calls the replacement in `table` for each call of a function in the block; if it returns `NotImplemented`, calls
    the function."""

    def __init__(self, table: Mapping[Any, Callable[..., Any]]) -> None:
        super().__init__()
        self._table = table

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        own = self._table.get(func)
        if own is not None:
            found = own(*args, **(kwargs or {}))
            if found is not NotImplemented:
                return found
        return func(*args, **(kwargs or {}))
