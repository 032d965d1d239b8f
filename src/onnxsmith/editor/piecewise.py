"""Compares a model with its pieces, run one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import onnx_ir as ir

from onnxsmith.base.clock import stage
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.settings import Verify
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure.signature import Signature, signature
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Feeds, Options, Outputs, Session, Value
from onnxsmith.verification import free_values, random_draws, runtime_choice
from onnxsmith.verification.explore import Plan
from onnxsmith.verification.inputs.generate import Generator
from onnxsmith.verification.inputs.user_inputs import sizes
from onnxsmith.verification.optimisation_levels import agreement, both_levels
from onnxsmith.verification.probe import Probe
from onnxsmith.verification.rounding import asked, roundings
from onnxsmith.verification.verify import Evidence, Side, verify

NAMES = ("the original", "the pieces")
_MOST = 500
"""Limits the pieces that are run one after the other on all inputs. A choice: about a minute, and a session for each
piece."""


class Chain(Session):
    """Runs the sessions of pieces, one after the other. Each piece reads the caller's inputs and results of earlier
    pieces."""

    def __init__(self, sessions: Sequence[Session], interface: Signature) -> None:
        self._sessions = sessions
        self.signature = interface
        self.provider = sessions[0].provider

    def run(self, feeds: Feeds) -> Outputs:
        values: dict[str, Value] = dict(feeds)
        for session in self._sessions:
            names = [port.name for port in session.signature.inputs]
            values |= session.run({name: values[name] for name in names if name in values})
        return {port.name: values[port.name] for port in self.signature.outputs}


def compared_in_turn(
    original: ir.Model, whole: ir.Model, files: Sequence[Path], settings: Verify, part: Verification
) -> Verification:
    """Runs the pieces one after the other, as a caller does, and compares their outputs with the original's. Adds the
    result to `part`, which is the comparison of the original with `whole`, the pieces joined to one model.

    Raises:
        OnnxsmithError: errors of `verify`.
    """
    if len(files) > _MOST:
        gap = f"there are more than {_MOST} pieces: they were compared as one joined model, not one after the other"
        return replace(part, untried=(*part.untried, gap))
    if random_draws.nodes(original):
        gap = "the model draws random numbers: the pieces were compared as one joined model, not one after the other"
        return replace(part, untried=(*part.untried, gap))
    try:
        run, _ = runtime_choice.judged(
            settings.runtime,
            [original, *files],
            lambda name: _one_after_the_other(name, original, whole, files, settings),
        )
    except OnnxsmithError as error:
        if error.problem.id not in runtime_choice.LACKS:
            raise
        gap = f"the pieces were compared as one joined model, not one after the other: {error.problem.what}"
        return replace(part, untried=(*part.untried, gap))
    outputs = "the outputs differ" if run.differs else f"the outputs agree {agreement(run)}"
    note = f"the pieces were also run one after the other on {len(run.runs)} inputs: {outputs}"
    return both_levels(part, run, note)


def _one_after_the_other(
    name: str,
    original: ir.Model,
    whole: ir.Model,
    files: Sequence[Path],
    settings: Verify,
) -> Verification:
    """Compares without the runtime's optimisation, so that the whole model and its pieces run the same kernels."""
    chosen, options = runtimes.parse(name)
    if options == Options() and "disable" in chosen.levels:
        options = Options(optimization="disable", threads=1 if chosen.takes_threads else 0)  # many sessions
    with stage("shapes"):
        shaped, _ = inferred(original)
        generator = Generator.for_model(shaped).under(signature(original))
        free = free_values.of_model(original).joined(free_values.read(settings.free))
        plan = Plan(generator, (), sizes(settings.sizes), generate=True, seed=settings.seed, free=free)
        tolerances = roundings(shaped)
        if settings.tolerance is not None:
            tolerances = {output: asked(settings.tolerance) for output in tolerances}
    with stage("verify"), ExitStack() as stack:
        # The whole, a probe of it, and the pieces run side by side.
        preparer = stack.enter_context(runtimes.get(name).preparer(keep=len(files) + 3))
        ours = preparer.prepare(original, options)
        chain = Chain([preparer.prepare(file, options) for file in files], signature(whole))
        noise = stack.enter_context(Probe(original, lambda one: preparer.prepare(one, options)))
        return verify(
            Side(f"{NAMES[0]} on {name} ({ours.provider})", ours),
            Side(f"{NAMES[1]} on {name}, one after the other", chain),
            plan,
            tolerances,
            Evidence.of(noise, None, plant=False),
        )
