"""Holds a model to the specification, unless the runtime takes it as it is.

Runtimes are more lenient than onnx's checker: they run outputs without a declared shape, operators that were
deprecated, initializers of an old file that are no inputs. What a runtime here loads is not turned away; what the
checker says of it is a doubt.
"""

from __future__ import annotations

from pathlib import Path

import onnx_ir as ir

from onnxsmith.model.files.check import check
from onnxsmith.problem import OnnxsmithError, Problem
from onnxsmith.runtimes import base


def checked(
    model: ir.Model, *, where: str, file: Path | None = None, runtime: str | None = None
) -> tuple[Problem, ...]:
    """As `model/files/check.py`, but what the checker refuses and `runtime` loads is a doubt too. `file` is where the
    model was loaded from just now.

    Raises:
        OnnxsmithError: `model/invalid` with the checker's reason, where the runtime does not load the model either.
    """
    try:
        return check(model, where=where, file=file)
    except OnnxsmithError as error:
        name = runtime or base.default()
        if not _loads(file if file is not None and file.suffix == ".onnx" else model, name):
            raise
        doubt = Problem(
            "model/off-specification",
            f"the model breaks the ONNX specification; {name} loads it all the same",
            where=where,
            why=error.problem.why,
            fix="other runtimes may refuse it: export it again, or undo the edit that did this",
        )
        return (doubt,)


def is_off(doubts: tuple[Problem, ...]) -> bool:
    """Whether one of the doubts is that the model breaks the specification."""
    return any(doubt.id == "model/off-specification" for doubt in doubts)


def _loads(source: Path | ir.Model, runtime: str) -> bool:
    try:
        with base.get(runtime).prepare(source):
            return True
    except OnnxsmithError:
        return False
