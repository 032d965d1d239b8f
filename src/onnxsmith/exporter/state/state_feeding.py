"""Compares several runs of a file in a row, each with the state that the run before returned, with calls of the
module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.verification import OutputCheck, Verification
from onnxsmith.exporter.inputs.state_pairs import Carried
from onnxsmith.runtimes.base import Session
from onnxsmith.runtimes.torch_eager import Memory, TorchProgram, in_double, to_array
from onnxsmith.verification.arbiter import as_near
from onnxsmith.verification.explore import Run
from onnxsmith.verification.value_comparison import difference

CALLS = 6
"""The module is called this many times in a row. A choice: more than a short ring buffer has places, and few enough for
a large model."""
Arrays = Mapping[str, Any]


@dataclass(frozen=True)
class Feeding:
    """The comparison of one file. `carried` is the state, `program` the module whose state is an argument."""

    carried: Carried
    program: TorchProgram

    def compared(self, found: Verification, runs: Sequence[Run], candidate: Session) -> Verification:
        """Adds the calls in a row to a verification. `runs` have the other inputs; `candidate` runs the file."""
        feeds = self._inputs(runs)
        if not feeds or not found.verified:
            return found
        ours, exact = list(self._called(self.program, feeds)), None
        theirs = self._chained(candidate, feeds)
        checks = {output.name: output for output in found.outputs}
        for step, (own, other) in enumerate(zip(ours, theirs, strict=True), 1):
            for name, value in own.items():
                check = checks[name]
                if not difference(value, other[name], check.tolerance * step, check.floor * step).reason:
                    continue
                if exact is None:
                    exact = self._exact(feeds)
                if exact is None or not as_near(exact[step - 1][name], value, other[name]):
                    return _different(found, checks[name], step, value, other[name])
        note = f"{len(feeds)} calls in a row agree, each with the state that the previous call returned"
        return replace(found, notes=(*found.notes, note))

    def _inputs(self, runs: Sequence[Run]) -> list[dict[str, Any]]:
        """Returns inputs without the state, all with the sizes of the first run."""
        others = [
            {name: value for name, value in run.feed.values.items() if name not in self.carried.initial}
            for run in runs
            if not run.left_out
        ]
        fits = [one for one in others if _shapes(one) == _shapes(others[0])]
        return [fits[at % len(fits)] for at in range(CALLS)] if fits else []

    def _chained(self, session: Session, feeds: Sequence[Arrays]) -> Iterator[Arrays]:
        state: dict[str, Any] = dict(self.carried.initial)
        following = dict(zip(self.carried.initial, self._outputs, strict=True))
        for feed in feeds:
            outputs = session.run({**feed, **state})
            yield outputs
            state = {name: outputs[output] for name, output in following.items()}

    @property
    def _outputs(self) -> list[str]:
        return [port.name for port in self.program.signature.outputs][-len(self.carried.initial) :]

    def _called(self, program: TorchProgram, feeds: Sequence[Arrays]) -> Iterator[Arrays]:
        """Yields the outputs of calls of the unchanged module."""
        names = [port.name for port in program.signature.outputs]
        memory = Memory(program.module)
        try:
            for feed in feeds:
                args, kwargs = program.arguments({**feed, **self.carried.initial})
                del kwargs[self.carried.argument]
                with torch.no_grad(), program.around():
                    result = program.module(*args, **kwargs)
                leaves = [leaf for leaf in program.leaves_of(result) if leaf is not None]
                yield {name: np.array(to_array(leaf)) for name, leaf in zip(names, leaves, strict=True)}
        finally:
            memory.restore()

    def _exact(self, feeds: Sequence[Arrays]) -> list[Arrays] | None:
        """Returns the outputs of the module in float64; None if it does not run."""
        try:
            return list(self._called(in_double(self.program), feeds))
        except (OnnxsmithError, RuntimeError, ValueError, TypeError):
            return None


def _shapes(values: Arrays) -> dict[str, Any]:
    return {name: np.shape(value) if isinstance(value, np.ndarray) else len(value) for name, value in values.items()}


def _different(found: Verification, check: OutputCheck, step: int, ours: Any, theirs: Any) -> Verification:
    apart = difference(ours, theirs, check.tolerance)
    bad = replace(
        check,
        equal=False,
        worst_abs=max(check.worst_abs, apart.worst_abs),
        worst_rel=max(check.worst_rel, apart.worst_rel),
        reason=f"in call {step} of {CALLS} in a row, with the state fed back: {apart.reason}",
        where=f"call {step} from the first state",
    )
    return replace(found, equal=False, outputs=tuple(bad if one.name == bad.name else one for one in found.outputs))
