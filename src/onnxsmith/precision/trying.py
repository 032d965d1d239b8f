"""Tries one method on a prepared model: the smallest keep-list that meets the budget."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.clock import advance, stage
from onnxsmith.model.graph import walk
from onnxsmith.precision import damage as damages
from onnxsmith.precision import ranges
from onnxsmith.precision.given import Given
from onnxsmith.precision.keep import matching
from onnxsmith.precision.keeping import Keep, Search
from onnxsmith.precision.methods.base import Method, Work
from onnxsmith.precision.scoring import Scored
from onnxsmith.precision.weights import stored_bytes
from onnxsmith.problem import OnnxsmithError, problem
from onnxsmith.report.parts.quantisation import CurvePoint, LayerDamage
from onnxsmith.runtimes.base import Runtime

_DAMAGED_ON = 2
"""Samples on which the damage of layers is measured. A choice: it orders the layers, it decides nothing."""

_WAYS = 2
"""Ways to keep layers from which on there is a choice."""


@dataclass(frozen=True)
class Tried:
    """What a method reached: the model, None if no keep-list meets the budget; the layers and the evaluations."""

    name: str
    method: Method
    model: ir.Model | None
    layers: tuple[LayerDamage, ...]
    curve: tuple[CurvePoint, ...]
    evaluations: int
    notes: tuple[str, ...]
    keep: Keep = frozenset()
    calibrated: int = 0
    """Samples that the ranges were measured on."""
    scheme: str = ""
    """The scheme of the method that was taken."""


@dataclass
class Trying:
    """Evaluates keep-lists of a method. `before` is the score of the given model."""

    name: str
    method: Method
    work: Work
    given: Given
    runtime: Runtime
    before: Scored
    most: int
    keep: Sequence[str] = ()

    def __post_init__(self) -> None:
        self._curve: list[CurvePoint] = []
        self._known: dict[tuple[str, str, Keep], bool] = {}

    def run(self) -> Tried:
        """Searches the smallest keep-list.

        Raises:
            OnnxsmithError: `quantize/nothing`, `quantize/unknown-layer`; those of the quantiser and of the runtime.
        """
        layers = self.method.layers(self.work)
        if not layers:
            raise self._nothing()
        if self.work.ranges is None and (self.method.needs_ranges or self.given.is_real):
            with stage("ranges"):
                samples = (one for one in self.given.calibration)
                self.work.ranges = ranges.measured(self.work.model, self.runtime, samples)
        names = [layer.name for layer in layers]
        why = dict.fromkeys(self._asked(names), "it is on the given keep-list") | dict(self.method.always(self.work))
        always = frozenset(why)
        if always >= frozenset(names):
            raise problem(
                "quantize/nothing",
                f"every layer that could become {self.name} stays as it is",
                why="; ".join(dict.fromkeys(why.values()))[:400],
                fix="give a shorter keep-list, or another --to",
            )
        self.work.always = always
        self._choose_scheme(always)
        self._choose_way(names)
        errors = self._damage(names, always)
        order = [name for name in damages.ordered(errors, names) if name not in always]
        with stage("search"):
            left = max(1, self.most - len(self._curve))
            search = Search(order[:-1], self._meets, left)  # one layer at least is changed
            kept = search.smallest(always)
        found = kept if kept is not None else frozenset(names)
        because = f"the budget needs it{f', in {self.work.kept_as}' if self.work.kept_as else ''}"
        reasons = why | {name: because for name in found if name not in why}
        shown = tuple(
            LayerDamage(one.name, one.op, one.nbytes, errors.get(one.name), reasons.get(one.name, "")) for one in layers
        )
        useful = kept is not None and len(kept) < len(layers)
        return Tried(
            self.name, self.method, self.method.variant(self.work, kept) if useful and kept is not None else None,
            shown, tuple(self._curve), len(self._curve), tuple(self.work.notes), found,
            self.work.ranges.samples if self.work.ranges is not None else 0, self.work.scheme,
        )  # fmt: skip

    def _choose_scheme(self, always: Keep) -> None:
        """Takes the first scheme that meets the budget, else the one with the best score."""
        schemes = self.method.schemes(self.work)
        scores: dict[str, float] = {}
        with stage("schemes"):
            for scheme in schemes if len(schemes) > 1 else ():
                self.work.scheme = scheme
                if self._meets(always):
                    break
                scores[scheme] = self._goodness(self._curve[-1].score)
            else:
                if scores:
                    self.work.scheme = max(scores, key=scores.__getitem__)

    def _choose_way(self, names: Sequence[str]) -> None:
        """Takes the first way to keep layers with which the budget is met if all are kept; the last is not tried, and
        none if no layer has to be kept."""
        ways = self.method.ways_to_keep(self.work)
        if len(ways) < _WAYS or self._meets(self.work.always):
            return
        with stage("schemes"):
            for way in ways[:-1]:
                self.work.kept_as = way
                if self._meets(frozenset(names)):
                    return
        self.work.kept_as = ways[-1]

    def _goodness(self, score: float) -> float:
        """A number that is larger for better scores; a score that is no number is the worst."""
        if math.isnan(score):
            return -math.inf
        return score if self.given.scoring.score.better == "higher" else -score

    def _asked(self, names: Sequence[str]) -> set[str]:
        """The layers that the user's keep-list names; `*` stands for any characters."""
        found: set[str] = set()
        nodes = {node.name or "" for node in walk.all_nodes(self.work.model)}
        for pattern in self.keep:
            met = matching(pattern, names)
            if not met and not matching(pattern, nodes):
                raise problem(
                    "quantize/unknown-layer",
                    f"no node is called {pattern!r}",
                    why="the list was made for another model, or the node was merged with others when the model was "
                    "simplified",
                    fix="`onnxsmith simplify MODEL -o s.onnx`, then `onnxsmith inspect s.onnx --nodes` lists the names",
                )
            found |= met
        return found

    def _damage(self, names: Sequence[str], always: Keep) -> dict[str, float]:
        feeds = [dict(one.feeds) for one in itertools.islice(self.given.calibration, _DAMAGED_ON)]
        with stage("damage"):
            try:
                variant = self.method.measured(self.work, always, self.method.variant(self.work, always))
                return damages.damage(self.work.model, variant, names, self.runtime, feeds)
            except OnnxsmithError as error:
                self.work.notes.append(f"the damage of single layers was not measured: {error.problem.what}")
                return {}

    def _meets(self, keep: Keep) -> bool:
        key = self.work.scheme, self.work.kept_as if keep > self.work.always else "", keep
        if key not in self._known:
            self._known[key] = self._evaluated(keep)
        return self._known[key]

    def _evaluated(self, keep: Keep) -> bool:
        variant = self.method.variant(self.work, keep)
        advance("search", len(self._curve) + 1, self.most)
        scored = self._scored(self.method.measured(self.work, keep, variant))
        meets = scored.broken <= self.before.broken and self.given.budget.allows(
            self.before.value, scored.value, self.given.scoring.score.better
        )
        self._curve.append(CurvePoint(len(keep), stored_bytes(variant), scored.value, meets))
        return meets

    def _scored(self, variant: ir.Model) -> Scored:
        """The score of a variant; no number if the runtime refuses it or crashes: the next list keeps more layers."""
        try:
            with self.runtime.prepare(variant) as session:
                return self.given.scoring.of(session)
        except OnnxsmithError as error:
            if not error.problem.id.startswith("runtime/"):
                raise
            said = f"a variant was refused: {error.problem.what}"
            if said not in self.work.notes:
                self.work.notes.append(said)
            return Scored(math.nan, 0)

    def _nothing(self) -> OnnxsmithError:
        return problem(
            "quantize/nothing",
            f"no node of the model can become {self.name}",
            why=f"the method changes {self.method.changes}, in float32 and outside of branches and loop bodies",
            fix="try another --to",
        )
