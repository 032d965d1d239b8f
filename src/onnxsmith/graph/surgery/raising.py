"""Raises a model to a newer opset with the converters of onnxscript and onnx, which support neither functions nor maps.

Functions whose operators mean the same in both opsets stay functions; the others are inlined. Nodes with values of
types that onnx-ir lacks (a map) get another domain during the conversion, because the converters write such types and
cannot read them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache

import onnx
import onnx_ir as ir

from onnxsmith.graph.structure import attribute_keys, carried_fields, provenance, schema, walk
from onnxsmith.graph.surgery.inlining import inlined

_HIDDEN = "onnxsmith.hidden"
"""Is the domain of hidden nodes. Their own domain is in their metadata while a converter runs."""
_ONNX = ("", "ai.onnx")
_SKIPPED = "Skipping version conversion"
"""Begins onnxscript's log message for a node that it leaves in its old form, which would have another meaning in the
new opset."""

Functions = dict[ir.OperatorIdentifier, ir.Function]


def raised(model: ir.Model, target: int) -> tuple[ir.Model, list[str]]:
    """Returns a copy of the model (weights shared) in opset `target`, newer than its own, and an empty list. On
    failure, the copy may be in another opset, and the list has the errors of the converters."""
    kept = _unchanged(model, target)
    copy, errors = _raised(model, target, kept)
    if errors and kept:  # a converter may need a shape or a dtype that follows from a function's body
        copy, errors = _raised(model, target, set())
    return copy, errors


def _raised(model: ir.Model, target: int, kept: set[ir.OperatorIdentifier]) -> tuple[ir.Model, list[str]]:
    copy, trouble = inlined(model, only=[name for name in model.functions if name not in kept])
    if trouble:
        return copy, [trouble]
    functions: Functions = {name: copy.functions.pop(name) for name in list(copy.functions)}
    values = walk.values_of(walk.main_graphs(copy))
    types = {value.name: odd for value in values if (odd := carried_fields.odd_type(value)) is not None}
    hidden = _hide(copy)
    errors = _converted(copy, target)
    _show(copy, hidden)
    _restore_types(copy, types)
    if errors:
        return copy, errors
    _restore_functions(copy, functions, model, target)
    _restore_origin(copy, model)
    return copy, []


def _converted(copy: ir.Model, target: int) -> list[str]:
    """Converts the model in place; returns the errors."""
    from onnxscript import version_converter

    with _converter_errors() as errors:
        try:
            version_converter.convert_version(copy, target, fallback=True)
        except Exception as error:  # noqa: BLE001 — the converters raise errors of any kind
            errors.append(_innermost(error))
    if _version(copy.opset_imports, 0) == target and not errors:
        return []
    return errors or ["the converters of onnxscript and onnx did not change it"]


def _innermost(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return " ".join(str(error).split()) or type(error).__name__


@contextmanager
def _converter_errors() -> Iterator[list[str]]:
    """Collects the errors that the converter only logs. The reason is the exception of a log record, or the message
    about a skipped node."""
    errors: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.exc_info and record.exc_info[1] is not None:
                errors.append(" ".join(str(record.exc_info[1]).split()))
            elif str(record.msg).startswith(_SKIPPED):
                errors.append(" ".join(record.getMessage().split()))

    log, handler = logging.getLogger("onnxscript"), Handler(logging.WARNING)
    propagate, log.propagate = log.propagate, False
    log.addHandler(handler)
    try:
        yield errors
    finally:
        log.removeHandler(handler)
        log.propagate = propagate


def _version(imports: Mapping[str, int], default: int) -> int:
    return imports.get("", imports.get("ai.onnx", default))


def _unchanged(model: ir.Model, target: int) -> set[ir.OperatorIdentifier]:
    """Returns the functions whose operators, also in the functions that they call, mean the same in opset `target`."""
    own = _version(model.opset_imports, 0)
    kept = set(model.functions)
    while True:
        gone = {
            name
            for name in kept
            if not all(
                _is_unchanged(node.op_type, _version(function.opset_imports, own), target)
                if node.domain in _ONNX
                else node.op_identifier() not in model.functions or node.op_identifier() in kept
                for function in (model.functions[name],)
                for node in walk.nodes(function)
            )
        }
        if not gone:
            return kept
        kept -= gone


@cache
def _is_unchanged(op_type: str, version: int, target: int) -> bool:
    """Whether the operator is the same in both opsets, or only takes more dtypes in the newer."""
    old, new = schema.find(op_type, "", version), schema.find(op_type, "", target)
    if old is None or new is None or new.deprecated:
        return False
    if old.since == new.since:
        return True
    return (
        version < target
        and old.attributes == new.attributes
        and old.required == new.required
        and _values_of(old) == _values_of(new)
        and _takes(old.inputs, new.inputs)
        and _takes(old.outputs, new.outputs)
    )


def _values_of(found: schema.Schema) -> dict[str, object]:
    return {
        name: None if default is None else attribute_keys.exact(default) for name, default in found.defaults.items()
    }


def _takes(old: tuple[schema.Parameter, ...], new: tuple[schema.Parameter, ...]) -> bool:
    return len(old) == len(new) and all(
        (a.optional, a.variadic, a.least, a.mixed, a.type) == (b.optional, b.variadic, b.least, b.mixed, b.type)
        and a.types <= b.types
        for a, b in zip(old, new, strict=True)
    )


def _hide(copy: ir.Model) -> dict[str, str]:
    """Gives nodes with values of types that onnx-ir lacks another domain. Returns their domains by the name of a
    result."""
    hidden: dict[str, str] = {}
    for node in walk.nodes(copy.graph):
        values = [value for value in (*node.inputs, *node.outputs) if value is not None]
        if node.domain not in _ONNX and any(carried_fields.odd_type(one) is not None for one in values):
            hidden[_result(node)] = node.domain
            node.domain = _HIDDEN
    if hidden:
        copy.opset_imports[_HIDDEN] = 1
    return hidden


def _show(copy: ir.Model, hidden: dict[str, str]) -> None:
    for node in walk.nodes(copy.graph):
        if node.domain == _HIDDEN:
            node.domain = hidden[_result(node)]
    copy.opset_imports.pop(_HIDDEN, None)


def _result(node: ir.Node) -> str:
    return next(value.name for value in node.outputs if value.name)


def _restore_types(copy: ir.Model, types: dict[str | None, onnx.TypeProto]) -> None:
    for value in walk.values_of(walk.main_graphs(copy)):
        if value.name in types:
            value.type = None
            carried_fields.declare(value, types[value.name])


def _restore_functions(copy: ir.Model, functions: Functions, model: ir.Model, target: int) -> None:
    """Puts the functions back, and the opset imports that the converter removed because it saw no function."""
    used = {node.domain for node in walk.nodes(copy.graph)}
    for name, function in functions.items():
        for domain in _ONNX:
            if domain in function.opset_imports:
                del function.opset_imports[domain]
                function.opset_imports[""] = target
        for node in walk.nodes(function):
            node.version = None
            used.add(node.domain)
        copy.functions[name] = function
        used.add(name[0])
    for domain, version in model.opset_imports.items():
        if domain in used and domain not in _ONNX:
            copy.opset_imports.setdefault(domain, version)


def _restore_origin(converted: ir.Model, before: ir.Model) -> None:
    """Restores node metadata, which onnx's C++ converter drops. Nodes are matched by the names of their outputs."""
    origin = {value.name: node for node in before.graph for value in node.outputs}
    for node in converted.graph:
        old = next((origin[value.name] for value in node.outputs if value.name in origin), None)
        if old is not None:
            provenance.inherit([node], [old])
