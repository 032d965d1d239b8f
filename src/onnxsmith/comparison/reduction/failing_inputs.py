"""Proposes inputs on which the original may fail: the given ones, or generated ones, the likeliest first."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure.signature import signature
from onnxsmith.verification.inputs.draw_description import SPREADS
from onnxsmith.verification.inputs.generate import Feed, Generator
from onnxsmith.verification.inputs.size_proposals import bases

_MOST_SIZES = 8
_MOST = 24
"""Sets of sizes, and inputs in all. A choice: each input is a run."""


def proposals(
    model: ir.Model, given: Mapping[str, Any] | None, sizes: Mapping[str, int], seed: int
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Labelled inputs to try: `given`, else generated ones; if none can be generated, an empty feed."""
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
        yield "no inputs: none could be generated", {}


def _generated(model: ir.Model, sizes: Mapping[str, int], seed: int) -> Iterator[Feed]:
    generator = Generator.for_model(inferred(model)[0]).under(signature(model))
    choices = generator.choices()
    first = {name: values[0] for name, values in choices.items()}
    others = [{**first, name: value} for name, values in choices.items() for value in values[1:]]
    try:
        for base in itertools.islice(bases(generator.signature, sizes), _MOST_SIZES):
            for spread in SPREADS:
                yield generator.feed(base, seed=seed, spread=spread, chosen=first)
            for chosen in others:
                yield generator.feed(base, seed=seed, chosen=chosen)
    except OnnxsmithError:
        return
