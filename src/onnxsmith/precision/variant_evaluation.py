"""Evaluates variants of a model: whether a keep-list meets the budget, and how large the error of each layer alone
is."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import onnx_ir as ir

from onnxsmith.base.clock import advance, stage
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.report.parts.quantisation import CurvePoint
from onnxsmith.precision import damage as damages
from onnxsmith.precision.keep_list_search import Keep
from onnxsmith.precision.methods.base import Layer, Method, Work
from onnxsmith.precision.quantisation_request import Given
from onnxsmith.precision.scoring import Scored
from onnxsmith.precision.weight_counts import stored_bytes
from onnxsmith.runtimes.base import Options, Runtime, Session

T = TypeVar("T")

_DAMAGED_ON = 2
"""Samples on which the damage of layers is measured. A choice: the damage only orders the layers."""
WORDS = 200
"""The most characters of a refusal in a note. A choice."""
_LONG = 600
"""The most characters of a refusal in a problem. A choice."""
REFUSED = ("quantize/refused", "quantize/cannot-run")
"""Problems of a variant that the quantiser cannot make, or the runtime cannot run."""


@dataclass
class Evaluations:
    """Evaluates the keep-lists of a method, each once and at most `most` in all. `before` is the score of the given
    model."""

    method: Method
    work: Work
    given: Given
    runtime: Runtime
    before: Scored
    most: int
    curve: list[CurvePoint] = field(default_factory=list)
    lists: list[Keep] = field(default_factory=list)
    """The keep-lists of the points of the curve."""
    narrowed: list[tuple[Keep, Keep]] = field(default_factory=list)
    """For each list: the layers of which only the weights are narrow, and those with 8 bits instead of 4."""
    whole: Keep = frozenset()
    """The layers that stay even in the variant that changes all others."""
    also: list[tuple[Runtime, Options]] = field(default_factory=list)
    """Further ways to run a variant: its score has to meet the budget in each of them."""
    _known: dict[tuple[str, str, Keep, Keep], bool] = field(default_factory=dict)

    def meets(self, keep: Keep) -> bool:
        """Whether the list meets the budget in the current scheme and way; False if no evaluations are left."""
        work = self.work
        # If the list keeps no further layers, the way to keep them makes no difference.
        key = work.scheme, work.kept_as if keep > work.always or work.is_asked else "", work.always, keep
        if key not in self._known:
            if self.curve and self.is_spent:
                return False
            self._known[key] = self.evaluated(keep)
        return self._known[key]

    @property
    def is_spent(self) -> bool:
        """Whether no evaluations are left."""
        return len(self.curve) >= self.most

    def evaluated(self, keep: Keep) -> bool:
        """Evaluates the list, and returns whether it meets the budget.

        Raises:
            OnnxsmithError: `quantize/refused`; `quantize/cannot-run` if all layers are changed.
        """
        variant = self.method.variant(self.work, keep)
        advance("search", len(self.curve) + 1, self.most)
        try:
            scored = self._scored(self.method.measured(self.work, keep, variant))
        except OnnxsmithError as error:
            is_whole = keep == self.whole and self.work.scheme in self.method.schemes(self.work)
            if error.problem.id != "quantize/cannot-run" or is_whole:
                raise  # all layers are changed: it may be because of a few
            said = f"the runtime refused a variant: {error.problem.why}"[:WORDS]
            self.work.notes += [said] if said not in self.work.notes else []
            scored = Scored(math.nan, 0)  # the next list keeps more layers
        meets = self._allows(scored)
        stored, eight = self.method.stored(self.work, keep), self.method.eight(self.work, keep)
        self.lists.append(keep)
        self.narrowed.append((stored, eight))
        wide, nbytes = len(keep - stored - eight), stored_bytes(variant)
        self.curve.append(CurvePoint(wide, nbytes, scored.value, meets, len(stored), len(eight)))
        return meets

    def require(self, runtime: Runtime, options: Options) -> None:
        """Requires that variants also meet the budget on `runtime` with `options`. Forgets the lists that met the
        budget so far, and allows as many more evaluations as were used."""
        self.also.append((runtime, options))
        self._known = {key: meets for key, meets in self._known.items() if not meets}
        self.most += len(self.curve)

    def _scored(self, variant: ir.Model) -> Scored:
        """Scores the variant. If the first way to run it is within the budget, returns the worst score of all ways."""
        scored = self._run(variant, self.given.scoring.of)
        for runtime, options in self.also:
            if not self._allows(scored):
                return scored
            other = self._run(variant, self.given.scoring.of, runtime, options)
            worse = self.goodness(other.value) < self.goodness(scored.value)
            scored = Scored((other if worse else scored).value, max(scored.broken, other.broken))
        return scored

    def _allows(self, scored: Scored) -> bool:
        better = self.given.scoring.score.better
        return scored.broken <= self.before.broken and self.given.budget.allows(self.before.value, scored.value, better)

    def goodness(self, score: float) -> float:
        """Returns a number that is larger for better scores; NaN is the worst."""
        if math.isnan(score):
            return -math.inf
        return score if self.given.scoring.score.better == "higher" else -score

    def nearest(self) -> tuple[Keep, Keep, Keep]:
        """Returns the keep-list with the best score, its layers of which only the weights are narrow, and those with 8
        bits."""
        scores = [self.goodness(point.score) for point in self.curve]
        if not scores:
            return frozenset(), frozenset(), frozenset()
        best = scores.index(max(scores))
        return (self.lists[best], *self.narrowed[best])

    def is_accepted(self, keep: Keep) -> bool:
        """Whether the quantiser and the runtime accept the variant."""
        try:
            variant = self.method.measured(self.work, keep, self.method.variant(self.work, keep))
            self._run(variant, lambda session: session.run(dict(next(iter(self.given.scoring.samples)).feeds)))
        except OnnxsmithError as error:
            if error.problem.id not in REFUSED:
                raise
            return False
        return True

    def damage(self, layers: Sequence[Layer], always: Keep) -> dict[str, float]:
        """Returns the error of each layer alone, by name. If errors cannot be measured, adds a note and returns
        nothing."""
        names = [layer.name for layer in layers]
        feeds = [dict(one.feeds) for one in itertools.islice(self.given.calibration, _DAMAGED_ON)]
        with stage("damage"):
            try:
                variant = self.method.measured(self.work, always, self.method.variant(self.work, always))
                return damages.damage(self.method.reference(self.work), variant, names, self.runtime, feeds)
            except OnnxsmithError as error:
                self.work.notes.append(f"the damage of single layers was not measured: {error.problem.what}")
                return {}

    def _run(
        self,
        variant: ir.Model,
        use: Callable[[Session], T],
        runtime: Runtime | None = None,
        options: Options | None = None,
    ) -> T:
        """Calls `use` with a session of the variant, on the runtime of the search or on `runtime`.

        Raises:
            OnnxsmithError: `quantize/cannot-run` if the runtime refuses the variant or crashes.
        """
        runtime = runtime or self.runtime
        try:
            with runtime.prepare(variant, options) as session:
                return use(session)
        except OnnxsmithError as error:
            if not error.problem.id.startswith("runtime/"):
                raise
            said = error.problem
            raise problem(
                "quantize/cannot-run",
                f"{runtime.title} cannot run the {self.work.name} model",
                where=said.where,
                why=f"{said.what}: {said.why}"[:_LONG] if said.why else said.what,
                fix="try another --to",
            ) from error
