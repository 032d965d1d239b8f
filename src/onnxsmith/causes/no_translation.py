"""`No ONNX function found for <OpOverload(…)>`, `submit a PR to PyTorch`."""

from __future__ import annotations

import re

from onnxsmith.causes.base import Cause
from onnxsmith.problem import Problem

_NEWER = re.compile(r"No ONNX function found for <OpOverload\(op='([^']+)'")
_OLDER = re.compile(r"Exporting the operator '([^']+)' to ONNX opset version \d+ is not supported")
_ADVICE = re.compile(r"debug the error and submit a PR to PyTorch")


class NoTranslation(Cause):
    """torch advises to submit a PR to PyTorch. Mostly one operator is missing, and can be written with others."""

    def read(self, text: str) -> Problem | None:
        operators = sorted({*_NEWER.findall(text), *_OLDER.findall(text)})
        if any(name.startswith("quantized") for name in operators):
            return None
        if not operators:
            if not _ADVICE.search(text):
                return None
            return Problem(
                "export/translation-failed",
                "torch.onnx could not translate the program",
                fix="`onnxsmith diagnose` names the line and the operator; nothing has to be sent to PyTorch",
            )
        return Problem(
            "export/no-translation",
            f"no ONNX translation for {', '.join(operators)}",
            fix="say what it computes in PyTorch's operators, with @onnxsmith.register; or write the operation with "
            "others that have one",
        )
