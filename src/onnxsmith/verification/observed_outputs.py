"""Runs a model, and compares its outputs with their declarations; for models that no verification runs as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.verification import Misdeclared
from onnxsmith.base.settings import Verify
from onnxsmith.graph.files.load import load
from onnxsmith.graph.shapes import dims
from onnxsmith.graph.structure.signature import signature
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Options
from onnxsmith.verification import runtime_choice
from onnxsmith.verification.inputs.generate import Feed
from onnxsmith.verification.inputs.user_inputs import sizes
from onnxsmith.verification.intermediate_declarations import correct_intermediates
from onnxsmith.verification.output_declarations import Declarations, corrected
from onnxsmith.verification.run import accepted, planned


def declared_as_run(
    model: ir.Model, settings: Verify | None, given: Sequence[Feed] = (), *, like: Path | ir.Model | None = None
) -> tuple[str, ...]:
    """Corrects in `model` what it declares wrongly for its outputs and intermediate values. Returns clauses for the
    headline. Runs `like` instead of the model, if it is given: the model from which it was made. Without `settings`, or
    if the model does not run, only intermediate values are corrected."""
    said: list[str] = []
    if settings is not None:
        with suppress(OnnxsmithError):
            said += corrected(model, observed(model if like is None else like, settings, given))
    clause = correct_intermediates(model, like=load(like) if like is not None else None)
    return (*said, *([clause] if clause else []))


def observed(
    source: Path | ir.Model, settings: Verify, given: Sequence[Feed] = (), *, by_standard: bool = False
) -> tuple[Misdeclared, ...]:
    """Runs a model on generated inputs, and again with another size for each symbolic dimension, and on the `given`
    inputs. Returns the outputs whose declarations the runs contradict. The second run counts only if the model takes
    these sizes. With given inputs, so does the first. With `by_standard`, the reference evaluator judges what the usual
    runtime refuses.

    Raises:
        OnnxsmithError: the errors of `run`.
    """
    model = load(source)
    interface, known = signature(model), sizes(settings.sizes)
    plan = planned(model, interface, known, settings.seed)
    free = [name for name in dims.symbols(plan.generator.signature) if name not in known]
    distinct = {**known, **{name: index + 2 for index, name in enumerate(free)}}

    def on(name: str) -> Declarations:
        found = Declarations(interface)
        with runtimes.get(name).prepare(source, runtimes.patient(Options())) as session:
            for feed in given:
                found.add(feed.values, session.run(feed.values))
            with suppress(*([OnnxsmithError] if given else [])):
                values = plan.generator.feed(dict(plan.start or {}), seed=plan.seed).values
                values, outputs, _ = accepted(session, plan, values)
                found.add(values, outputs)
            if free:
                other = planned(model, interface, distinct, settings.seed + 1)
                values = other.generator.feed(dict(other.start or {}), seed=other.seed).values
                with suppress(OnnxsmithError):  # the sizes may be impossible together
                    found.add(values, session.run(values))
        return found

    return runtime_choice.judged(settings.runtime, [source], on, by_standard=by_standard)[0].wrong()
