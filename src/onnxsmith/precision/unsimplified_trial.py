"""Tries a narrow float without simplifying first. Simplifying may merge a factor into weights, whose results then are
too large for the narrow float; unmerged, only the factor has to stay wide."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import onnx_ir as ir

from onnxsmith.base.clock import stage
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.precision.method_trial import Tried
from onnxsmith.precision.methods.base import ASKED, Method
from onnxsmith.precision.methods.floats import _NarrowFloat
from onnxsmith.precision.model_preparation import Prepared, prepared
from onnxsmith.precision.quantisation_report import Outcome

_MOST = 0.5
"""The share of wide weights above which the unsimplified model is tried. A choice: below it the file becomes smaller by
at least a quarter."""


def unmerged(model: ir.Model, opset: int, name: str) -> Prepared:
    """Prepares the model for a method without simplifying it."""
    with stage("prepare"):
        plain = prepared(model, opset=opset, simplified=False)
    return replace(plain, notes=(*plain.notes, f"not simplified first: the {name} file is smaller without it"))


def smallest(
    method: Method,
    tried: Callable[[Prepared], Outcome],
    ready: Prepared,
    plain: Callable[[], Prepared] | None,
) -> Outcome:
    """Returns the result for the prepared model. If most weights stay wide there, also tries the `plain` model, and
    returns its result if that is a smaller file within the budget.

    Raises:
        OnnxsmithError: as `tried` raises, if neither model has a result.
    """
    if plain is None or not isinstance(method, _NarrowFloat):
        return tried(ready)
    try:
        found = tried(ready)
    except OnnxsmithError as error:
        if error.problem.id != "quantize/nothing":
            raise
        other = _given_out(tried, plain)
        if other is None:
            raise
        return other
    if not _stays(found.tried):
        return found
    other = _given_out(tried, plain)
    return found if other is None or _nbytes(other) >= _nbytes(found) else other


def _given_out(tried: Callable[[Prepared], Outcome], plain: Callable[[], Prepared]) -> Outcome | None:
    """Returns the result for the unsimplified model, if it is a file within budget."""
    try:
        found = tried(plain())
    except OnnxsmithError:  # the error for the simplified model is reported instead
        return None
    return found if found.final is not None else None


def _nbytes(one: Outcome) -> float:
    return one.final.nbytes if one.final is not None else math.inf


def _stays(tried: Tried) -> bool:
    """Whether layers with most of the weights stay as they are, though the user did not ask for it."""
    whole = sum(layer.nbytes for layer in tried.layers)
    wide = sum(layer.nbytes for layer in tried.layers if layer.kept and layer.kept != ASKED)
    return wide > _MOST * whole
