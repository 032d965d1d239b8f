"""Tries: a model with some nodes narrow, on inputs to which the reference's answers are known."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import onnx_ir as ir

from onnxsmith.comparison.explore import Run, answer
from onnxsmith.comparison.rounding import Rounding
from onnxsmith.comparison.tensors import Difference, difference
from onnxsmith.precision.narrowing import narrowed
from onnxsmith.precision.units import Unit, Units
from onnxsmith.runtimes.base import Session

Keep = frozenset[str]
Prepare = Callable[[ir.Model], Session]
"""Gives a session for a model."""


@dataclass(frozen=True)
class Trial:
    """How a variant came off: the first difference beyond the tolerance, by output and input; none where it passed."""

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
    """Tries variants of `model`, each set of kept nodes once. `always` are kept whatever is asked."""

    model: ir.Model
    units: Units
    to: ir.DataType
    prepare: Prepare
    runs: list[Run]
    roundings: Mapping[str, Rounding]
    always: Keep = frozenset()
    most: int | None = None
    """How many variants may be tried; None for as many as it takes."""
    typed: bool = False
    """Whether the variant of the narrow dtype itself has to pass as well."""
    told: Callable[[int], None] = lambda _: None
    seen: dict[Keep, Trial] = field(default_factory=dict)
    sessions: int = 0
    remembered: int = 0
    refused: int = 0
    """Questions that were not asked, because `most` were."""

    def passes(self, keep: Collection[str]) -> bool:
        """Whether the variant with these nodes in float32 is within tolerance on every input; False when no more may
        be tried."""
        key = frozenset(keep) | self.always
        if key not in self.seen and self.most is not None and len(self.seen) >= self.most:
            self.refused += 1
            return False
        return self.trial(key).passed

    def trial(self, keep: Collection[str]) -> Trial:
        """How that variant comes off."""
        key = frozenset(keep) | self.always
        if key in self.seen:
            self.remembered += 1
        else:
            self.told(len(self.seen))
            self.seen[key] = self._tried(key)
        return self.seen[key]

    def variant(self, keep: Collection[str], *, rounded: bool) -> ir.Model:
        """The model in which all but `keep` is narrow."""
        return narrowed(self.model, self.narrow(keep), self.to, rounded=rounded)

    def narrow(self, keep: Collection[str]) -> list[Unit]:
        """The nodes that are then narrow."""
        kept = frozenset(keep) | self.always
        return [unit for unit in self.units.units if unit.name not in kept]

    def again(self, run: Run | None = None) -> None:
        """Forgets what was tried: there is one input more, or a further condition."""
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
        """What one variant fails on, most others do: that input comes first from now on."""
        run = self.runs.pop(at)
        self.runs.insert(0, run)
        return Trial(False, output, run.feed.label, found)
