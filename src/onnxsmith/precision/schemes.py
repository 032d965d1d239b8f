"""Chooses the scheme of a method, the way to keep layers, and the smallest keep-list that meets the budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from onnxsmith.base.clock import stage
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.precision import damage as damages
from onnxsmith.precision.keep_list_search import Keep, Search
from onnxsmith.precision.methods.base import Layer
from onnxsmith.precision.variant_evaluation import REFUSED, WORDS, Evaluations


@dataclass
class Schemes:
    """Searches keep-lists of `layers` in the schemes of a method, or in one of them, `only`."""

    seen: Evaluations
    layers: Sequence[Layer]
    errors: dict[str, float] = field(default_factory=dict)
    """The error of each layer alone, by name, once measured."""
    only: str = ""

    def smallest(self, always: Keep) -> Keep | None:
        """Searches the smallest keep-list that includes `always`. Uses the scheme and the way named in the user's list
        if they meet the budget, else chooses them. Returns None if no list meets the budget.

        Raises:
            OnnxsmithError: `quantize/refused` and `quantize/cannot-run` if all layers together are refused.
        """
        if self.only:
            self.seen.work.scheme = self.only
            with stage("search"):
                if not self.seen.meets(always):
                    return self._searched(always)
            self.errors = self.seen.damage(self.layers, always)
            return always
        if self._is_as_asked(always):
            self.errors = self.seen.damage(self.layers, always)
            return always
        self._choose(always)
        return self._smallest(always)

    def _is_as_asked(self, always: Keep) -> bool:
        work = self.seen.work
        if not work.asked_scheme and not work.asked_way:
            return False
        work.scheme, work.kept_as, work.is_asked = work.asked_scheme, work.asked_way, True
        why_not = "exceeds the budget"
        with stage("search"):
            try:
                if self.seen.meets(always):
                    return True
            except OnnxsmithError as error:
                if error.problem.id not in REFUSED:
                    raise
                why_not = f"was refused: {error.problem.why}"[:WORDS]
        work.scheme, work.kept_as, work.is_asked = "", "", False
        work.notes.append(f"the scheme that the keep-list names {why_not}; other schemes were tried")
        return False

    def _choose(self, always: Keep) -> None:
        """Takes the first scheme that meets the budget, else the scheme with the best score."""
        seen, work = self.seen, self.seen.work
        schemes = seen.method.schemes(work)
        scores: dict[str, float] = {}
        refused: OnnxsmithError | None = None
        with stage("schemes"):
            for scheme in schemes if len(schemes) > 1 else ():
                # At least one scheme is scored, even if no evaluations are left.
                if (scores and seen.is_spent) or not seen.method.offers(work, scheme):
                    continue
                work.scheme = scheme
                try:
                    if seen.meets(always):
                        return
                except OnnxsmithError as error:
                    if error.problem.id not in REFUSED:
                        raise
                    refused = error
                    work.notes.append(f"{scheme}: {error.problem.what}: {error.problem.why}"[:WORDS])
                    continue
                scores[scheme] = seen.goodness(seen.curve[-1].score)
        if scores:
            work.scheme = max(scores, key=scores.__getitem__)
        elif refused is not None:
            raise refused

    def _smallest(self, always: Keep) -> Keep | None:
        """Searches the smallest keep-list. Keeps layers in the first way that can meet the budget. If no way can, makes
        only weights narrow, and keeps the layers for which even that is out of budget."""
        seen, work = self.seen, self.seen.work
        with stage("search"):
            if seen.meets(always):
                self.errors = seen.damage(self.layers, always)
                return always
            way = self._way(always)
            last = seen.method.last_scheme(work)
            if way is not None or not last:
                work.kept_as = way or ""
                return self._or_as_given(always, self._searched(always))
            scheme, work.scheme = work.scheme, last
            kept = self._searched(always)
            if kept is None or len(kept) == len(self.layers):
                return kept
            return self._with_activations(scheme, kept)

    def _way(self, always: Keep) -> str | None:
        """Returns the first way to keep layers that meets the budget if all layers are kept in it; None if there is
        none. The last way is not tried, because it leaves the layers as they are."""
        work = self.seen.work
        whole = always | {layer.name for layer in self.layers if not layer.weights_alone}
        for way in self.seen.method.ways_to_keep(work)[:-1]:
            work.kept_as = way
            if self.seen.meets(whole):
                return way
        work.kept_as = ""
        return None

    def _with_activations(self, scheme: str, kept: Keep) -> Keep:
        """Searches a keep-list in a scheme with narrow activations that keeps at least the layers of `kept`. Returns
        `kept`, in the scheme with only narrow weights, if there is none."""
        work = self.seen.work
        last, work.always = work.scheme, kept
        work.scheme = scheme
        if self._way(kept) is not None:
            found = self._searched(kept)
            if found is not None:
                return found
        work.scheme, work.kept_as = last, ""
        return kept

    def _searched(self, always: Keep) -> Keep | None:
        """Searches the smallest keep-list in the current scheme and way."""
        seen, work = self.seen, self.seen.work
        self.errors = seen.damage(self.layers, always)
        order = damages.ordered(self.errors, [one.name for one in self.layers if one.name not in always])
        if not work.kept_as:
            whole = always | frozenset(order)  # the given model, which needs no evaluation
            return self._lightest(order, lambda keep: keep == whole or seen.meets(keep), always)
        alone = {one.name for one in self.layers if one.weights_alone}
        order = [name for name in order if name not in alone]
        return self._lightest(order, seen.meets, always) or always | frozenset(order)

    def _lightest(self, order: Sequence[str], meets: Callable[[Keep], bool], always: Keep) -> Keep | None:
        """Searches the smallest keep-list. If a large part of the weights would stay because of few layers, searches
        again among the others: several small layers may do instead."""
        found = Search(order, meets, self._left()).smallest(always)
        sizes = {layer.name: layer.nbytes for layer in self.layers}
        nbytes = self._bytes(found or frozenset(), sizes) - self._bytes(always, sizes)
        if found is None or nbytes < _HEAVY * sum(sizes.values()) or self.seen.is_spent:
            return found
        light = [name for name in order if sizes[name] < _HEAVY * nbytes]
        other = Search(light, meets, self._left()).smallest(always) if light else None
        is_lighter = other is not None and self._bytes(other, sizes) < self._bytes(found, sizes)
        return other if is_lighter else found

    def _or_as_given(self, always: Keep, found: Keep | None) -> Keep | None:
        """Returns a list whose layers stay as they are, in place of one that keeps them in another way, if fewer bytes
        stay wide with it. It is searched if a large part of the weights would stay wide."""
        work, sizes = self.seen.work, {layer.name: layer.nbytes for layer in self.layers}
        wide = self._wide(found, sizes) if found is not None else 0
        if found is None or not work.kept_as or wide < _HEAVY * sum(sizes.values()) or self.seen.is_spent:
            return found
        way, work.kept_as = work.kept_as, ""
        other = self._searched(always)
        if other is not None and self._wide(other, sizes) < wide:
            return other
        work.kept_as = way
        return found

    def _wide(self, keep: Keep, sizes: Mapping[str, int]) -> int:
        """Returns the bytes of the layers that stay wide with a list."""
        return self._bytes(keep - self.seen.method.stored(self.seen.work, keep), sizes)

    def _left(self) -> int:
        return max(1, self.seen.most - len(self.seen.curve)) + 2  # 2 more: none kept and all kept are known

    def _bytes(self, keep: Keep, sizes: Mapping[str, int]) -> int:
        return sum(sizes.get(name, 0) for name in keep)


_HEAVY = 0.25
"""The share of the weights above which layers that stay are heavy. A choice."""
