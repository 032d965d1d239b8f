"""`No ONNX function found for <OpOverload(…)>`, `submit a PR to PyTorch`."""

from __future__ import annotations

import re

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.causes.base import Cause

_NEWER = re.compile(r"No ONNX function found for <OpOverload\(op='([^']+)'")
_OLDER = re.compile(r"Exporting the operator '([^']+)' to ONNX opset version \d+ is not supported")
_ADVICE = re.compile(r"debug the error and submit a PR to PyTorch")


_REASONS = {
    "aten.linalg_eig": "a real matrix has complex eigenvalues, found in iterations whose number depends on the matrix; "
    "for a symmetric matrix, use torch.linalg.eigh",
    "aten.linalg_eigvals": "a real matrix has complex eigenvalues, found in iterations whose number depends on the "
    "matrix; for a symmetric matrix, use torch.linalg.eigvalsh",
    "aten._to_sparse": "tensors in a graph are dense: runtimes have no kernels for sparse ones",
    "aten.linalg_ldl_factor_ex": "the values decide which rows the factorisation exchanges, in blocks of one or two; "
    "torch.linalg.cholesky and torch.linalg.lu_factor have a translation",
    "aten.linalg_ldl_solve": "the pivots decide which rows are exchanged, in blocks of one or two; "
    "torch.linalg.solve has a translation",
}
"""Why some operators have no translation, and which similar ones have one."""


class NoTranslation(Cause):
    """torch asks the user to submit a PR. Mostly one operator is missing, and can be written with others."""

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
                fix="`onnxsmith diagnose` names the line and the operator; no PR to PyTorch is needed",
            )
        return Problem(
            "export/no-translation",
            f"no ONNX translation for {', '.join(operators)}",
            why="; ".join(_REASONS[name] for name in operators if name in _REASONS),
            fix="define it in PyTorch's operators, with @onnxsmith.register; or write the operation with operators "
            "that have a translation",
        )
