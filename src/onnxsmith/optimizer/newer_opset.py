"""Finds newer opsets at which more rules would fire."""

from __future__ import annotations

import re
from collections import Counter

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.report.parts.edits import Simplification
from onnxsmith.graph.surgery import opset_conversion as opsets
from onnxsmith.runtimes import base as runtimes

AUTO = "auto"
_TOO_OLD = re.compile(r"opset \d+ has no (?P<made>.+), which came with (?P<since>\d+)")
"""The reason of a refusal by `too_old` (`optimizer/rules/_patterns.py`)."""


def asked(opset: int | str | None) -> int | str | None:
    """Returns the requested opset: a number, `auto` or None.

    Raises:
        OnnxsmithError: `export/opset` for another text.
    """
    if isinstance(opset, str) and opset.strip().isdecimal():
        return int(opset)
    if isinstance(opset, str) and opset != AUTO:
        raise problem(
            "export/opset",
            f"{opset!r} is no opset",
            fix="write a number such as 20, or auto for the opset that lets most rules fire",
        )
    return opset


def note(part: Simplification, now: int) -> tuple[str, ...]:
    """Returns one line with the newer opsets at which more operators could be made, and these operators; nothing if
    there are none."""
    found = _wanted(part)
    if not found:
        return ()
    said = []
    for since in sorted(found):
        counted = ", ".join(f"{count} {made}" for made, count in found[since].most_common())
        said.append(f"{since} would allow {counted}")
    return (f"opset {now} → {'; '.join(said)} (--opset auto)",)


def better(model: ir.Model, part: Simplification) -> tuple[ir.Model, tuple[str, ...]]:
    """Returns the model at the newest opset at which more rules would fire and which the default runtime reads, and
    notes on opsets that failed. Returns the model itself if there is no such opset."""
    newest = runtimes.get(runtimes.default()).newest_opset()
    refusals = []
    # the newest first: it also allows what the older ones allow
    for since in sorted(_wanted(part), reverse=True):
        if newest is not None and since > newest:
            refusals.append(f"opset {since} was not tried: the installed {runtimes.default()} reads up to {newest}")
            continue
        try:
            return opsets.convert(model, since), tuple(refusals)
        except OnnxsmithError as error:
            refusals.append(f"opset {since} was not reached: {error.problem.why or error.problem.what}")
    return model, tuple(refusals)


def _wanted(part: Simplification) -> dict[int, Counter[str]]:
    """Returns the operators that each newer opset would allow to make, and how often."""
    found: dict[int, Counter[str]] = {}
    for entry in part.refused:
        fits = _TOO_OLD.fullmatch(entry.why_not)
        if fits is not None:
            found.setdefault(int(fits["since"]), Counter())[fits["made"]] += 1
    return found
