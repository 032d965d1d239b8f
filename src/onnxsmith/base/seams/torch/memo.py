"""Caches results that torch's exporter computes again in every export.

A small export spends most of its time on work that does not depend on the model: parsing the source of about five
hundred translations, asking the dispatcher for every composite operator, and registering about ten thousand Python
kernels. The first two results are cached here, and the registration is made faster. An operator that is registered
between two exports renews the caches.

Compared with torch 2.11 to 2.14. If a name is gone, nothing is cached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

import torch
from onnxscript.function_libs.torch_lib import (
    ops,  # noqa: F401 — it fills the registry
    registration,
)

from onnxsmith.base.seams.base import private, replaced_at

_REGISTRY = "torch.onnx._internal.exporter._registration:ONNXRegistry.from_torchlib"
_TORCHLIB = "torch.onnx._internal.exporter._torchlib._torchlib_registry:get_torchlib_ops"
_TABLE = "torch.onnx._internal.exporter._decomp:create_onnx_friendly_decomposition_table"
_SCANNED = "torch._export.utils:_collect_all_valid_cia_ops"
_MATERIALISED = "torch._export.utils:_materialize_cpp_cia_ops"
_IMPLEMENTING = "torch._ops:OperatorBase.py_impl"
_ALSO_SCANNED = tuple(
    f"torch.export.{module}:_collect_all_valid_cia_ops" for module in ("exported_program", "decomp_utils")
)
_COMPOSITE_ONE = "torch.export.exported_program:_is_preservable_cia_op"
_KEYS = tuple(
    f"torch.export.exported_program:{name}"
    for name in ("_AUTOGRAD_ALIAS_BACKEND_KEYS_TO_OVERRIDE", "_BACKEND_KEYS_TO_OVERRIDE")
)
_DECOMPOSITIONS = "torch._decomp:decomposition_table"
_NAMES = "torch._C:_dispatch_get_all_op_names"
_REGISTERED = "torch._C:_dispatch_get_registrations_for_dispatch_key"
REACHES = (
    _REGISTRY, _TORCHLIB, _TABLE, _SCANNED, _MATERIALISED, _IMPLEMENTING, *_ALSO_SCANNED, _COMPOSITE_ONE, *_KEYS,
    _DECOMPOSITIONS, _NAMES, _REGISTERED,
)  # fmt: skip
_COMPOSITE = "CompositeImplicitAutograd"
_materialised: set[str] = set()


@contextmanager
def memoised() -> Iterator[None]:
    """Makes exports after the first faster while the block runs. Does nothing if a name of `REACHES` is gone."""
    with ExitStack() as stack:
        for path, own in _replacements() if all(private(path) is not None for path in REACHES) else ():
            stack.enter_context(replaced_at(path, own))
        yield


_from_torchlib: Any = private(_REGISTRY)
_registries: dict[int | None, tuple[Any, Any]] = {}


def _translations(opset: int | None) -> Any:
    """Returns torch's translations for an opset; computed again if a translation or its operator was added or removed.
    torch leaves out translations of operators that do not exist yet (those of torchvision before its import)."""
    found = _registered_translations()
    if opset not in _registries or _registries[opset][0] != found:
        _registries[opset] = found, _from_torchlib() if opset is None else _from_torchlib(opset_version=opset)
    return _registries[opset][1]


def _registered_translations() -> Any:
    """Returns the cache key: everything that determines the content of torch's registry of translations."""
    ours = tuple(map(id, private(_TORCHLIB)()))
    theirs = {
        name: (*map(id, one.overloads), *map(id, one.complex)) for name, one in registration.default_registry.items()
    }
    there = theirs.keys() & set(private(_NAMES)())
    return ours, theirs, {(name, _packet(name)) for name in there}


def _packet(name: str) -> int:
    """Returns the identity of an operator's packet in `torch.ops`; the identity changes if the library is loaded
    again."""
    space, _, rest = name.partition("::")
    return id(getattr(getattr(torch.ops, space), rest.partition(".")[0], None))


