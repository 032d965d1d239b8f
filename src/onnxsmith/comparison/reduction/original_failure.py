"""Finds the original failure, with which all later ones are compared: the inputs that show it, and whether it
repeats."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.comparison.reduction.case import Case, fed
from onnxsmith.comparison.reduction.checks.base import End, Outcome
from onnxsmith.comparison.reduction.oracle import Oracle
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure.dim_ranges import Size
from onnxsmith.graph.structure.signature import signature
from onnxsmith.verification.inputs.draw_description import SPREADS
from onnxsmith.verification.inputs.generate import Feed, Generator
from onnxsmith.verification.inputs.size_limits import SizeLimits, refuse_unknown
from onnxsmith.verification.inputs.size_proposals import bases


def failing(
    model: ir.Model, oracle: Oracle, given: Mapping[str, Any] | None, sizes: Mapping[str, Size], seed: int
) -> tuple[Case, str, list[str]]:
    """Returns the first inputs on which the model fails. Sets `oracle.first`, with which later failures are
    compared."""
    ends: list[Outcome] = []
    doubtful: tuple[Case, str, Outcome] | None = None
    for label, values in proposals(model, given, sizes, seed):
        case = fed(model, values)
        outcome = oracle.judge(case)
        ends.append(outcome)
        if outcome.failure is None:
            continue
        # A generated input may be meaningless, so a refusal at run time waits for a clearer failure.
        if not outcome.failure.doubtful or given is not None:
            oracle.first = outcome.failure
            return case, label, []
        doubtful = doubtful or (case, label, outcome)
    if doubtful is not None and all(outcome.failure is not None for outcome in ends):
        oracle.first = doubtful[2].failure
        return (
            doubtful[0],
            doubtful[1],
            ["the model refuses every generated input: give a meaningful input with --input"],
        )
    raise _does_not_fail(ends, oracle)


def _does_not_fail(ends: list[Outcome], oracle: Oracle) -> OnnxsmithError:
    if all(outcome.end is End.TIMED_OUT for outcome in ends):
        return problem(
            "reduce/time-limit",
            f"the check of the original model did not end within {oracle.bench.time_limit:g} s",
            why=ends[-1].why,
            fix="give each run of the check more time: --time-limit 300",
        )
    last = next((outcome for outcome in reversed(ends) if outcome.why), ends[-1])
    return problem(
        "reduce/does-not-fail",
        f"the model does not fail this check on any of {len(ends)} inputs",
        why=f"the last one: {last.end.value}: {last.why}"[:600],
        fix="give the inputs on which it fails: --input inputs.npz; or choose another check",
    )


def refuse_flaky(case: Case, oracle: Oracle) -> None:
    """Raises `reduce/flaky` unless the failure repeats in new processes."""
    oracle.bench.close()
    again = oracle.judge(case)
    if again.failure is None or oracle.first is None or not again.failure.is_like(oracle.first):
        raise problem(
            "reduce/flaky",
            "the model failed once, but not a second time on the same inputs",
            why=f"first: {oracle.first.what if oracle.first else ''}; then: "
            f"{again.failure.what if again.failure else again.why or again.end.value}"[:600],
            fix="find the cause of the variation (random numbers, threads, time) and remove it from the check",
        )


# Proposes inputs on which the original may fail: the given ones, or generated ones, the likeliest first.

_MOST_SIZES = 8
_MOST = 24
"""How many inputs are tried, on up to `_MOST_SIZES` sets of sizes. A choice: each input is a run."""


def proposals(
    model: ir.Model, given: Mapping[str, Any] | None, sizes: Mapping[str, Size], seed: int
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields labelled inputs to try: `given`, or else generated ones, or else an empty feed if none can be
    generated."""
    if given is not None:
        yield "the given inputs", given
        return
    if not signature(model).required():
        yield "no inputs", {}
        return
    made = 0
    for feed in itertools.islice(_generated(model, sizes, seed), _MOST):
        made += 1
        yield feed.label, feed.values
    if not made:
        yield "no inputs could be generated", {}


def _generated(model: ir.Model, sizes: Mapping[str, Size], seed: int) -> Iterator[Feed]:
    generator = Generator.for_model(inferred(model)[0]).under(signature(model))
    choices = generator.choices()
    first = {name: values[0] for name, values in choices.items()}
    others = [{**first, name: value} for name, values in choices.items() for value in values[1:]]
    refuse_unknown(sizes, generator.signature)
    limits = SizeLimits(generator.signature, sizes)
    try:
        for base in itertools.islice(bases(generator.signature, limits.known, limits), _MOST_SIZES):
            for spread in SPREADS:
                yield generator.feed(base, seed=seed, spread=spread, chosen=first)
            for chosen in others:
                yield generator.feed(base, seed=seed, chosen=chosen)
    except OnnxsmithError:
        return
