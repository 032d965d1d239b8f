"""What an operation's own error does to the outputs, found by taking it out.

The candidate is run twice with what the reference has in the place of everything that does not follow from the tensor:
once it computes the tensor itself, once it is given the reference's value there too. What the outputs then move by is
the effect of this one error. An error that is a fault leaves the outputs further from the reference than they are
without it. A tensor that is only computed otherwise, and made up for further on, leaves them closer.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from onnxsmith.comparison.tensors import is_float
from onnxsmith.layers.look import Look, mismatch
from onnxsmith.layers.trial import Trial
from onnxsmith.metrics.base import widen
from onnxsmith.metrics.max_rel import rms
from onnxsmith.runtimes.base import Value

_HALF = 0.5
"""An error that explains most of what is wrong behind it leaves less than this part of it when it is taken out."""


@dataclass(frozen=True)
class Effect:
    """Of the output that the error moves most, in root mean square over its scale: how far the error moves it
    (`size`), how far it is from the reference with the error (`present`) and without it (`absent`)."""

    size: float = 0.0
    present: float = 0.0
    absent: float = 0.0

    @property
    def harms(self) -> bool:
        """Whether most of what is wrong behind the error goes with it."""
        return self.size > 0 and self.absent <= _HALF * self.present

    @property
    def helps(self) -> bool:
        """Whether the outputs are further off without it: something behind makes up for it."""
        return self.size > 0 and self.present <= _HALF * self.absent


def effect_of(trial: Trial, look: Look) -> Effect:
    """The effect of what a pair errs by itself; none where it reaches no output."""
    made = trial.made_with(look.pair.candidate)
    behind = trial.behind_all(made)
    outputs = [pair.candidate for pair in trial.pairs if pair.how == "port" and pair.candidate in behind | made]
    if not outputs:
        return Effect()
    elsewhere = trial.cuts - behind - made
    reference, present = trial.behind(outputs, elsewhere)
    computed = [name for name in outputs if name not in made]
    absent = {name: reference[name] for name in outputs}
    if computed:
        absent |= trial.behind(computed, elsewhere | made)[1]
    found = [_effect(reference[name], present[name], absent[name]) for name in outputs]
    return max(found, key=lambda one: one.size)


def left_without(trial: Trial, look: Look) -> Effect:
    """How far the output that differs most in the plain run is from the reference, and how far it is when the candidate
    is given the reference's value at this tensor and computes all else from the inputs."""
    made = trial.made_with(look.pair.candidate)
    outputs = [pair.candidate for pair in trial.pairs if pair.how == "port"]
    if not outputs:
        return Effect()
    reference, plain = trial.reference([*outputs, *made]), trial.candidate({}, outputs)
    computed = [name for name in outputs if name not in made]
    healed = {name: reference[name] for name in outputs}
    if computed:
        healed |= trial.candidate({name: reference[name] for name in made}, computed)
    found = [_effect(reference[name], plain[name], healed[name]) for name in outputs]
    return max(found, key=lambda one: one.present)


def _effect(reference: Value, present: Value, absent: Value) -> Effect:
    return Effect(_far(absent, present, reference), _far(reference, present), _far(reference, absent))


def _far(a: Value, b: Value, scale_of: Value = None) -> float:
    """How far two values are apart in root mean square over the scale of the first, or of `scale_of`; the part of the
    elements that differ where they are no floats. Infinite where they have nothing to compare."""
    if isinstance(a, list) and isinstance(b, list):
        return max((_far(x, y) for x, y in zip(a, b, strict=False)), default=0.0) if len(a) == len(b) else np.inf
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
        return 0.0 if a is b else np.inf
    if mismatch(a, b):
        return np.inf
    if not a.size:
        return 0.0
    if not is_float(a):
        return float(np.mean(a != b))
    wide, other = widen(a).ravel(), widen(b).ravel()
    same = (wide == other) | (np.isnan(wide) & np.isnan(other))
    finite = np.isfinite(wide) & np.isfinite(other)
    if not (same | finite).all():
        return np.inf
    scale = widen(scale_of).ravel() if isinstance(scale_of, np.ndarray) and is_float(scale_of) else wide
    size = rms(scale[np.isfinite(scale)])
    apart = rms((wide - other)[finite & ~same]) * float(np.sqrt(np.mean(finite & ~same)))
    return apart / size if size else (np.inf if apart else 0.0)


def most_severe(looks: Collection[Look], count: int) -> list[Look]:
    """Those that err most over what is allowed to them, in the order in which they are computed."""
    ranked = sorted(looks, key=lambda look: -look.severity)[:count]
    return [look for look in looks if look in ranked]
