"""Reads the values that integer inputs may have, as the user declares them: `input_ids=0..50000`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import onnx_ir as ir

from onnxsmith.base.near_names import near_names
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.precision.integer_values import LIMITS

Ranges = Mapping[str, tuple[int, int]]
_TEXT = re.compile(r"(?P<name>.+)=(?P<low>-?\d+)\.\.(?P<high>-?\d+)", re.DOTALL)


def read(given: Ranges | Iterable[str], model: ir.Model) -> dict[str, tuple[int, int]]:
    """Returns the least and the greatest value of each declared input.

    Raises:
        OnnxsmithError: `quantize/range` for a text that is no range, an input that does not exist or has no integers,
            and a range that is empty or beyond the dtype.
    """
    pairs = given.items() if isinstance(given, Mapping) else map(_parsed, given)
    inputs = {value.name or "": value for value in model.graph.inputs}
    found: dict[str, tuple[int, int]] = {}
    for name, (low, high) in pairs:
        value = inputs.get(name)
        if value is None:
            near = near_names(name, inputs, 1, 0.6) or list(inputs)[:1]
            raise _wrong(
                f"the model has no input {name!r}",
                f"it has {', '.join(inputs) or 'none'}",
                f"--range {near[0]}={low}..{high}" if near else "leave --range out",
            )
        limits = LIMITS.get(value.dtype) if value.dtype is not None else None
        if limits is None:
            said = "no dtype" if value.dtype is None else f"dtype {value.dtype.name.lower()}"
            raise _wrong(f"{name!r} has {said}", "ranges are declared for integers; floats need data", "give --data")
        least, most = int(limits[0]), int(limits[1]) - 1
        if not (type(low) is int and type(high) is int and least <= low <= high <= most):
            raise _wrong(
                f"{low}..{high} is not a range of {name!r}",
                f"the dtype has numbers from {least:,} to {most:,}, and the first number is the least",
                f"--range {name}={max(least, 0)}..{min(most, 50000)}, or the numbers that your program gives",
            )
        found[name] = (low, high)
    return found


def _parsed(text: str) -> tuple[str, tuple[int, int]]:
    match = _TEXT.fullmatch(text)
    if match is None:
        raise _wrong(
            f"{text!r} is not a range", "a range has a least and a greatest number", "--range input_ids=0..50000"
        )
    return match["name"], (int(match["low"]), int(match["high"]))


def _wrong(what: str, why: str, fix: str) -> OnnxsmithError:
    return problem("quantize/range", what, where="--range", why=why, fix=fix)
