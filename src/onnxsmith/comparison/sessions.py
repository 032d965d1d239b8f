"""Holds one ONNX model to another, on one runtime: prepares both sides and verifies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import onnx_ir as ir

from onnxsmith.clock import stage
from onnxsmith.comparison.explore import Plan
from onnxsmith.comparison.rounding import roundings
from onnxsmith.comparison.verify import Side, verify
from onnxsmith.feeds.generate import Feed, Generator
from onnxsmith.model import shapes, walk
from onnxsmith.model.load import load
from onnxsmith.model.signature import signature
from onnxsmith.problem import problem
from onnxsmith.report.parts.verification import Verification
from onnxsmith.runtimes import base as runtimes


def verify_models(
    reference: Path | ir.Model,
    candidate: Path | ir.Model,
    *,
    runtime: str | None = None,
    given: tuple[Feed, ...] = (),
    known: Mapping[str, int] | None = None,
    generate: bool = True,
    seed: int = 0,
    names: tuple[str, str] = ("the model as it was", "the new model"),
) -> Verification:
    """Runs both on one runtime and compares every output. See `verify` for the errors."""
    name = runtime or runtimes.default()
    chosen = runtimes.get(name)
    with stage("shapes"):
        model = load(reference)
        _refuse_random(model)
        known_shapes, _ = shapes.inferred(model)
        generator = replace(Generator.for_model(known_shapes), signature=signature(model))
        plan = Plan(generator, given=given, known=known or {}, generate=generate, seed=seed)
        tolerances = roundings(known_shapes)
    with stage("verify"), chosen.prepare(reference) as a, chosen.prepare(candidate) as b:
        sides = (Side(f"{names[0]} on {name} ({a.provider})", a), Side(f"{names[1]} on {name} ({b.provider})", b))
        return verify(*sides, plan, tolerances)


def _refuse_random(model: ir.Model) -> None:
    nodes = walk.random_nodes(model)
    if nodes:
        raise problem(
            "verify/nondeterministic",
            f"the model draws random numbers: {len(nodes)} nodes without a seed",
            where=", ".join(f"{node.op_type} {walk.node_label(node)}" for node in nodes[:3]),
            why="two runs on the same input differ, so that a comparison shows nothing",
            fix="give these nodes a `seed` attribute or make their result an input; or go on with --no-verify",
        )
