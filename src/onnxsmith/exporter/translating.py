"""Has PyTorch's exporter use the translations of this package, before those of its own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from torch._higher_order_ops import effects
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.onnx._internal.exporter import _decomp, _fx_passes

from onnxsmith import rooms
from onnxsmith.exporter.emptiness import fold_empty
from onnxsmith.exporter.strides import strides_as_sizes
from onnxsmith.exporter.translations.base import Translation


def overloads(target: str) -> Iterator[OpOverload[..., Any]]:
    """The overloads that a target names: none when this version of torch has no such operator."""
    space, _, name = target.partition("::")
    name, dot, overload = name.partition(".")
    packet = getattr(getattr(torch.ops, space), name, None)
    if packet is None:
        return
    for one in [overload] if dot else packet.overloads():
        if hasattr(packet, one):
            yield getattr(packet, one)


@functools.cache
def translations() -> Mapping[str, Translation]:
    """Every translation by its id, which is its file's name."""
    return rooms.members("onnxsmith.exporter.translations", Translation)


@contextmanager
def translating() -> Iterator[None]:
    """Inside, an operator with a translation here becomes what that says when a program is made ready for ONNX."""
    with mock.patch.object(_fx_passes, "decompose_with_registry", _decomposed):
        yield


def _decomposed(exported: ExportedProgram, registry: Any) -> ExportedProgram:
    """The program in operators that `registry` has a translation for, as far as it can be brought there."""
    known = set(_decomp.get_onnx_implemented_overloads(registry))
    table = {**_decomp.create_onnx_friendly_decomposition_table(known), **_own()}
    with mock.patch.object(effects, "has_effects", _has_effects):
        exported = exported.run_decompositions(table)
    strides_as_sizes(exported.graph_module)
    fold_empty(exported.graph_module)
    return exported


_registered = effects.has_effects


def _has_effects(op: Any) -> bool:
    """What raises or prints is kept by torch with a token that no runtime knows; not so where a translation here says
    what becomes of it."""
    return op not in _own() and _registered(op)


@functools.cache
def _own() -> Mapping[Any, Callable[..., Any]]:
    return {op: one.decompose for one in translations().values() for target in one.targets for op in overloads(target)}
