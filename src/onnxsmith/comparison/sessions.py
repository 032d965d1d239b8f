"""Holds one ONNX model to another, on one runtime: prepares both sides and verifies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import onnx_ir as ir

from onnxsmith.clock import stage
from onnxsmith.comparison import foreign
from onnxsmith.comparison.explore import Plan
from onnxsmith.comparison.rounding import roundings
from onnxsmith.comparison.verify import Side, verify
from onnxsmith.feeds.generate import Feed, Generator
from onnxsmith.model import shapes, walk
from onnxsmith.model.load import load
from onnxsmith.model.signature import signature
from onnxsmith.problem import OnnxsmithError, problem
from onnxsmith.report.parts.verification import Verification
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Options


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
    """Runs both on one runtime and compares every output. See `verify` for the errors.

    Where the model holds nodes that draw random numbers, or that the runtime does not know, the parts around them are
    compared, and a note says so. So it does where both were compared without the runtime's own optimisation.
    """
    name = runtime or runtimes.default()
    model = load(reference)
    pair: tuple[Path | ir.Model, Path | ir.Model] = (reference, candidate)
    notes: tuple[str, ...] = ()
    if walk.random_nodes(model) or _is_unknown_to(name, reference, model):
        cut = foreign.around(model, load(candidate))
        if cut is None:
            _refuse_random(model)
        else:
            model, other, note = cut
            pair, notes = (model, other), (note,)
            _refuse_random(model)
    with stage("shapes"):
        known_shapes, _ = shapes.inferred(model)
        generator = replace(Generator.for_model(known_shapes), signature=signature(model))
        plan = Plan(generator, given=given, known=known or {}, generate=generate, seed=seed)
        tolerances = roundings(known_shapes)

    def held(pair: tuple[Path | ir.Model, Path | ir.Model], options: tuple[Options, Options]) -> Verification:
        chosen = runtimes.get(name)
        with (
            stage("verify"),
            chosen.prepare(pair[0], options[0]) as a,
            chosen.prepare(pair[1], options[1]) as b,
        ):
            sides = (Side(f"{names[0]} on {name} ({a.provider})", a), Side(f"{names[1]} on {name} ({b.provider})", b))
            return verify(*sides, plan, tolerances)

    found = held(pair, (Options(), Options()))
    if not found.equal:
        found = _without_optimisation(held, pair, name) or found
    return replace(found, notes=(*notes, *found.notes))


def _without_optimisation(
    held: Callable[..., Verification], pair: tuple[Path | ir.Model, Path | ir.Model], runtime: str
) -> Verification | None:
    """The comparison with the runtime's own optimisation off, where that, and not the other model, is what moves the
    numbers: both agree without it, and with it the reference does not agree with itself. None where it is not."""
    plain, usual = Options(optimization="disable"), Options()
    calm = held(pair, (plain, plain))
    if not calm.equal or held((pair[0], pair[0]), (plain, usual)).equal:
        return None
    note = (
        f"compared with the optimisation of {runtime} off: with it on, the same model moves by more than rounding "
        "explains"
    )
    return replace(calm, notes=(note, *calm.notes))


def _is_unknown_to(runtime: str, source: Path | ir.Model, model: ir.Model) -> bool:
    """Whether the runtime refuses the model for an operator of another domain that it does not know."""
    if not foreign.foreign_nodes(model):
        return False
    try:
        with runtimes.get(runtime).prepare(source):
            return False
    except OnnxsmithError as error:
        if error.problem.id != "runtime/unknown-operator":
            raise
        return True


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
