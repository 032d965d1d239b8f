"""Converts a model to another opset, or raises if that is impossible."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import onnx
import onnx_ir as ir

from onnxsmith.model.graph import provenance, versions
from onnxsmith.model.graph.copying import cloned
from onnxsmith.model.surgery.lowering import lowered
from onnxsmith.problem import problem
from onnxsmith.words import several

_SHOWN = 3
"""Nodes that a refusal names; a choice."""


def of(model: ir.Model) -> int:
    """Returns the version of ONNX's own operator set that the model imports; 0 without an import."""
    return model.opset_imports.get("", model.opset_imports.get("ai.onnx", 0))


def convert(model: ir.Model, target: int | None) -> ir.Model:
    """Returns a copy of `model` at opset `target`; the same model if it has that opset already, or if `target` is None.

    Raises:
        OnnxsmithError: `export/opset` when the version does not exist, or the converters cannot convert an operator.
    """
    now = of(model)
    if target is None or now == target:
        return model
    newest = onnx.defs.onnx_opset_version()
    if not 7 <= target <= newest:
        raise problem(
            "export/opset",
            f"opset {target} cannot be written",
            why=f"the installed onnx {onnx.__version__} writes opsets 7 to {newest}",
            fix=f"choose an opset from this range; without --opset the model keeps {now}",
        )
    return _lower(model, now, target) if target < now else _raised(model, now, target)


def _lower(model: ir.Model, now: int, target: int) -> ir.Model:
    found = lowered(model, target)
    if found.stuck:
        first, more = found.stuck[:_SHOWN], len(found.stuck) - _SHOWN
        reasons = [f"{one.node}: {one.reason}" for one in first] + (
            [f"and {several(more, 'node')} more"] if more > 0 else []
        )
        raise problem(
            "export/opset",
            f"the model is at opset {now} and could not be brought to {target}",
            where=", ".join(f"{one.node} ({one.source})" if one.source else one.node for one in first),
            why="; ".join(reasons),
            fix=f"omit the opset (the model stays at {now}), or choose an opset nearer to {now}",
        )
    return found.model


def _raised(model: ir.Model, now: int, target: int) -> ir.Model:
    from onnxscript import version_converter

    copy = cloned(model)
    with _converter_errors() as errors:
        try:
            version_converter.convert_version(copy, target, fallback=True)
        except Exception as error:  # noqa: BLE001 — the converters raise errors of any kind
            errors.append(f"{type(error).__name__}: {error}")
    if of(copy) != target:
        raise problem(
            "export/opset",
            f"the model is at opset {now} and could not be brought to {target}",
            why="; ".join(errors) or "the converters of onnxscript and onnx did not change it",
            fix=f"omit the opset (the model stays at {now}), or choose an opset nearer to {now}",
        )
    _restore_origin(copy, model)
    copy.ir_version = max(copy.ir_version or 0, versions.least_ir(copy))
    return copy


@contextmanager
def _converter_errors() -> Iterator[list[str]]:
    """Collects the errors that the converter only logs: the reason is in the exception of the log record."""
    errors: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.exc_info and record.exc_info[1] is not None:
                errors.append(" ".join(str(record.exc_info[1]).split()))

    log, handler = logging.getLogger("onnxscript"), Handler(logging.WARNING)
    propagate, log.propagate = log.propagate, False
    log.addHandler(handler)
    try:
        yield errors
    finally:
        log.removeHandler(handler)
        log.propagate = propagate


def _restore_origin(converted: ir.Model, before: ir.Model) -> None:
    """Restores node metadata, which onnx's C++ converter drops. Nodes are matched by the names of their outputs."""
    origin = {value.name: node for node in before.graph for value in node.outputs}
    for node in converted.graph:
        old = next((origin[value.name] for value in node.outputs if value.name in origin), None)
        if old is not None:
            provenance.inherit([node], [old])
