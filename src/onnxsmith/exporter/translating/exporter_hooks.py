"""Makes PyTorch's exporter use the translations of this package before its own."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch.export import ExportedProgram

from onnxsmith.base import rooms
from onnxsmith.base.seams.torch import translator
from onnxsmith.base.seams.torch.decomposing import decompose
from onnxsmith.exporter.translating import composed_operators
from onnxsmith.exporter.translating.custom_operators import Uses
from onnxsmith.exporter.translating.empty_tensors import fold_empty
from onnxsmith.exporter.translating.exact_fractions import exact_fractions
from onnxsmith.exporter.translating.overloads import overloads
from onnxsmith.exporter.translating.program_numbers import (
    exact_numbers,
    floor_quotients,
    fractions_as_tensors,
    say_dtypes,
    strides_as_sizes,
)
from onnxsmith.exporter.translations.base import Translation


@functools.cache
def translations() -> Mapping[str, Translation]:
    """Returns the translations of this package by id; the id follows from the class's name."""
    return rooms.members("onnxsmith.exporter.translations", Translation)


@contextmanager
def translating(*, own: bool = True) -> Iterator[Uses]:
    """Makes PyTorch's exporter in the block translate by the user's registrations first, then by the translations of
    this package (if `own`), then by its own. Yields the calls of registered operators."""
    uses = Uses()

    def decomposed(exported: ExportedProgram, registry: Any) -> ExportedProgram:
        writers = uses.writers()
        for op, functions in writers.items():
            translator.add(registry, op, functions)
        ours = {op: function for op, function in _own().items() if op not in writers} if own else {}
        table = {**translator.decompositions(registry), **ours, **uses.table()}
        before = exported.graph
        exported = decompose(exported, table)
        uses.meet(op for op in writers if exported.graph.find_nodes(op="call_function", target=op))
        if own:
            uses.composed = tuple(composed_operators.notes(before, exported.graph, ours, translator.written(registry)))
            strides_as_sizes(exported.graph_module)
            floor_quotients(exported.graph_module)
            fractions_as_tensors(exported.graph_module)
            fold_empty(exported.graph_module)
            say_dtypes(exported.graph_module)
        return exported

    with (
        translator.decomposing_by(decomposed),
        translator.finishing_by(exact_fractions),
        exact_numbers(),
        uses.applying(),
    ):
        yield uses


@functools.cache
def functions() -> Mapping[Any, Callable[..., Any]]:
    """Returns functions of torch that are replaced while a module is traced, with their replacements."""
    return {function: one.decompose for one in translations().values() for function in one.functions}


def targets() -> frozenset[str]:
    """Returns the names of the operators that this package translates (`aten::cdist`), with those of one overload."""
    return frozenset(str(op.name()).removesuffix(".default") for op in _own())


def _own() -> Mapping[Any, Callable[..., Any]]:
    return _of_libraries(frozenset(one.library for one in translations().values() if one.library in ("", *sys.modules)))


@functools.cache
def _of_libraries(imported: frozenset[str]) -> Mapping[Any, Callable[..., Any]]:
    """Maps operators of torch and of these libraries to their translations."""
    there = [one for one in translations().values() if one.library in imported]
    return {op: one.decompose for one in there for target in one.targets for op in overloads(target)}
