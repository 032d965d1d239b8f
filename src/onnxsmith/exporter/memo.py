"""What torch's exporter works out anew in every export, worked out once in a process.

A small export spends most of its time on things that do not depend on the model: parsing the source of some five
hundred translations, and asking the dispatcher for every composite operator. Both are remembered here; operators that
were registered in between are found. The names are torch's private ones; one that is gone is left alone, and a test
notices.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from torch._export import utils as _scans
from torch.onnx._internal.exporter import _registration

_COMPOSITE = "CompositeImplicitAutograd"
_materialised: set[str] = set()


@contextmanager
def memoised() -> Iterator[None]:
    """Inside, exports are cheap after the first."""
    with ExitStack() as stack:
        for owner, name, own in _REPLACED:
            if hasattr(owner, name):
                stack.enter_context(mock.patch.object(owner, name, own))
        yield


_from_torchlib = _registration.ONNXRegistry.from_torchlib


@functools.cache
def _translations(opset: int | None) -> Any:
    return _from_torchlib() if opset is None else _from_torchlib(opset_version=opset)


def _registry(opset_version: int | None = None) -> Any:
    """A registry of the caller's own: a translation that it adds is no other export's."""
    known = _translations(opset_version)
    registry = type(known)()
    registry.__dict__.update(vars(known))
    registry.functions = {target: list(found) for target, found in known.functions.items()}
    return registry


def _materialise() -> None:
    """Has every composite operator stand in `torch.ops`, as torch's own function does; those that do, stay."""
    for name in torch._C._dispatch_get_registrations_for_dispatch_key(_COMPOSITE):
        if name in _materialised:
            continue
        space, _, rest = name.partition("::")
        op, _, overload = rest.partition(".")
        getattr(getattr(getattr(torch.ops, space), op), overload or "default")
        _materialised.add(name)


_REPLACED: tuple[tuple[Any, str, Any], ...] = (
    (_registration.ONNXRegistry, "from_torchlib", staticmethod(_registry)),
    (_scans, "_materialize_cpp_cia_ops", _materialise),
)
"""Owner, name, and what stands there during an export."""
