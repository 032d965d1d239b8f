"""Holds the options of a bisection, and refuses invalid ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.graph.surgery import opset_conversion as opsets
from onnxsmith.precision import unknown_names
from onnxsmith.precision.keep_list import bare, matching, named
from onnxsmith.precision.narrowable_nodes import NARROW, Units, find
from onnxsmith.precision.value_dtypes import Operators


@dataclass(frozen=True)
class Request:
    """The options of a bisection. See `bisect`."""

    to: str = "float16"
    tolerance: float | None = None
    keep: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    only_given: bool = False
    runtime: str | None = None
    any_runtime: bool = False
    tries: int | None = None
    seed: int = 0


def refuse(request: Request) -> None:
    """Refuses an unknown dtype, a tolerance that is negative or not finite, and fewer than one try."""
    if request.to not in NARROW:
        raise problem(
            "bisect/unknown-dtype", f"{request.to!r} is not a possible dtype", fix=f"one of: {', '.join(NARROW)}"
        )
    if request.tolerance is not None and not (math.isfinite(request.tolerance) and request.tolerance >= 0):
        raise problem(
            "bisect/tolerance",
            f"a tolerance of {request.tolerance:g} is not usable",
            fix="give a fraction of an output's scale: --tolerance 0.01; or leave it out",
        )
    if request.tries is not None and request.tries < 1:
        raise problem(
            "bisect/tries", f"{request.tries} tries find nothing", fix="give at least 1, or leave it out for no limit"
        )


_OLDEST = {"float16": 6, "bfloat16": 13}
"""The first opset in which Cast takes a dtype as a number, and in which operators have bfloat16."""


_RAISED = 18
"""The opset to which an older model is raised. A choice: the earliest in which all of today's runtimes have kernels of
both dtypes."""


def raised(model: ir.Model, to: str) -> tuple[ir.Model, str]:
    """Returns the model at an opset that has the dtype, and a note if the opset had to be raised.

    Raises: OnnxsmithError: `bisect/opset` if the model cannot be raised.
    """
    now = opsets.of(model)
    if now >= _OLDEST[to]:
        return model, ""
    try:
        made = opsets.convert(model, _RAISED)
    except OnnxsmithError as error:
        raise problem(
            "bisect/opset",
            f"opset {now} is too old for {to}, and the model cannot be raised to {_RAISED}",
            where=error.problem.where,
            why=f"{error.problem.what}: {error.problem.why}".rstrip(": "),
            fix=f"export it again with opset {_RAISED} or newer; {to} needs {_OLDEST[to]}",
        ) from error
    return made, f"opset {now} is too old for {to}: the model was raised to opset {_RAISED} first"


def units_of(model: ir.Model, to: ir.DataType, request: Request, operators: Operators) -> Units:
    """Finds the nodes of the model that can be narrow.

    Raises:
        OnnxsmithError: `bisect/nothing-to-narrow`, `bisect/unknown-node`.
    """
    units = find(model, to, operators)
    if not units.units:
        fixed = [f"{', '.join(operators)}: {reason}" for reason, operators in units.fixed.items()]
        raise problem(
            "bisect/nothing-to-narrow",
            f"no node of the model can become {request.to}",
            why="; ".join(fixed)[:400] or "no node reads or makes float32: it is narrow already, or has no floats",
            fix="start from the float32 model",
        )
    unknown = [name for name in named(request.keep) if not matching(bare(name), units.by_name)]
    if unknown:
        said = unknown_names.told(unknown, units.by_name, "no node that can be narrow is called")
        raise problem(
            "bisect/unknown-node",
            said.what,
            where=said.where,
            why=f"the list was made for another model, or for an earlier version of this one{said.near}",
            fix="`onnxsmith inspect MODEL --nodes` lists the names; or run bisect without --keep",
        )
    return units
