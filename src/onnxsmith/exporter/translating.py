"""Has PyTorch's exporter use the translations of this package, before those of its own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

import onnx_ir as ir
import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram, _trace
from torch.onnx._internal.exporter import _building, _decomp, _fx_passes

from onnxsmith import rooms
from onnxsmith.exporter.emptiness import fold_empty
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
    with (
        mock.patch.object(_fx_passes, "decompose_with_registry", _decomposed),
        mock.patch.object(_building, "_process_python_constants", _with_whole_constants),
    ):
        yield


_process = _building._process_python_constants


def _with_whole_constants(signature: Any, named_inputs: dict[str, Any], *more: Any) -> Any:
    """A Python float that is cast keeps all its digits until then: torch has it as float32 first, so that in a float64
    model 0.1 is 0.10000000149."""
    given = named_inputs.get("input")
    if signature.name in ("Cast", "CastLike") and isinstance(given, float):
        named_inputs = {**named_inputs, "input": ir.tensor(given, dtype=ir.DataType.DOUBLE)}
    return _process(signature, named_inputs, *more)


def _decomposed(exported: ExportedProgram, registry: Any) -> ExportedProgram:
    """The program in operators that `registry` has a translation for, as far as it can be brought there."""
    known = set(_decomp.get_onnx_implemented_overloads(registry))
    table = {**_decomp.create_onnx_friendly_decomposition_table(known), **_own()}
    lifted = functools.partial(_lifted, exported.constants)
    with mock.patch.object(_trace, "_materialize_and_lift_constants", lifted):
        exported = exported.run_decompositions(table)
    fold_empty(exported.graph_module)
    return exported


_materialize: Any = vars(_trace)["_materialize_and_lift_constants"]


def _lifted(constants: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
    """Keeps the tensors that translations bring along, which torch has in the graph and forgets to hand on."""
    found = _materialize(*args, **kwargs)
    constants.update(found)
    return found


@functools.cache
def _own() -> Mapping[Any, Callable[..., Any]]:
    return {op: one.decompose for one in translations().values() for target in one.targets for op in overloads(target)}
