"""`No ONNX function found for <OpOverload(…)>`, `submit a PR to PyTorch`."""

from __future__ import annotations

import re

from onnxsmith.causes.base import Cause
from onnxsmith.problem import Problem

_NEWER = re.compile(r"No ONNX function found for <OpOverload\(op='([^']+)'")
_OLDER = re.compile(r"Exporting the operator '([^']+)' to ONNX opset version \d+ is not supported")
_ADVICE = re.compile(r"debug the error and submit a PR to PyTorch")


_REASONS = {
    "aten.linalg_eig": "a real matrix has complex eigenvalues, found by iterations whose number depends on the matrix; "
    "a symmetric one has real ones, by torch.linalg.eigh",
    "aten.linalg_eigvals": "a real matrix has complex eigenvalues, found by iterations whose number depends on the "
    "matrix; a symmetric one has real ones, by torch.linalg.eigvalsh",
    "aten._to_sparse": "a tensor of a graph is dense: runtimes have no kernels for sparse ones",
    "aten.linalg_ldl_factor_ex": "which rows the factorisation exchanges follows from the values, in blocks of one or "
    "two; torch.linalg.cholesky or torch.linalg.lu_factor has a translation",
    "aten.linalg_ldl_solve": "the exchanges of rows are read from the pivots, in blocks of one or two; "
    "torch.linalg.solve has a translation",
}
"""Why some have none, and what has one."""


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
            why="; ".join(_REASONS[name] for name in operators if name in _REASONS),
            fix="say what it computes in PyTorch's operators, with @onnxsmith.register; or write the operation with "
            "others that have one",
        )
