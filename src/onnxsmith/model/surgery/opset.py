"""Brings a model to another opset, or says that it cannot be done."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import onnx
import onnx_ir as ir

from onnxsmith.model.graph import provenance
from onnxsmith.model.graph.copying import cloned
from onnxsmith.problem import problem


def of(model: ir.Model) -> int:
    """The version of ONNX's own operator set that the model imports; 0 when it imports none."""
    return model.opset_imports.get("", model.opset_imports.get("ai.onnx", 0))


def convert(model: ir.Model, target: int | None) -> ir.Model:
    """A copy of `model` at opset `target`; the same model when it is there already, or with None.

    Raises:
        OnnxsmithError: `export/opset` when the version does not exist, or an operator has no form in it.
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
            fix=f"ask for one of these; without --opset the model keeps {now}",
        )
    from onnxscript import version_converter

    copy = cloned(model)
    with _heard() as said:
        try:
            version_converter.convert_version(copy, target, fallback=True)
        except Exception as error:  # noqa: BLE001 — the converters raise whatever the operator provokes
            said.append(f"{type(error).__name__}: {error}")
    if of(copy) != target:
        raise problem(
            "export/opset",
            f"the model is at opset {now} and could not be brought to {target}",
            why="; ".join(said) or "the converters of onnxscript and onnx left it as it was",
            fix=f"leave --opset out (the model stays at {now}), or ask for one nearer to it",
        )
    _restore_origin(copy, model)
    return copy


@contextmanager
def _heard() -> Iterator[list[str]]:
    """Collects what the converter logs instead of raising: its reason is in the exception behind the message."""
    said: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.exc_info and record.exc_info[1] is not None:
                said.append(" ".join(str(record.exc_info[1]).split()))

    log, handler = logging.getLogger("onnxscript"), Handler(logging.WARNING)
    propagate, log.propagate = log.propagate, False
    log.addHandler(handler)
    try:
        yield said
    finally:
        log.removeHandler(handler)
        log.propagate = propagate


def _restore_origin(converted: ir.Model, before: ir.Model) -> None:
    """The C++ converter drops node metadata; outputs keep their names, and by these it is put back."""
    origin = {value.name: node for node in before.graph for value in node.outputs}
    for node in converted.graph:
        old = next((origin[value.name] for value in node.outputs if value.name in origin), None)
        if old is not None:
            provenance.inherit([node], [old])
