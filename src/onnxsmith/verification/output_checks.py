"""Collects the differences of each output over all runs and turns them into results."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import numpy as np

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.parts.verification import REFUSES, OutputCheck
from onnxsmith.base.words import several
from onnxsmith.graph.structure.signature import Signature
from onnxsmith.runtimes.base import Outputs
from onnxsmith.verification.allowance import Allowance, Allowed
from onnxsmith.verification.arbiter import Arbiter
from onnxsmith.verification.explore import Run
from onnxsmith.verification.free_values import NONE, Free
from onnxsmith.verification.inputs.generate import Feed
from onnxsmith.verification.rounding import Rounding
from onnxsmith.verification.value_comparison import Difference, difference, layout_difference

_NO, _FEW = "no input", "too few inputs"
_TINY = 1e-12
"""Names the scale below which an output is reported as weak. A choice: random weights may shrink values from layer to
layer, and agreement on the resulting outputs shows little."""


class Checks:
    """Collects differences by output. `drawn` returns the outputs that the reference draws at random. `unsteady`
    returns the outputs that change from run to run on one input only. Both functions are called only when an output
    differs, because they run the reference again."""

    def __init__(
        self,
        signature: Signature,
        roundings: Mapping[str, Rounding],
        *,
        drawn: Callable[[Run], Set[str]],
        unsteady: Callable[[Run], Set[str]] = lambda _: frozenset(),
        arbiter: Arbiter | None = None,
        allowance: Allowance | None = None,
        free: Free = NONE,
    ) -> None:
        self._ports = signature.outputs
        self._roundings = roundings
        self.free = free
        self._allowance = allowance or Allowance(roundings)
        self._drawn = drawn
        self._unsteady = unsteady
        self._beyond = ""
        self._known: Set[str] = frozenset()
        self._arbiter = arbiter
        self._settled: dict[str, str] = {}
        self._worst: dict[str, Difference] = {port.name: Difference() for port in self._ports}
        self._where: dict[str, str] = {}
        self._still: set[str] = set()
        self._compared: dict[str, int] = dict.fromkeys(self._worst, 0)
        self._inexact: set[str] = set()
        self._allowed: dict[tuple[int, str], Allowed] = {}
        self._bound: dict[str, Allowed | None] = {}
        self._ill: dict[str, list[str]] = {}
        self._out: set[tuple[int, str]] = set()
        """Holds pairs (id of a run, output) in which the run cannot decide about the output."""
        self._given: dict[str, str] = {}
        self._is_traced = False
        """Whether the candidate was traced with one of the inputs."""
        self._judged: dict[str, int] = dict.fromkeys(self._worst, 0)
        self.worst: Feed | None = None
        """Holds the input with the largest difference. A failed input comes before any passed input. None before the
        first run."""
        self._rank = (False, -1.0, 0.0)

    def add(self, run: Run, answer: Outputs | None, refusal: Problem | None) -> dict[str, Difference]:
        """Records one run and the candidate's outputs on it. Returns the difference of each output."""
        all_found: dict[str, Difference] = {}
        self._is_traced = self._is_traced or run.feed.is_traced
        answer = None if answer is None else self.free.aligned(run.outputs, answer)
        for port in self._ports:
            if answer is None:
                assert refusal is not None
                refused = f"{refusal.what} {refusal.why}".strip()
                found = Difference(f"{REFUSES}: {refused}")
            elif port.name not in answer:
                found = Difference("the candidate has no such output")
            else:
                found = self._difference(run, port.name, answer[port.name])
            all_found[port.name] = found
            self._compared[port.name] += found.compared
            if not found.is_exact:
                self._inexact.add(port.name)
            rank = (bool(found.reason), found.worst_rel, found.scale)
            if rank > self._rank:
                self.worst, self._rank = run.feed, rank
            worst = self._worst[port.name]
            if rank > (bool(worst.reason), worst.worst_rel, worst.scale):
                self._worst[port.name] = found
                self._where[port.name] = run.feed.label
                self._bound[port.name] = self._allowed.get((id(run), port.name))
        return all_found

    def give_up(self, run: Run, why: Problem) -> None:
        """Records a run that the candidate did not finish within the limits of the machine; such a run decides
        nothing."""
        self._beyond = f"on {run.feed.label}: {why.what}"

    def refuse(self, name: str, reason: str, where: str) -> None:
        """Records a fault of an output that its values do not show."""
        if not self._worst[name].reason:
            self._worst[name] = Difference(reason)
            self._where[name] = where

    def _difference(self, run: Run, name: str, value: Any) -> Difference:
        if name in self._known:
            return layout_difference(run.outputs[name], value)
        found, allowed = self._allowance.judged(run, name, value)
        self._allowed[id(run), name] = allowed
        if not found.reason and not allowed.ill:
            self._judged[name] += bool(found.compared) and not run.feed.is_traced
            return found

        # From here on the output differs or is ill-conditioned, which is rare: each explanation runs the reference
        # again, or computes in float64.
        self._known = self._drawn(run)
        if name in self._known:
            return layout_difference(run.outputs[name], value)
        if found.reason and not self._worst[name].reason and name in self._unsteady(run):
            return self._left_out(run, name, "it changes from run to run on this input")
        if allowed.ill and not found.reason and self._settles(run, name, value, allowed):
            self._judged[name] += bool(found.compared) and not run.feed.is_traced
            return found
        if allowed.ill:
            return self._left_out(run, name, allowed.ill)
        is_asked = self._arbiter is not None and self._arbiter.is_asked(found)
        settled = is_asked and self._settles(run, name, value, allowed)
        lost = ""
        if self._arbiter is not None and is_asked and not settled:
            lost = self._arbiter.lost(run, name) or self._arbiter.same(run, name, value)
        if lost:
            return self._left_out(run, name, lost)
        self._judged[name] += 1
        return replace(found, reason="") if settled else found

    def _left_out(self, run: Run, name: str, why: str) -> Difference:
        """Records that this input cannot decide about the output, and returns no difference."""
        self._ill.setdefault(name, []).append(f"{run.feed.label}: {why}")
        self._out.add((id(run), name))
        if not run.generated:
            self._given.setdefault(run.feed.label, name)
        return Difference()

    def _settles(self, run: Run, name: str, value: Any, allowed: Allowed) -> bool:
        """Whether the float64 computation shows that the candidate is right."""
        if self._arbiter is None:
            return False
        worst, floor = self._bounds(name) if allowed.ill else (allowed.worst, allowed.floor)
        settled = self._arbiter.settle(run, name, value, worst, floor)
        if settled:
            self._settled[name] = settled
        return bool(settled)

    def sees(self, run: Run, usual: Outputs, faulty: Outputs) -> bool:
        """Whether this check, with the bounds it used on `run`, would have distinguished `faulty` from `usual`. Outputs
        that were bit-identical are compared bit for bit."""
        faulty = self.free.aligned(usual, faulty)
        for port in self._ports:
            if port.name in self._known or port.name not in usual or port.name not in faulty:
                continue
            allowed = self._allowed.get((id(run), port.name))
            if allowed is None or allowed.ill or (id(run), port.name) in self._out:
                continue
            # The check proved bit equality, so any changed bit would have been seen.
            exact = port.name not in self._inexact
            bounds = (0.0, 0.0, 0.0) if exact else (allowed.worst, allowed.floor, allowed.spread)
            found = difference(usual[port.name], faulty[port.name], *bounds)
            if found.reason and not 0 < found.unequal <= (0 if exact else allowed.changed):
                return True
        return False

    def differs(self, run: Run, ours: Outputs, theirs: Outputs) -> str:
        """Names the output in which two answers to `run` differ by more than rounding explains; "" if no output does.
        NaN and infinity have to be at the same places. What was allowed on `run` may be the rounding of one operation,
        because the candidate was near; then the movement of `ours` by rounding is measured first."""
        theirs = self.free.aligned(ours, theirs)
        for port in self._ports:
            allowed = self._allowed.get((id(run), port.name))
            if port.name in self._known or port.name not in ours or port.name not in theirs or allowed is None:
                continue
            if allowed.ill or (id(run), port.name) in self._out:
                continue
            found = difference(ours[port.name], theirs[port.name], allowed.worst, allowed.floor, allowed.spread)
            if found.reason and not allowed.measured:
                found, allowed = self._allowance.judged(replace(run, outputs=ours), port.name, theirs[port.name])
            if found.reason and not 0 < found.unequal <= allowed.changed:
                return port.name
        return ""

    def effect(self, run: Run, usual: Outputs, faulty: Outputs) -> float:
        """Returns the difference of two answers, in units of the usual difference of correct computations. Infinite if
        integers differ, or if no float differs."""
        found = 0.0
        faulty = self.free.aligned(usual, faulty)
        for port in self._ports:
            if port.name in self._known or port.name not in usual or port.name not in faulty:
                continue
            apart = difference(usual[port.name], faulty[port.name], 0.0)
            if apart.unequal or not np.isfinite(apart.worst_rel):
                return np.inf  # rounding changes no integers: no unit measures the effect
            if apart.worst_rel:
                allowed = self._allowed.get((id(run), port.name))
                found = max(found, apart.worst_rel / self._allowance.usual(usual[port.name], port.name, allowed))
        return found or np.inf  # no float differs: no unit measures the effect

    def judge_movement(self, runs: Sequence[Run]) -> None:
        """Records outputs that were the same for two inputs of the same sizes, because agreement on them shows
        little."""
        pairs = [(a, b) for a, b in itertools.pairwise(runs) if a.feed.sizes == b.feed.sizes and a.feed.values]
        for port in self._ports if pairs else ():
            bounds = self._bounds(port.name)
            if not any(difference(a.outputs[port.name], b.outputs[port.name], *bounds).reason for a, b in pairs):
                self._still.add(port.name)

    @property
    def notes(self) -> tuple[str, ...]:
        """Returns sentences on inputs that were left out for an output."""
        return tuple(
            f"output {name!r} was left out on {several(len(found), 'input')} that could not decide about it, "
            f"first {found[0]}"
            for name, found in self._ill.items()
        )

    @property
    def untried(self) -> tuple[str, ...]:
        """Returns clauses for a headline, on given inputs that decide nothing."""
        return tuple(f"{label} could not decide about output {name!r}" for label, name in self._given.items())

    @property
    def undecided(self) -> tuple[str, ...]:
        """Returns sentences on outputs about which no input could decide, with the reason. The input of a trace decides
        nothing: the graph repeats what the module gave for it, also if it is a constant. Of a trace, more than half of
        the other inputs have to decide: a constant may fit one of them by chance."""
        beyond = (self._beyond,) if self._beyond else ()
        return beyond + tuple(
            f"{_FEW if self._judged[name] else _NO} could decide about output {name!r}: on {found[0]}"
            for name, found in self._ill.items()
            if self._judged[name] <= (len(found) if self._is_traced else 0) and not self._worst[name].reason
        )

    def says_nothing(self, run: Run) -> bool:
        """Whether the run was left out for every output."""
        left = [port.name for port in self._ports if (id(run), port.name) in self._out]
        return bool(left) and len(left) == len(self._ports)

    @property
    def exact(self) -> bool:
        """Whether every output was bit-identical."""
        return not self._inexact and not self._ill

    def results(self) -> tuple[OutputCheck, ...]:
        """Returns one check for each output, in the model's order."""
        return tuple(self._result(port.name, port.dtype) for port in self._ports)

    def _bounds(self, name: str) -> tuple[float, float]:
        rounding = self._roundings.get(name)
        return rounding.bounds if rounding is not None else (0.0, 0.0)

    def _result(self, name: str, dtype: str) -> OutputCheck:
        worst, allowed = self._worst[name], self._bound.get(name)
        here = allowed.rounding if allowed is not None else None
        rounding = here or self._roundings.get(name)
        floating = "float" in dtype or dtype in ("double", "complex64", "complex128")
        counted = rounding.bounds if rounding is not None else (0.0, 0.0)
        tolerance = allowed.worst if allowed is not None else counted[0]
        measured = allowed is not None and allowed.measured and tolerance < counted[0]
        why = ""
        if rounding is not None and floating:
            moved = f"{tolerance:.2g} follows from how far a change of one ulp in inputs and weights moves the output"
            why = moved if measured else str(rounding)
        return OutputCheck(
            name=name,
            dtype=dtype,
            equal=not worst.reason,
            worst_abs=worst.worst_abs,
            worst_rel=worst.worst_rel,
            scale=worst.scale,
            tolerance=tolerance if floating else 0.0,
            why_tolerance=why,
            compared=0 if name in self._known else self._compared[name],
            reason=worst.reason,
            where=self._where.get(name, "") if worst.reason else "",
            weak=self._weakness(name, worst, floating),
            drawn=name in self._known,
            exact=name not in self._inexact and name not in self._ill,
            free=self.free.of(name),
            floor=(allowed.floor if allowed is not None else counted[1]) if floating else 0.0,
        )

    def _weakness(self, name: str, worst: Difference, floating: bool) -> str:
        if worst.reason:
            return ""
        if name in self._known:
            return "it is drawn at random: only its dtype, its shape and its change from run to run were checked"
        if name in self._settled:
            return self._settled[name]
        if self._compared[name] == 0 and name in self._ill:
            return f"nothing was compared: no input could decide, first {self._ill[name][0]}"
        if self._compared[name] == 0:
            return "nothing was compared: it was empty or NaN on every input"
        if floating and worst.scale < _TINY:
            return f"its values are as small as {worst.scale:.1g}, and agreement at such a scale shows little"
        if name in self._still:
            return "it was the same for different inputs, so its agreement shows little"
        return ""
