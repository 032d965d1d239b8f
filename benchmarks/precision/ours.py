"""onnxsmith's own quantiser, asked as the others are."""

from __future__ import annotations

from pathlib import Path

import onnxsmith
from precision.case import Case

OURS = ("float16", "bfloat16", "int8", "int8-dynamic", "int4", "auto")
"""What `onnxsmith quantize --to` takes."""


def exists() -> bool:
    """Whether this onnxsmith can quantise."""
    return hasattr(onnxsmith, "quantize")


def ours(case: Case, model: Path, to: str, budget: str, out: Path, held_out: bool = False) -> Path:
    """Quantise the model of a case with its data and metric.

    The test data is the data of the budget, unless `held_out`: then the calibration data is all that is given, and the
    test data is seen by the benchmark alone.
    """
    result = onnxsmith.quantize(
        model,
        out,
        to=to,
        data=list(case.calibration() if held_out else case.samples()),
        calibration=None if held_out else list(case.calibration()),
        metric=case.metric,
        decode=case.decode,
        budget=budget,
    )
    if not result.ok:
        raise SystemExit(f"refused: {'; '.join(one.what + ' ' + one.where for one in result.report.problems)}")
    return out
