"""Tries variants, in which some nodes are narrow, on inputs for which the reference's outputs are known."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import onnx_ir as ir

from onnxsmith.precision.keep_list_search import Keep
from onnxsmith.precision.mixed_precision import narrowed
from onnxsmith.precision.narrowable_nodes import Unit, Units
from onnxsmith.runtimes.base import Session
from onnxsmith.verification.explore import Run, answer
from onnxsmith.verification.rounding import Rounding
from onnxsmith.verification.value_comparison import Difference, difference

Prepare = Callable[[ir.Model], Session]
"""Prepares a session for a model."""


@dataclass(frozen=True)
class Trial:
    """The result of a variant. If it failed, `found` is the first difference beyond the tolerance, with its output and
    input."""

    passed: bool
    output: str = ""
    input: str = ""
    found: Difference = field(default_factory=Difference)

    def __str__(self) -> str:
        if self.passed:
            return "within tolerance"
        far = f", {self.found.worst_rel:.2g} of its scale" if self.found.worst_rel else ""
        return f"{self.output}: {self.found.reason}{far} ({self.input})"


@dataclass
class Trials:
    """Tries variants of `model`, each set of kept nodes once. Nodes in `always` are kept in every variant."""

    model: ir.Model
    units: Units
    to: ir.DataType
    prepare: Prepare
    runs: list[Run]
    roundings: Mapping[str, Rounding]
    always: Keep = frozenset()
    most: int | None = None
    """The most variants to try; None for no limit."""
    typed: bool = False
    """Whether the typed variant has to pass as well (`mixed_precision`)."""
    told: Callable[[int], None] = lambda _: None
    seen: dict[Keep, Trial] = field(default_factory=dict)
    sessions: int = 0
    remembered: int = 0
    refused: int = 0
    """Variants that were not tried because of the limit."""

    def passes(self, keep: Collection[str]) -> bool:
        """Whether the variant with these nodes in float32 is within tolerance on every input; False if the limit of
        variants is reached."""
        key = frozenset(keep) | self.always
        if key not in self.seen and self.most is not None and len(self.seen) >= self.most:
            self.refused += 1
            return False
        return self.trial(key).passed

    def trial(self, keep: Collection[str]) -> Trial:
        """Returns the result of the variant with these nodes in float32."""
        key = frozenset(keep) | self.always
        if key in self.seen:
            self.remembered += 1
        else:
            self.told(len(self.seen))
            self.seen[key] = self._tried(key)
        return self.seen[key]

    def variant(self, keep: Collection[str], *, rounded: bool) -> ir.Model:
        """Returns the model with every node narrow except `keep`."""
        return narrowed(self.model, self.narrow(keep), self.to, rounded=rounded)

    def narrow(self, keep: Collection[str]) -> list[Unit]:
        """Returns the nodes that are narrow in the variant that keeps `keep`."""
        kept = frozenset(keep) | self.always
        return [unit for unit in self.units.units if unit.name not in kept]

    def again(self, run: Run | None = None) -> None:
        """Forgets all results. Call it after adding a condition; `run` is a further input, if there is one."""
        if run is not None:
            self.runs.insert(0, run)
        self.seen.clear()

    def _tried(self, keep: Keep) -> Trial:
        for rounded in (True, False) if self.typed else (True,):
            self.sessions += 1
            with self.prepare(self.variant(keep, rounded=rounded)) as session:
                for at, run in enumerate(self.runs):
                    outputs, refusal = answer(session, run.feed)
                    if refusal is not None or outputs is None:
                        said = f"the variant refuses the input: {refusal.what if refusal else ''}"
                        return self._failed(at, "", Difference(said))
                    for name, value in run.outputs.items():
                        bounds = self.roundings[name].bounds if name in self.roundings else (0.0, 0.0)
                        found = difference(value, outputs[name], *bounds)
                        if found.reason:
                            return self._failed(at, name, found)
        return Trial(True)

    def _failed(self, at: int, output: str, found: Difference) -> Trial:
        """Records a failure, and moves its input to the front: most variants fail on the same input."""
        run = self.runs.pop(at)
        self.runs.insert(0, run)
        return Trial(False, output, run.feed.label, found)
