"""Decides how far an output may be from its golden value in another program.

Another program rounds in another order. The effect on an output is measured as in `verification/noise.py`: the model
runs again with inputs and weights moved by the size of rounding errors. The allowance is a multiple of the output's
movement. The allowance is at most the bound from the count of operations (`verification/rounding.py`), and at least
`EQUAL`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.runtimes.base import Session
from onnxsmith.verification.input_search import Run
from onnxsmith.verification.metrics.base import widen
from onnxsmith.verification.noise import WORST, Noise
from onnxsmith.verification.probe import Probe
from onnxsmith.verification.rounding import Rounding, asked, roundings
from onnxsmith.verification.value_comparison import is_float

EQUAL = 1e-5
"""Holds the difference of an output from its golden value that is always allowed, relative to the golden value's
largest magnitude. A choice: float32 sums in another order differ by about 1e-7 for each thousand terms."""
_ULPS = 4
"""Counts the steps of a narrower dtype by which an output may differ: another version may round an intermediate tensor
to the other neighbour."""
_LITTLE = 1e-3
"""Names the movement by rounding from which a note says that the golden data shows little. A choice."""


def least(value: Any) -> float | None:
    """Returns the difference that is always allowed; None for values that must be equal."""
    arrays = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, np.ndarray)]
    floats = [array for array in arrays if is_float(array)]
    if not floats:
        return None
    return max(EQUAL if array.dtype.itemsize >= 4 else max(EQUAL, _ULPS * _step(array)) for array in floats)


def _step(array: np.ndarray[Any, Any]) -> float:
    return {"float16": 2.0**-10, "bfloat16": 2.0**-7}.get(array.dtype.name, 2.0**-10)


class Tolerances:
    """Computes the allowed differences of the outputs of one model. `given` replaces the computed differences for all
    floats. `notes` names the outputs that rounding alone moves beyond the bound from the count of operations."""

    def __init__(
        self,
        model: ir.Model,
        file: Path,
        prepare: Callable[[ir.Model], Session],
        given: float | None = None,
    ) -> None:
        """Prepares the measurement. `model` has inferred shapes; `file` is the same model, which `prepare` runs with
        other weights.

        Raises:
            OnnxsmithError: `verify/tolerance` if `given` is not usable.
        """
        self._given = None if given is None else asked(given).tolerance
        self._counted: Mapping[str, Rounding] = roundings(model)
        self._probe = Probe(file, prepare)
        self._noise = Noise(self._probe)
        self._ill: dict[str, float] = {}

    def close(self) -> None:
        """Ends the session used for measuring."""
        self._probe.close()

    @property
    def notes(self) -> list[str]:
        return [
            (
                f"rounding alone moves {name!r} by {moved:.1g} of its largest magnitude, so a comparison with its "
                "recorded values shows little"
            )
            for name, moved in self._ill.items()
            if moved > _LITTLE
        ]

    def of(self, run: Run, name: str) -> float | None:
        """Returns the allowed difference of an output on one input, relative to the output's largest magnitude; None if
        the output must be equal."""
        value = run.outputs[name]
        always = least(value)
        if always is None or self._given is not None:
            return None if always is None else self._given
        counted = self._counted.get(name)
        if counted is None or not isinstance(value, np.ndarray):
            return always
        size = _largest(value)
        bound = counted.tolerance + (counted.floor / size if size else 0.0)
        if bound <= always:
            return always
        movement = self._noise.movement(run, name)
        if movement is None or movement.unsteady or not size:
            return _rounded_up(bound)
        moved = movement.absolute / size
        if moved > bound:
            self._ill[name] = max(moved, self._ill.get(name, 0.0))
            return _rounded_up(WORST * moved)
        arrays = [one for one in (*run.feed.values.values(), value) if isinstance(one, np.ndarray)]
        longest = max((axis for array in arrays for axis in array.shape), default=1)
        return _rounded_up(max(always, min(bound, WORST * moved + counted.unmoved(longest))))


def _largest(value: np.ndarray[Any, Any]) -> float:
    """Returns the largest finite magnitude, or 0."""
    wide = np.abs(widen(value))
    return float(np.max(wide, where=np.isfinite(wide), initial=0.0))


def _rounded_up(number: float) -> float:
    """Rounds the number up to two digits, so that the number is readable, and the same model gives the same bytes."""
    if not 0 < number < math.inf:
        return number
    step = 10.0 ** (math.floor(math.log10(number)) - 1)
    return float(f"{math.ceil(number / step - 1e-9) * step:.2g}")
