"""Checks a model against the specification, unless the runtime loads the model.

Runtimes are more lenient than onnx's checker. Runtimes accept outputs without a declared shape, deprecated operators,
and old files whose initializers are not inputs. If an installed runtime loads a model, the checker's error is only
reported as a doubt.
"""

from __future__ import annotations

from pathlib import Path

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.graph.files.light_message import Message
from onnxsmith.graph.files.specification_check import check
from onnxsmith.runtimes import base


def checked(
    model: ir.Model,
    *,
    where: str,
    file: Path | None = None,
    runtime: str | None = None,
    message: Message | None = None,
) -> tuple[Problem, ...]:
    """Checks a model as `graph/files/specification_check.py` does, but returns the checker's error as a doubt if
    `runtime` loads the model.

    Raises:
        OnnxsmithError: `model/invalid` with the checker's reason, if the runtime does not load the model.
    """
    try:
        return check(model, where=where, file=file, message=message)
    except OnnxsmithError as error:
        name = runtime or base.default()
        if not _loads(file if file is not None and file.suffix == ".onnx" else model, name):
            raise
        doubt = Problem(
            "model/off-specification",
            f"the model breaks the ONNX specification, but {name} loads it",
            where=where,
            why=error.problem.why,
            fix=_fix(error.problem.why, model, name),
        )
        return (doubt,)


def is_off(doubts: tuple[Problem, ...]) -> bool:
    """Whether one of the doubts says that the model breaks the specification."""
    return any(doubt.id == "model/off-specification" for doubt in doubts)


def _loads(source: Path | ir.Model, runtime: str) -> bool:
    try:
        with base.get(runtime).prepare(source):
            return True
    except OnnxsmithError:
        return False


def _fix(why: str, model: ir.Model, runtime: str) -> str:
    """Returns what can be done about a model that breaks the specification."""
    bare = [value.name or "" for value in model.graph.outputs if value.shape is None]
    if "'shape'" in why and bare:
        return (
            f"{runtime} needs no change; other runtimes may refuse the file: declare a shape, or at least a number of "
            f"axes, for these outputs where the model is made: {', '.join(bare)}"
        )
    return (
        f"{runtime} needs no change; other runtimes may refuse the file: export it again, or undo the edit "
        "that caused this"
    )
