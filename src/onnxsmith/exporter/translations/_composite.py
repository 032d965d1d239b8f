"""Operators that PyTorch itself makes of others, in its C++ sources."""

from __future__ import annotations

from typing import Any

import torch


def composite(operator: Any, *args: Any, **kwargs: Any) -> Any:
    """What PyTorch makes of a call, whatever else has been registered for it."""
    return operator._op_dk(torch._C.DispatchKey.CompositeImplicitAutograd, *args, **kwargs)
