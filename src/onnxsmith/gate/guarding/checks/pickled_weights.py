"""The file is no pickle."""

from __future__ import annotations

from collections.abc import Iterator

from onnxsmith.base.problem import Problem
from onnxsmith.gate.guarding.checks.base import Check
from onnxsmith.gate.guarding.guarded_file import GuardedFile


class PickledWeights(Check):
    """Weights are not pickled, whatever the file is called: a pickle runs code when it is loaded."""

    def problems(self, file: GuardedFile) -> Iterator[Problem]:
        if file.kind == "pickle":
            yield Problem(
                "guard/pickled",
                "the file is a pickle",
                where=str(file.path),
                why="a pickle runs code when it is loaded, so whoever changes the file can run code on your machines",
                fix="keep the weights as safetensors, which hold numbers only: "
                "`safetensors.torch.save_file(module.state_dict(), path)`; or export the module: "
                "`onnxsmith export file.py:factory -o model.onnx`",
            )