def _registry(opset_version: int | None = None) -> Any:
    """Returns a copy of the registry for one export, so that a translation added in one export affects no other."""
    known = _translations(opset_version)
    registry = type(known)()
    registry.__dict__.update(vars(known))
    registry.functions = {target: list(found) for target, found in known.functions.items()}
    return registry


def _materialise(names: Iterable[str]) -> None:
    """Puts every composite operator into `torch.ops`, as torch's own function does, but skips those already there. An
    operator that was removed and defined again is put there again."""
    for name in names:
        space, _, rest = name.partition("::")
        op, _, overload = rest.partition(".")
        if name in _materialised and op in vars(getattr(torch.ops, space)):
            continue
        getattr(getattr(getattr(torch.ops, space), op), overload or "default")
        _materialised.add(name)


_collected: Any = private(_SCANNED)
_composites: dict[Any, set[Any]] = {}


def _composite_operators() -> set[Any]:
    """Returns the composite operators that a graph may keep; computed again if an operator was added or removed."""
    names = private(_REGISTERED)(_COMPOSITE)
    _materialise(names)
    sizes = tuple((space, len(getattr(getattr(torch.ops, space), "_dir", ()))) for space in torch.ops._dir)
    known = (frozenset((name, _packet(name)) for name in names), sizes)
    if known not in _composites:
        _composites.clear()
        with replaced_at(_MATERIALISED, lambda *_: None):
            _composites[known] = _collected()
    return _composites[known]


def _is_composite(op: Any) -> bool:
    """Whether the operator is composite. torch calls this right after `_composite_operators`."""
    return any(op in found for found in _composites.values())


_friendly: Any = private(_TABLE)
_tables: dict[Any, tuple[Any, dict[Any, Any]]] = {}


def _table(onnx_registered_ops: set[Any]) -> dict[Any, Any]:
    """Returns the decompositions of operators without a translation; computed again if an operator was added or
    removed."""
    found = _composite_operators()
    own = private(_DECOMPOSITIONS)
    key = (frozenset(onnx_registered_ops), frozenset((op, id(function)) for op, function in own.items()))
    if key not in _tables or _tables[key][0] is not found:
        _tables[key] = found, _friendly(onnx_registered_ops)
    return dict(_tables[key][1])


_py_impl: Any = private(_IMPLEMENTING)


def _implementing(op: Any, key: Any) -> Callable[[Any], Any]:
    """Returns a fast `OperatorBase.py_impl` for dispatch keys. torch calls `py_impl` ten thousand times in an export,
    and spends most of that time on the nested annotations of its own version."""
    if not isinstance(key, torch._C.DispatchKey) or key in op.py_kernels or key == torch._C.DispatchKey.Python:
        found: Callable[[Any], Any] = _py_impl(op, key)
        return found

    def inner(function: Any) -> Any:
        op.py_kernels[key] = function
        op._dispatch_cache.clear()
        return function

    return inner


def _of_this_machine(keys: Sequence[Any]) -> Sequence[Any]:
    """Returns the dispatch keys of devices that this machine has."""
    found = torch.accelerator.current_accelerator()
    if found is not None and found.type != "cuda":
        return keys  # the names of its dispatch keys are not known here
    devices = {"CPU", "Meta"} | ({"CUDA"} if found is not None else set())
    return [key for key in keys if key.name.removeprefix("Autograd") in devices]


@cache
def _replacements() -> tuple[tuple[str, Any], ...]:
    """Returns each replaced path with its replacement."""
    return (
        (_REGISTRY, staticmethod(_registry)),
        (_TABLE, _table),
        (_IMPLEMENTING, _implementing),
        *((path, _composite_operators) for path in (_SCANNED, *_ALSO_SCANNED)),
        (_COMPOSITE_ONE, _is_composite),
        *((path, _of_this_machine(private(path))) for path in _KEYS),
    )
