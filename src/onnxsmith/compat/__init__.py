"""Offers functions with the names and arguments of other libraries' functions, so that a caller only has to change the
function.

Each function has a file of its own name in `functions/`, which is imported when the function is first used.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnxsmith.compat.functions.torch_export import torch_export as torch_export

from onnxsmith.compat import functions


def __getattr__(name: str) -> Any:
    if name not in __dir__():
        raise AttributeError(f"module {__name__!r} has no function {name!r}; it has {', '.join(__dir__())}")
    return getattr(importlib.import_module(f"{functions.__name__}.{name}"), name)


def __dir__() -> list[str]:
    return sorted(one.name for one in pkgutil.iter_modules(functions.__path__) if not one.name.startswith("_"))
