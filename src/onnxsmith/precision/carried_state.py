"""Runs the given model over the user's data step by step, if its states are not in the data.

A model with states returns them for its next call. If the data has no values for these inputs, its samples are the
steps of one recording: each gets the states that the model returned for the sample before. The calibration reads the
states of the given model. In the test each model has its own states, as in use, so that errors that add up are seen.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import first_few, several
from onnxsmith.comparison.outputs.reference_steps import Calls, rolled
from onnxsmith.comparison.outputs.state_names import Fed, by_name
from onnxsmith.exporter.inputs import state_pairs
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure.dim_ranges import Sizes
from onnxsmith.graph.structure.signature import Signature, signature
from onnxsmith.precision.calibration_data import EVERY, MOST, Samples
from onnxsmith.precision.data.base import Sample
from onnxsmith.runtimes.base import Session
from onnxsmith.verification.explore import Plan
from onnxsmith.verification.inputs.generate import Feed, Generator
from onnxsmith.verification.inputs.size_proposals import of_feed
from onnxsmith.verification.value_comparison import near

_STEPS = EVERY * MOST
"""Limits the steps. A choice: their inputs and states are held in memory."""
_GENERATED = 8
"""The number of generated steps. A choice: they measure rounding, not accuracy."""


def pairs(model: ir.Model) -> tuple[Fed, ...]:
    """Returns the states of a model: by the metadata of its file, else by the names of inputs and outputs."""
    interface = signature(model)
    inputs, outputs = ({port.name for port in ports} for ports in (interface.inputs, interface.outputs))
    held = state_pairs.stored(model)
    found = [Fed(one.input, one.output, one.first) for one in held if one.input in inputs and one.output in outputs]
    shapes = {port.name: port.shape for port in interface.outputs}
    return tuple(replace(one, shape=shapes[one.output]) for one in found or by_name(interface))


def generated(model: ir.Model, session: Session, states: tuple[Fed, ...], sizes: Sizes, seed: int) -> Samples:
    """Returns generated steps.

    Raises:
        OnnxsmithError: `compare/step` if the model refuses a step; the errors of the runtime.
    """
    found = rolled(session, _plan(model, (), sizes, seed), Calls(states, _GENERATED))
    carried = {pair.input: pair.output for pair in states}
    made = [Sample(dict(feed.values), None, feed.label, carried if at else {}) for at, feed in enumerate(found.feeds)]
    return Samples(lambda: iter(made), "generated inputs")


def stepped(
    model: ir.Model, session: Session, states: tuple[Fed, ...], samples: Samples, sizes: Sizes
) -> tuple[Samples, tuple[str, ...]]:
    """Returns the samples with states, and notes. They are the same samples if the data has values for the states.

    Raises:
        OnnxsmithError: `quantize/data` if a sample has a part of the states, or if the model refuses a step.
    """
    wanted = {pair.input for pair in states}
    if all(wanted <= sample.feeds.keys() for sample in samples):
        follows = _following(session, states, samples)
        if sum(follows) < _MOSTLY * len(follows):
            return samples, (_single(states),)
        return _again(states, samples, follows), (note(states, len(follows)),)
    own = list(itertools.islice(samples, _STEPS + 1))
    notes = [note(states, min(len(own), _STEPS))]
    if len(own) > _STEPS:
        notes.append(f"only the first {_STEPS:,} samples are used, because the states of all steps are held in memory")
    own = own[:_STEPS]
    for sample in own:
        _refuse_part(sample, wanted)
    interface = signature(model)
    given = tuple(Feed(sample.name, of_feed(interface, sample.feeds), dict(sample.feeds)) for sample in own)
    try:
        found = rolled(session, _plan(model, given, sizes, 0), Calls(states, len(own)))
    except OnnxsmithError as error:
        if error.problem.id != "compare/step":
            raise
        raise problem(
            "quantize/data",
            "the model refuses a sample together with the state that the previous sample returned",
            where=error.problem.where,
            why=f"{error.problem.what.partition(': ')[2]}: {error.problem.why}",
            fix=f"give the states with each sample: arrays called {first_few(sorted(wanted), _SHOWN)}",
        ) from error
    carried = {pair.input: pair.output for pair in states}
    made = [
        replace(sample, feeds=dict(feed.values), carried={} if at == 0 or at in found.given else carried)
        for at, (sample, feed) in enumerate(zip(own, found.feeds, strict=True))
    ]
    return Samples(lambda: iter(made), samples.described), tuple(notes)


_MOSTLY = 0.5
"""The share of the samples that has to follow the sample before, so that the data is a recording. A choice."""
_NEAR = 1e-3
"""The difference, relative to the largest magnitude, at which a state in the data is that of the step before. A choice:
it may have been recorded on another runtime."""


def _following(session: Session, states: tuple[Fed, ...], samples: Samples) -> list[bool]:
    """Says for each sample whether its states are those that the model returned for the sample before."""
    found: list[bool] = []
    outputs: Any = None
    for sample in samples:
        found.append(
            outputs is not None
            and all(near(np.asarray(outputs[one.output]), np.asarray(sample.feeds[one.input]), _NEAR) for one in states)
        )
        outputs = sample.run(session)
    return found


def _again(states: tuple[Fed, ...], samples: Samples, follows: list[bool]) -> Samples:
    """Returns samples of which those that follow the sample before get its states."""
    carried = {pair.input: pair.output for pair in states}

    def steps() -> Iterator[Sample]:
        for sample, is_next in zip(samples, follows, strict=True):
            yield replace(sample, carried=carried if is_next else {})

    return Samples(steps, samples.described)


def _single(states: tuple[Fed, ...]) -> str:
    """Says in the report that each sample is a step of its own."""
    shown = first_few([pair.input for pair in states], _SHOWN)
    return (
        f"each sample is a single step that starts from the states in the data ({shown}), so the score does not "
        "contain errors that grow from step to step; to run the samples one after the other, leave the states out "
        "of the data"
    )


def divided(samples: Samples) -> tuple[Samples, Samples]:
    """Divides steps into calibration and test: the first quarter is for calibration, so that no step is missing between
    two others."""
    count = sum(1 for _ in samples)
    part = max(1, count // EVERY) if count > 1 else count

    def test() -> Iterator[Sample]:
        for index, sample in enumerate(itertools.islice(samples, part, None)):
            yield sample if index else replace(sample, carried={})

    return (
        Samples(lambda: itertools.islice(samples, part), f"the first quarter of {samples.described}"),
        Samples(test, "the rest of it"),
    )


def are_steps(samples: Samples) -> bool:
    """Whether a sample gets the state of the sample before."""
    return any(one.carried for one in itertools.islice(samples, 1, None))


def _plan(model: ir.Model, given: tuple[Feed, ...], sizes: Sizes, seed: int) -> Plan:
    interface: Signature = signature(model)
    generator = Generator.for_model(inferred(model)[0]).under(interface)
    return Plan(generator, known=sizes, given=given, seed=seed)


def _refuse_part(sample: Sample, wanted: set[str]) -> None:
    """Refuses a sample with values for some of the states only."""
    has = wanted & sample.feeds.keys()
    if has and has != wanted:
        lacking = sorted(wanted - has)
        raise problem(
            "quantize/data",
            f"a sample has a value for {min(has)!r} but none for {lacking[0]!r}",
            where=sample.name,
            why=f"the states of the model belong together: {first_few(sorted(wanted), _SHOWN)}",
            fix="give all states with a sample, to start a new recording there; or give none of the states, to "
            "continue with the states that the model returned for the previous sample",
        )


def note(states: tuple[Fed, ...], steps: int) -> str:
    """Says in the report how the states were run."""
    shown = first_few([f"{pair.input}={pair.output}" for pair in states], _SHOWN)
    return (
        f"states are carried ({shown}): {several(steps, 'step')} were run one after the other, and each model "
        "continued with its own states"
    )


_SHOWN = 4
"""Limits the names in a message. A choice: one line."""
