"""Decides by a float64 computation which side is wrong, if two computations in a lower precision differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.runtimes.base import Outputs, Session
from onnxsmith.verification.explore import Run
from onnxsmith.verification.free_values import Free
from onnxsmith.verification.inputs.generate import Feed
from onnxsmith.verification.metrics.base import widen
from onnxsmith.verification.value_comparison import Difference, difference, is_float

_SAME = 1e-9
"""Limits the relative difference of two correct float64 computations. A choice, far above 2^-53: ill-conditioned
computations, which keep few digits in float32, have to pass."""
_WORST = 2.0**-8
"""Limits the error of a usable reference, relative to scale. A choice: the unit roundoff of bfloat16."""

_MOST_ASKED = 8
"""Limits the inputs that are examined layer by layer. A choice: each input needs many runs."""


class Arbiter:
    """Computes the reference in float64, in sessions that are made when they are first needed.

    If the two sides differ, the candidate is right if its distance from float64 is no larger than the reference's, or
    is explained by rounding. Then the reference lost digits, for example to cancellation. If the `candidate` is
    computed in float64 too and both agree in float64, both sides are the same function. For two sides that run one
    file, `grown` compares layer by layer: it says whether the graph amplifies the rounding of correct operations on
    this input.
    """

    def __init__(
        self,
        prepare: Callable[[], Session | None],
        candidate: Callable[[], Session | None] | None = None,
        grown: Callable[[Feed], bool] = lambda _: False,
    ) -> None:
        self._grown = grown
        self._asked: dict[int, bool] = {}
        self._reference, self._candidate = _Exact(prepare), _Exact(candidate or (lambda: None))
        self.free = Free()
        """Says which outputs are free up to a sign or an order. The float64 results follow the reference's choice."""
        self._most = np.inf if candidate is None else 2 * _WORST

    def is_asked(self, found: Difference) -> bool:
        """Whether float64 can help. Float64 cannot help if the difference is large: two values near the exact value are
        near each other."""
        return bool(found.worst_abs) and found.worst_rel <= self._most

    def close(self) -> None:
        """Ends the sessions."""
        self._reference.close()
        self._candidate.close()

    def settle(self, run: Run, name: str, value: Any, tolerance: float, floor: float) -> str:
        """Returns a sentence if the candidate's `value` of output `name` is right. Returns "" if the value is wrong or
        nothing is known."""
        reference = run.outputs[name]
        if isinstance(value, list) or not is_float(np.asarray(value)):
            return ""
        exact = self._exact(run)
        if exact is None or name not in exact or np.asarray(exact[name]).dtype.kind not in "fc":
            return ""
        truth = widen(np.asarray(exact[name]))
        own = difference(truth, widen(np.asarray(reference)), np.inf)
        if own.reason or own.worst_rel > _WORST:
            return ""
        found = difference(truth, widen(np.asarray(value)), max(tolerance, own.worst_rel), floor)
        if found.reason:
            return ""
        return (
            f"further from the reference than rounding explains, but closer to the float64 result: "
            f"off by {found.worst_rel:.1e} of its scale, the reference by {own.worst_rel:.1e}"
        )

    def lost(self, run: Run, name: str) -> str:
        """Returns why the reference cannot decide about this output: its distance from float64. Returns "" if the
        distance is small or unknown. A NaN in float64 does not count if the reference has a number: more digits cause
        no NaN."""
        exact = self._exact(run)
        reference = run.outputs[name]
        if exact is None or name not in exact or isinstance(reference, list) or not is_float(np.asarray(reference)):
            return ""
        truth, given = widen(np.asarray(exact[name])), widen(np.asarray(reference))
        if truth.shape == given.shape and bool((np.isnan(truth) & np.isfinite(given)).any()):
            return ""
        own = difference(truth, given, _WORST)
        return f"the reference itself differs from its float64 result: {own.reason}" if own.reason else ""

    def same(self, run: Run, name: str, value: Any) -> str:
        """Returns why this input cannot decide about the output. There are two reasons: both sides agree in float64 and
        the candidate's own dtype keeps few digits, or no single operation is wrong. Returns "" without such a reason,
        or if the candidate's value is too far from any number."""
        return self._same_in_double(run, name, value) or self._grows(run)

    def _grows(self, run: Run) -> str:
        if id(run) not in self._asked:
            self._asked[id(run)] = len(self._asked) < _MOST_ASKED and self._grown(run.feed)
        return (
            ("no single operation is wrong: the graph amplifies the rounding of its operations")
            if self._asked[id(run)]
            else ""
        )

    def _same_in_double(self, run: Run, name: str, value: Any) -> str:
        ours, theirs = self._exact(run), self._candidate.outputs(run)
        theirs = None if ours is None or theirs is None else self.free.aligned(ours, theirs)
        if ours is None or theirs is None or name not in ours or name not in theirs or isinstance(value, list):
            return ""
        exact, other, given = (np.asarray(one) for one in (ours[name], theirs[name], value))
        if exact.dtype.kind not in "fc" or not is_float(given) or not is_float(other):
            return ""
        if difference(widen(exact), widen(other), _SAME).reason:
            return ""
        kept = difference(widen(exact), widen(given), _WORST)
        if kept.reason:
            return ""
        return (
            f"in float64 the two models agree; in its own dtype, the candidate is off by {kept.worst_rel:.1e} of "
            "the scale"
        )

    def _exact(self, run: Run) -> Outputs | None:
        found = self._reference.outputs(run)
        return None if found is None else self.free.aligned(run.outputs, found)


class _Exact:
    """Runs one side in float64, in a session that is made when it is first needed, and keeps the outputs."""

    def __init__(self, prepare: Callable[[], Session | None]) -> None:
        self._prepare: Callable[[], Session | None] | None = prepare
        self._session: Session | None = None
        self._known: dict[int, tuple[Feed, Outputs | None]] = {}
        """Holds the outputs by the id of the input's values. The input is kept alive so that its id is not reused."""

    def outputs(self, run: Run) -> Outputs | None:
        """Returns the side's outputs for `run`; None if it cannot compute them."""
        key = id(run.feed.values)
        if key not in self._known:
            try:
                prepare, self._prepare = self._prepare, None  # tried once: a second attempt fails the same way
                if prepare is not None:
                    self._session = prepare()
                found = self._session.run(run.feed.values) if self._session is not None else None
            except OnnxsmithError:
                found = None
            self._known[key] = run.feed, found
        return self._known[key][1]

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None


_AS_FAR = 4.0
"""Limits the candidate's distance from float64, in multiples of the reference's distance. A choice: two roundings of a
recurrence end at different distances, and a wrong state is orders of magnitude further."""


def as_near(exact: Any, ours: Any, theirs: Any) -> bool:
    """Whether the candidate's values `theirs` are about as near to the `exact` values as the reference's values `ours`.
    False if the values are no floats, or if the shapes differ."""
    if not is_float(ours) or np.shape(ours) != np.shape(theirs) or np.shape(exact) != np.shape(ours):
        return False
    truth = widen(np.asarray(exact))
    own = difference(truth, widen(np.asarray(ours)), np.inf)
    found = difference(truth, widen(np.asarray(theirs)), _AS_FAR * own.worst_rel, _AS_FAR * own.worst_abs)
    return not own.reason and not found.reason
