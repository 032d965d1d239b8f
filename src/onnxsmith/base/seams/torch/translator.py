"""Uses torch's exporter to ONNX: its registry of translations, and its decomposition of a program.

All names are in `torch.onnx._internal`. Compared with torch 2.11 to 2.14. If a name is gone, a Problem is
raised; `prepared`, `finishing_by` and `exact_numbers` do nothing instead, because exports work without them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import onnx_ir as ir
from onnxscript import evaluator, values
from torch.export import ExportedProgram

from onnxsmith.base.seams.base import private, replaced_at, required

_ROOM = "torch.onnx._internal.exporter"
_REGISTRY = f"{_ROOM}._registration:ONNXRegistry"
_PREPARE = f"{_ROOM}._core:_prepare_exported_program_for_export"
_DTYPE = f"{_ROOM}._building:_determine_input_dtype"
_DECOMPOSE = f"{_ROOM}._fx_passes:decompose_with_registry"
_DISPATCH = f"{_ROOM}._dispatching:dispatch"
_KNOWN = f"{_ROOM}._decomp:get_onnx_implemented_overloads"
_FINISH = f"{_ROOM}._fx_passes:remove_assertion_nodes"
_RECORDER = f"{_ROOM}._building:OpRecorder"
_TABLE = f"{_ROOM}._decomp:create_onnx_friendly_decomposition_table"
_SYMBOLICS = "torch.onnx._internal.torchscript_exporter.registration:registry"
REACHES = (_REGISTRY, _PREPARE, _DTYPE, _DECOMPOSE, _DISPATCH, _KNOWN, _TABLE, _RECORDER, _FINISH, _SYMBOLICS)

_CAST = (("input", "T1"), ("s", ""), ("fill_value", ""))
"""Parameters of translations that are cast, as (name, type name): those of Cast and CastLike, `scalar_tensor`, `full`
and `full_like`."""


def registry() -> Any:
    """Returns torch's translations for its newest opset."""
    return required(_REGISTRY).from_torchlib()


def function_for(node: Any, translations: Any) -> tuple[Any, str]:
    """Returns the function that translates a node, and torch's message; the function is None if there is none."""
    found, said = required(_DISPATCH)(node, translations)
    return found, str(said)


def has_symbolic(name: str, opset: int) -> bool:
    """Whether TorchScript's exporter translates the operator `name` (`lib::op`); True if its table is gone."""
    table = private(_SYMBOLICS)
    return table is None or bool(table.is_registered_op(name.partition(".")[0], opset))


def add(translations: Any, operator: Any, functions: Sequence[Callable[..., Any]]) -> None:
    """Adds functions that write the nodes of an operator; the first whose declared dtypes fit is called."""
    for function in reversed(functions):
        translations.register_op(operator, function)


def recorder() -> Any:
    """Returns the recorder of the running translation: `nodes` is the list of its nodes, `opset` their version."""
    return evaluator.default()


@contextmanager
def recording(opset: int) -> Iterator[Any]:
    """Records the operators that onnxscript calls in the block as nodes, in this version of the default domain. Yields
    the recorder."""
    found = required(_RECORDER)(values.Opset("", opset), {})
    with evaluator.default_as(found):
        yield found


def written(translations: Any) -> set[Any]:
    """Returns the operators that have a translation."""
    return set(required(_KNOWN)(translations))


def decompositions(translations: Any) -> dict[Any, Callable[..., Any]]:
    """Returns the decompositions of operators that have no translation."""
    table: dict[Any, Callable[..., Any]] = required(_TABLE)(written(translations))
    return table


def decomposed(exported: ExportedProgram, translations: Any) -> ExportedProgram:
    """Decomposes the program as torch does before it translates."""
    made: ExportedProgram = required(_DECOMPOSE)(exported, translations)
    return made


def prepared(exported: ExportedProgram) -> ExportedProgram:
    """Prepares the program as torch does before it translates; returns it unchanged if the name is gone."""
    prepare = private(_PREPARE)
    if prepare is None:
        return exported
    made: ExportedProgram = prepare(exported, registry=registry())
    return made


def decomposing_by(function: Callable[[ExportedProgram, Any], ExportedProgram]) -> AbstractContextManager[None]:
    """Makes torch decompose by this function, which gets a program and a registry of translations."""
    required(_DECOMPOSE)
    return replaced_at(_DECOMPOSE, function)


def finishing_by(function: Callable[[Any], None]) -> AbstractContextManager[None]:
    """Makes torch call this function with the graph that it translates, after its own last pass."""
    last: Any = private(_FINISH)

    def finished(module: Any) -> Any:
        found = last(module)
        function(found)
        return found

    return replaced_at(_FINISH, finished)


@contextmanager
def exact_numbers(is_exact: Callable[[float], bool]) -> Iterator[None]:
    """Casts a Python float in a translation from a float64 constant if float32 cannot hold it exactly. torch casts a
    float32 constant, which rounds twice."""
    determine = private(_DTYPE)

    def exact(param: ir.schemas.Parameter, arg: Any, type_binding: Mapping[Any, Any]) -> ir.DataType:
        found: ir.DataType = determine(param, arg, type_binding)
        is_cast = any(param.name == name and kind in ("", param.type_constraint.name) for name, kind in _CAST)
        if is_cast and isinstance(arg, float) and found == ir.DataType.FLOAT and not is_exact(arg):
            return ir.DataType.DOUBLE
        return found

    with replaced_at(_DTYPE, exact):
        yield
