"""Tries one method on a prepared model: the smallest keep-list that meets the budget."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import onnx_ir as ir

from onnxsmith.clock import advance, stage
from onnxsmith.model.graph import walk
from onnxsmith.precision import damage as damages
from onnxsmith.precision import ranges
from onnxsmith.precision.culprits import TRIES, culprits
from onnxsmith.precision.given import Given
from onnxsmith.precision.keep import ALONE, bare, matching
from onnxsmith.precision.keeping import Keep, Search
from onnxsmith.precision.methods.base import ASKED, Layer, Method, Work
from onnxsmith.precision.nothing import nothing
from onnxsmith.precision.scoring import Scored
from onnxsmith.precision.weights import stored_bytes
from onnxsmith.problem import OnnxsmithError, problem
from onnxsmith.report.parts.quantisation import CurvePoint, LayerDamage, LeftAlone
from onnxsmith.runtimes.base import Runtime, Session

T = TypeVar("T")

_DAMAGED_ON = 2
"""Samples on which the damage of layers is measured. A choice: it orders the layers, it decides nothing."""
_WORDS = 200
"""Characters of a refusal among other notes. A choice."""
_LONG = 600
"""Characters of a refusal that is the problem. A choice."""
_REFUSED = ("quantize/refused", "quantize/cannot-run")
"""The quantiser cannot make a variant, or the runtime cannot run it."""


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
    nbytes: int = 0
    """Bytes of the weights of the model that was to be changed."""
    left: tuple[LeftAlone, ...] = ()
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
        self._lists: list[Keep] = []  # those of the curve
        self._whole: Keep = frozenset()  # what stays with all layers changed
        self.work.name = self.name
        self._known: dict[tuple[str, str, Keep, Keep], bool] = {}
        self._errors: dict[str, float] = {}
        self._layers: list[Layer] = []
        self._why: dict[str, str] = {}

    def run(self) -> Tried:
        """Searches the smallest keep-list.

        Raises:
            OnnxsmithError: `quantize/nothing`, `quantize/unknown-layer`; those of the quantiser and of the runtime.
        """
        layers = self.method.layers(self.work)
        if not layers:
            raise nothing(self.name, self.method, self.work)
        if self.work.ranges is None and (self.method.needs_ranges or self.given.is_real):
            with stage("ranges"):
                samples = (one for one in self.given.calibration)
                self.work.ranges = ranges.measured(self.work.model, self.runtime, samples)
        names = [layer.name for layer in layers]
        alone = self._asked(names, [bare(one) for one in self.keep if one.startswith(ALONE)])
        self.work.alone = frozenset(alone)
        if alone and not self.method.last_scheme(self.work):
            self.work.notes.append(f"{self.name} takes no `{ALONE.strip()}` of a keep-list: these layers become narrow")
        layers = self.method.layers(self.work)  # once more: which values are finite is known now
        why = dict.fromkeys(self._asked(names, [one for one in self.keep if not one.startswith(ALONE)]), ASKED) | dict(
            self.method.always(self.work)
        )
        always = self.work.always = frozenset(why)
        if always >= frozenset(names):
            raise problem(
                "quantize/nothing",
                f"every layer that could become {self.name} stays as it is",
                why="; ".join(dict.fromkeys(why.values()))[:400],
                fix="give a shorter keep-list, or another --to",
            )
        self._layers, self._why = layers, why
        return self._tried(self._accepted(layers, why))

    def without_activations(self) -> Tried | None:
        """The method with the weights alone narrow, after `run`; None if that is no scheme of it, or out of the budget.
        One keep-list is evaluated."""
        last = self.method.last_scheme(self.work)
        if not last:
            return None
        self.work.scheme, self.work.kept_as = last, ""
        self.work.always = always = frozenset(self._why)
        self.most = max(self.most, len(self._curve) + 1)
        with stage("search"):
            return self._tried(always) if self._meets(always) else None

    def _tried(self, kept: Keep | None) -> Tried:
        layers = self._layers
        names = [layer.name for layer in layers]
        is_whole = kept is not None and len(kept) == len(layers) and not self.work.kept_as
        if kept is not None and is_whole and not self.method.stored(self.work, kept):
            kept = None  # that is the given model
        return Tried(
            self.name, self.method, None if kept is None else self.method.variant(self.work, kept),
            self._shown(layers, kept, self._why), tuple(self._curve), len(self._curve),
            (*self.work.notes, *self.method.said(self.work)),
            kept if kept is not None else frozenset(names), stored_bytes(self.work.model), self.method.left(self.work),
            self.work.ranges.samples if self.work.ranges is not None else 0, self.work.scheme,
        )  # fmt: skip

    def _shown(self, layers: Sequence[Layer], kept: Keep | None, why: Mapping[str, str]) -> tuple[LayerDamage, ...]:
        """The layers for the report. Without a keep-list that meets the budget, those of the nearest list are kept."""
        found = kept if kept is not None else self._nearest()
        stored = self.method.stored(self.work, found) if kept is not None else frozenset()
        idle = "it has no large weights" if self.work.scheme == self.method.last_scheme(self.work) != "" else ""
        shown = []
        for one in layers:
            needed = f"the budget needs it{self.method.way_said(self.work)}" if one.name in found or idle else ""
            needed = needed if kept is not None else "the nearest model keeps it"
            kept_for = weights_for = ""
            if one.name in stored:
                weights_for = one.weights_alone or needed
            elif one.name in why or one.name in found or idle:
                kept_for = why.get(one.name, needed if one.name in found else idle)
            damage = self._errors.get(one.name)
            shown.append(LayerDamage(one.name, one.op, one.nbytes, damage, kept_for, weights_for))
        return tuple(shown)

    def _nearest(self) -> Keep:
        """The keep-list with the best score."""
        scores = [self._goodness(point.score) for point in self._curve]
        return self._lists[scores.index(max(scores))] if scores else frozenset()

    def _accepted(self, layers: Sequence[Layer], why: dict[str, str]) -> Keep | None:
        """The smallest keep-list. If all layers together are refused because of a few, these stay, and are added to
        `why` with the message."""
        always, noted = self.work.always, len(self.work.notes)
        self._whole = always
        try:
            self._choose_scheme(always)
            return self._smallest(layers, always)
        except OnnxsmithError as error:
            if error.problem.id not in _REFUSED:
                raise
            refused = error
        self.work.scheme, self.work.kept_as = self.method.schemes(self.work)[0], ""
        with stage("refused layers"):
            most = TRIES // 4 if self.method.engine.runs_the_model else TRIES  # a try may take minutes there
            found = culprits([layer.name for layer in layers], always, self._is_accepted, most)
        if not found:
            raise refused
        said = f"{refused.problem.what}: {refused.problem.why}"[:_WORDS]
        why |= dict.fromkeys((layer.name for layer in layers if layer.name in found), said)
        del self.work.notes[noted:]
        always = self.work.always = self._whole = frozenset(why)
        self._choose_scheme(always)
        return self._smallest(layers, always)

    def _is_accepted(self, keep: Keep) -> bool:
        """Whether the quantiser and the runtime take the variant."""
        try:
            variant = self.method.measured(self.work, keep, self.method.variant(self.work, keep))
            self._run(variant, lambda session: session.run(dict(next(iter(self.given.scoring.samples)).feeds)))
        except OnnxsmithError as error:
            if error.problem.id not in _REFUSED:
                raise
            return False
        return True

    def _smallest(self, layers: Sequence[Layer], always: Keep) -> Keep | None:
        """The smallest keep-list. What it names is written in the first way that can meet the budget; if none can, the
        weights alone are narrow, and those that the budget forbids stay."""
        with stage("search"):
            if self._meets(always):
                self._errors = self._damage(layers, always)
                return always
            way = self._way(layers, always)
            last = self.method.last_scheme(self.work)
            if way is not None or not last:
                self.work.kept_as = way or ""
                return self._searched(layers, always)
            scheme, self.work.scheme = self.work.scheme, last
            kept = self._searched(layers, always)
            if kept is None or len(kept) == len(layers):
                return kept
            return self._with_activations(layers, scheme, kept)

    def _way(self, layers: Sequence[Layer], always: Keep) -> str | None:
        """The first way to keep layers with which the budget is met if all are kept; None if there is none. The last
        way is not tried: it leaves the layers as they are."""
        whole = always | {layer.name for layer in layers if not layer.weights_alone}
        for way in self.method.ways_to_keep(self.work)[:-1]:
            self.work.kept_as = way
            if self._meets(whole):
                return way
        self.work.kept_as = ""
        return None

    def _with_activations(self, layers: Sequence[Layer], scheme: str, kept: Keep) -> Keep:
        """Of a list with which the weights alone are narrow, what is left of it in a scheme with narrow activations."""
        last, self.work.always = self.work.scheme, kept
        self.work.scheme = scheme
        if self._way(layers, kept) is not None:
            found = self._searched(layers, kept)
            if found is not None:
                return found
        self.work.scheme, self.work.kept_as = last, ""
        return kept

    def _searched(self, layers: Sequence[Layer], always: Keep) -> Keep | None:
        """The smallest keep-list in the scheme and the way that are in use."""
        self._errors = self._damage(layers, always)
        order = damages.ordered(self._errors, [one.name for one in layers if one.name not in always])
        left = max(1, self.most - len(self._curve)) + 2  # nothing kept and all kept need no evaluation any more
        if not self.work.kept_as:
            whole = always | frozenset(order)  # the given model, which needs no evaluation
            return Search(order, lambda keep: keep == whole or self._meets(keep), left).smallest(always)
        alone = {one.name for one in layers if one.weights_alone}
        order = [name for name in order if name not in alone]
        return Search(order, self._meets, left).smallest(always) or always | frozenset(order)

    def _choose_scheme(self, always: Keep) -> None:
        """Takes the first scheme that meets the budget, else the one with the best score."""
        schemes = self.method.schemes(self.work)
        scores: dict[str, float] = {}
        refused: OnnxsmithError | None = None
        with stage("schemes"):
            for scheme in schemes if len(schemes) > 1 else ():
                if (scores and self._is_spent) or not self.method.offers(self.work, scheme):
                    continue
                self.work.scheme = scheme
                try:
                    if self._meets(always):
                        return
                except OnnxsmithError as error:
                    if error.problem.id not in _REFUSED:
                        raise
                    refused = error
                    self.work.notes.append(f"{scheme}: {error.problem.what}: {error.problem.why}"[:_WORDS])
                    continue
                scores[scheme] = self._goodness(self._curve[-1].score)
        if scores:
            self.work.scheme = max(scores, key=scores.__getitem__)
        elif refused is not None:
            raise refused

    def _goodness(self, score: float) -> float:
        """A number that is larger for better scores; a score that is no number is the worst."""
        if math.isnan(score):
            return -math.inf
        return score if self.given.scoring.score.better == "higher" else -score

    def _asked(self, names: Sequence[str], entries: Sequence[str]) -> set[str]:
        """The layers that entries of the user's keep-list name; `*` stands for any characters."""
        found: set[str] = set()
        nodes = {node.name or "" for node in walk.all_nodes(self.work.model)}
        for pattern in entries:
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

    def _damage(self, layers: Sequence[Layer], always: Keep) -> dict[str, float]:
        names = [layer.name for layer in layers]
        feeds = [dict(one.feeds) for one in itertools.islice(self.given.calibration, _DAMAGED_ON)]
        with stage("damage"):
            try:
                variant = self.method.measured(self.work, always, self.method.variant(self.work, always))
                return damages.damage(self.method.reference(self.work), variant, names, self.runtime, feeds)
            except OnnxsmithError as error:
                self.work.notes.append(f"the damage of single layers was not measured: {error.problem.what}")
                return {}

    def _meets(self, keep: Keep) -> bool:
        key = self.work.scheme, self.work.kept_as if keep > self.work.always else "", self.work.always, keep
        if key not in self._known:
            if self._curve and self._is_spent:
                return False
            self._known[key] = self._evaluated(keep)
        return self._known[key]

    @property
    def _is_spent(self) -> bool:
        return len(self._curve) >= self.most

    def _evaluated(self, keep: Keep) -> bool:
        variant = self.method.variant(self.work, keep)
        advance("search", len(self._curve) + 1, self.most)
        try:
            scored = self._run(self.method.measured(self.work, keep, variant), self.given.scoring.of)
        except OnnxsmithError as error:
            is_whole = keep == self._whole and self.work.scheme in self.method.schemes(self.work)
            if error.problem.id != "quantize/cannot-run" or is_whole:
                raise  # all layers are changed: it may be because of a few
            said = f"a variant was refused: {error.problem.why}"[:_WORDS]
            self.work.notes += [said] if said not in self.work.notes else []
            scored = Scored(math.nan, 0)  # the next list keeps more layers
        meets = scored.broken <= self.before.broken and self.given.budget.allows(
            self.before.value, scored.value, self.given.scoring.score.better
        )
        stored = self.method.stored(self.work, keep)
        self._lists.append(keep)
        self._curve.append(CurvePoint(len(keep - stored), stored_bytes(variant), scored.value, meets, len(stored)))
        return meets

    def _run(self, variant: ir.Model, use: Callable[[Session], T]) -> T:
        """What `use` gives for a session of the variant.

        Raises:
            OnnxsmithError: `quantize/cannot-run` if the runtime refuses it or crashes.
        """
        try:
            with self.runtime.prepare(variant) as session:
                return use(session)
        except OnnxsmithError as error:
            if not error.problem.id.startswith("runtime/"):
                raise
            said = error.problem
            raise problem(
                "quantize/cannot-run",
                f"{self.runtime.title} cannot run the {self.name} model",
                where=said.where,
                why=f"{said.what}: {said.why}"[:_LONG] if said.why else said.what,
                fix="try another --to",
            ) from error
