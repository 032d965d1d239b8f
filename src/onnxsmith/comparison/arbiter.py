"""Decides by a more exact computation who is wrong when two computations in one precision differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onnxsmith.comparison.explore import Run
from onnxsmith.comparison.tensors import difference, is_float
from onnxsmith.metrics.base import widen
from onnxsmith.problem import OnnxsmithError
from onnxsmith.runtimes.base import Outputs, Session

_WORST = 2.0**-8
"""A reference that is further than this from the exact values, relative to their scale, is no measure for anything."""


class Arbiter:
    """The reference's computation in float64, made when it is first needed.

    A candidate that is no further from it than the reference is, or than rounding explains, is right where the two
    differ: it is the reference that lost digits, to cancellation for example.
    """

    def __init__(self, prepare: Callable[[], Session]) -> None:
        self._prepare = prepare
        self._session: Session | None = None
        self._known: dict[int, Outputs | None] = {}

    def settle(self, run: Run, name: str, value: Any, tolerance: float, floor: float) -> str:
        """What to say when the candidate's `value` of output `name` is right; empty when it is not, or nobody knows."""
        reference = run.outputs[name]
        if isinstance(value, list) or not is_float(np.asarray(value)):
            return ""
        exact = self._exact(run)
        if exact is None or name not in exact or np.asarray(exact[name]).dtype.kind not in "fc":
            return ""
        truth = np.asarray(exact[name])
        own = difference(truth, widen(np.asarray(reference)), np.inf)
        if own.reason or own.worst_rel > _WORST:
            return ""
        found = difference(truth, widen(np.asarray(value)), max(tolerance, own.worst_rel), floor)
        if found.reason:
            return ""
        return (
            f"further from the reference than rounding explains, and closer to the same computed in float64: "
            f"{found.worst_rel:.1e} of its scale, the reference itself {own.worst_rel:.1e}"
        )

    def lost(self, run: Run, name: str) -> str:
        """Why the reference is no measure for this output: how far it is from the same in float64; empty where it is
        near, or nobody knows."""
        exact = self._exact(run)
        reference = run.outputs[name]
        if exact is None or name not in exact or isinstance(reference, list) or not is_float(np.asarray(reference)):
            return ""
        own = difference(np.asarray(exact[name]), widen(np.asarray(reference)), _WORST)
        return f"the reference itself is not what it gives in float64: {own.reason}" if own.reason else ""

    def _exact(self, run: Run) -> Outputs | None:
        if id(run) not in self._known:
            try:
                self._session = self._session or self._prepare()
                self._known[id(run)] = self._session.run(run.feed.values)
            except OnnxsmithError:
                self._known[id(run)] = None
        return self._known[id(run)]
