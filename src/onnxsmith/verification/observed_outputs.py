"""Runs a model, and compares its outputs with their declarations; for models that no verification runs as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.verification import Misdeclared
from onnxsmith.base.settings import Verify
from onnxsmith.graph.files.load import load
from onnxsmith.graph.shapes import dims
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure.signature import Signature, signature
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Options, Session
from onnxsmith.verification import runtime_choice
from onnxsmith.verification.input_search import Plan
from onnxsmith.verification.inputs.generate import Feed, Generator
from onnxsmith.verification.inputs.user_inputs import sizes
from onnxsmith.verification.intermediate_declarations import correct_intermediates
from onnxsmith.verification.output_declarations import Declarations, corrected
from onnxsmith.verification.run import accepted, least


def declared_as_run(
    model: ir.Model, settings: Verify | None, given: Sequence[Feed] = (), *, like: Path | ir.Model | None = None
) -> tuple[str, ...]:
    """Corrects in `model` what it declares wrongly for its outputs and intermediate values. Returns clauses for the
    headline. Runs `like` instead of the model, if it is given: the model from which it was made. Without `settings`, or
    if the model does not run, only intermediate values are corrected."""
    said: list[str] = []
    if settings is not None:
        with suppress(OnnxsmithError):
            said += corrected(model, observed(model if like is None else like, settings, given)[0])
    clause = correct_intermediates(model, like=load(like) if like is not None else None)
    return (*said, *([clause] if clause else []))


def observed(
    source: Path | ir.Model,
    settings: Verify,
    given: Sequence[Feed] = (),
    *,
    by_standard: bool = False,
    known: tuple[Signature, Generator] | None = None,
    then: Callable[[Session, Plan, Mapping[str, Any]], None] | None = None,
) -> tuple[tuple[Misdeclared, ...], str]:
    """Runs a model on generated inputs, and again with another size for each symbolic dimension, and on the `given`
    inputs. Returns the outputs whose declarations the runs contradict, and a clause if the usual runtime refused the
    model and another one ran it. The second run counts only if the model takes
    these sizes. With given inputs, so does the first. With `by_standard`, the reference evaluator judges what the usual
    runtime refuses. `known` has the interface of
    the model and what makes inputs for it; without it, the model is read. `then` gets the session, the plan and the
    first generated input that the model takes.

    Raises:
        OnnxsmithError: the errors of `run`.
    """
    interface, generator = known or _read(load(source))
    asked = sizes(settings.sizes)
    plan = least(generator, asked, settings.seed)
    free = [name for name in dims.symbols(plan.generator.signature) if name not in asked]
    distinct = {**asked, **{name: index + 2 for index, name in enumerate(free)}}

    def on(name: str) -> Declarations:
        found = Declarations(interface)
        with runtimes.get(name).preparer() as preparer:
            session = preparer.prepare(source, runtimes.patient(Options()), interface=interface)
            for feed in given:
                found.add(feed.values, session.run(feed.values))
            with suppress(*([OnnxsmithError] if given else [])):
                values = plan.generator.feed(dict(plan.start or {}), seed=plan.seed).values
                values, outputs, _ = accepted(session, plan, values)
                found.add(values, outputs)
                if then is not None:
                    then(session, plan, values)
            if free:
                other = least(generator, distinct, settings.seed + 1)
                values = other.generator.feed(dict(other.start or {}), seed=other.seed).values
                with suppress(OnnxsmithError):  # the sizes may be impossible together
                    found.add(values, session.run(values))
        return found

    found, choice = runtime_choice.judged(settings.runtime, [source], on, by_standard=by_standard)
    return found.wrong(), choice.clause


def _read(model: ir.Model) -> tuple[Signature, Generator]:
    interface = signature(model)
    return interface, Generator.for_model(inferred(model)[0]).under(interface)
