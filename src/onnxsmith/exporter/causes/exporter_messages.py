"""Messages of exporters, converters, runtimes and imports."""

from __future__ import annotations

import re

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.causes.base import Cause

_FROZEN = re.compile(r"inferred to be a constant|specialized|marked as dynamic but|Constraints violated")


class FrozenAxis(Cause):
    """Recognises `… was inferred to be a constant`, and torch's other messages about fixed axes.

    torch suggests making the axis static; the user needs the line of code that fixed it.
    """

    def read(self, text: str) -> Problem | None:
        if not _FROZEN.search(text) or "data-dependent" in text:
            return None
        return Problem(
            "export/frozen-axis",
            "an axis that was requested as dynamic is fixed by the model",
            fix="remove that axis from --dynamic, or change the code that turns the size into a Python number",
        )


_NEWER = re.compile(r"No ONNX function found for <OpOverload\(op='([^']+)'")
_OLDER = re.compile(r"Exporting the operator '([^']+)' to ONNX opset version \d+ is not supported")
_ADVICE = re.compile(r"debug the error and submit a PR to PyTorch")


REASONS = {
    "aten.linalg_eig": "a real matrix has complex eigenvalues, found in iterations whose number depends on the matrix; "
    "for a symmetric matrix, use torch.linalg.eigh",
    "aten.linalg_eigvals": "a real matrix has complex eigenvalues, found in iterations whose number depends on the "
    "matrix; for a symmetric matrix, use torch.linalg.eigvalsh",
    "aten._to_sparse": "tensors in a graph are dense: runtimes have no kernels for sparse ones",
    "aten.linalg_ldl_factor_ex": "the factorisation exchanges rows, alone or in pairs, and the values decide "
    "which; torch.linalg.cholesky and torch.linalg.lu_factor have a translation",
    "aten.linalg_ldl_solve": "rows are exchanged, alone or in pairs, and the pivots decide which; torch.linalg.solve "
    "has a translation",
}
"""Says why some operators have no translation, and which similar operators have one."""


class NoTranslation(Cause):
    """Recognises `No ONNX function found for <OpOverload(…)>` and `submit a PR to PyTorch`.

    torch asks the user to submit a PR. Usually one operator lacks a translation, and can be written with others.
    """

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
            why="; ".join(REASONS[name] for name in operators if name in REASONS),
            fix="define it in PyTorch's operators, with @onnxsmith.register; or write the operation with operators "
            "that have a translation",
        )


_NO_KERNEL = re.compile(r"(?:Could not find an implementation for|NOT_IMPLEMENTED:?) (\w+)\((\d+)\)")
_TYPE = re.compile(r"Type 'tensor\((\w+)\)' of input parameter \([^)]*\) of operator \((\w+)\).{0,80}is invalid")


class NoKernel(Cause):
    """Recognises `NOT_IMPLEMENTED : Could not find an implementation for Gemm(13)`.

    The number is the opset in which the operator last changed. The runtime lacks a kernel for the dtype.
    """

    def read(self, text: str) -> Problem | None:
        found = _NO_KERNEL.search(text)
        typed = _TYPE.search(text)
        if typed:
            return Problem(
                "runtime/no-kernel",
                f"onnxruntime does not accept {typed[1]} for {typed[2]}",
                why="this opset has the operator, but not for this dtype; bfloat16 and float8 were added in late "
                "opsets",
                fix="export the module in float32: net.float(), with float inputs",
            )
        if not found:
            return None
        return Problem(
            "runtime/no-kernel",
            f"onnxruntime has no kernel for {found[1]} of opset {found[2]}, or no kernel for these dtypes",
            why="this execution provider has the operator, but not for this dtype; the CPU provider lacks many "
            "bfloat16 kernels",
            fix="export the module in float32: net.float(), with float inputs",
        )


_NO_STEP = re.compile(
    r"No Previous Version of (\w+)|no_previous_version|No Adapter (?:From|To) Version \$?\d+ for (\w+)"
    r"|version_converter|The model version conversion is not supported|[Ff]ailed to convert the model to the target"
)


class DownConverter(Cause):
    """Recognises `got 18 not 12`, `No Previous Version of LayerNormalization exists`, a C++ trace of onnx's version
    converter.

    torch's exporter writes opset 18 or newer, then converts. onnx's converter cannot convert many operators to older
    opsets.
    """

    def read(self, text: str) -> Problem | None:
        found = _NO_STEP.search(text)
        if not found:
            return None
        operator = found[1] or found[2] or ""
        return Problem(
            "export/opset",
            f"{operator or 'an operator of the model'} cannot be converted to the requested opset",
            why="torch's exporter writes opset 18 or newer, and onnx's version converter cannot convert "
            f"{operator or 'this operator'} to an older opset; without onnxsmith, torch logs this error and "
            "writes opset 18",
            fix="leave out --opset, or choose opset 18 or newer",
        )


_LAZY = re.compile(r"Could not import (?:module )?'?(\w+)'?|Failed to import transformers")
_VISION = re.compile(r"operator torchvision::\w+ does not exist|torchvision\.extension")


class BrokenImport(Cause):
    """Recognises `Could not import module 'BertForSequenceClassification'`.

    transformers imports torchvision if it is installed, and reports a failure of this import only as a missing class.
    """

    def read(self, text: str) -> Problem | None:
        lazy = _LAZY.search(text)
        if not lazy and not _VISION.search(text):
            return None
        named = lazy[1] if lazy and lazy[1] else "a class"
        return Problem(
            "export/broken-import",
            f"{named} could not be imported" if lazy else "torchvision does not fit the installed torch",
            why="the usual cause: the releases of torchvision and torch do not match; transformers imports an "
            "installed torchvision, and hides the error of that import",
            fix="`python -c 'import torchvision'` shows whether torchvision is the cause; if so, run `pip install "
            "--upgrade torch torchvision`, or `pip uninstall torchvision` if you do not use torchvision",
        )
