"""The file is a valid model, and its data files are there."""

from __future__ import annotations

from collections.abc import Iterator

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.gate.guarding.checks.base import Check
from onnxsmith.gate.guarding.guarded_file import GuardedFile
from onnxsmith.graph.files import specification_check


class Validity(Check):
    """A model can be loaded, follows the specification, and its external data lies in its folder, complete."""

    def problems(self, file: GuardedFile) -> Iterator[Problem]:
        if file.error is not None:
            yield file.error
        elif file.model is not None:
            try:
                yield from specification_check.check(file.model, where=str(file.path), file=file.path)
            except OnnxsmithError as error:
                yield error.problem
