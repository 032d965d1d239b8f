"""Makes golden data: inputs, and the outputs that the model gives for them here. The inputs have the declared sizes of
dynamic dimensions, and two sizes of dimensions without a declared range."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import pasted
from onnxsmith.deployment.bundles.dimension_ranges import Range, nameless, refuse_outside
from onnxsmith.deployment.bundles.tolerances import Tolerances, least
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure.signature import Signature
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Options, Session, Value
from onnxsmith.verification.input_search import Plan, Run, Search, Tries, answer
from onnxsmith.verification.inputs.generate import Feed, Generator
from onnxsmith.verification.inputs.size_proposals import of_feed
from onnxsmith.verification.metrics.base import widen
from onnxsmith.verification.output_declarations import Declarations, contradiction
from onnxsmith.verification.resized_runs import Resizer
from onnxsmith.verification.value_comparison import is_float

_RESIZED = 12
"""Limits the runs at other sizes that are tried. A choice."""
LARGEST = 2**28
"""Limits the bytes of a golden tensor of a model with dynamic sizes; a larger tensor is refused. A choice: 256 MiB.
Every copy of the bundle would carry the tensor, and smaller sizes show the same."""


@dataclass(frozen=True)
class Case:
    """Holds one input with its outputs. Outputs in `random` differ from run to run, so only their dtype and shape are
    compared. `tolerances` are the allowed differences of the outputs, relative to an output's largest magnitude; None
    for outputs that must be equal."""

    label: str
    sizes: Mapping[str, int]
    inputs: Mapping[str, Value]
    outputs: Mapping[str, Value]
    random: tuple[str, ...] = ()
    tolerances: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Golden:
    """Holds the cases, and notes about inputs and sizes that the cases do not cover."""

    cases: tuple[Case, ...]
    notes: tuple[str, ...]


def recorded(
    model: ir.Model,
    file: Path,
    interface: Signature,
    given: Iterable[Feed],
    declared: Mapping[str, Range],
    *,
    runtime: str,
    seed: int = 0,
    tolerance: float | None = None,
) -> Golden:
    """Makes cases as `golden` does, by running `file`, which holds the model, on a runtime. `tolerance` replaces the
    allowed differences of all floats.

    Raises:
        OnnxsmithError: the errors of `golden`, and of preparing the model.
    """
    chosen, shaped = runtimes.get(runtime), inferred(model)[0]
    generator = Generator.for_model(shaped).under(interface)
    with contextlib.ExitStack() as stack:
        session = stack.enter_context(chosen.prepare(file, runtimes.patient(Options())))
        allowed = Tolerances(shaped, file, lambda changed: chosen.prepare(changed, Options()), tolerance)
        stack.callback(allowed.close)
        return golden(session, generator, given, declared, seed, allowed)


def golden(
    session: Session,
    generator: Generator,
    given: Iterable[Feed],
    declared: Mapping[str, Range],
    seed: int,
    tolerances: Tolerances,
) -> Golden:
    """Makes cases for the given inputs, and for generated inputs: at the usual, least and largest of the `declared`
    sizes, and at another size of the dynamic dimensions without a range.

    Raises:
        OnnxsmithError: `run/…` or `runtime/…` if the model refuses a given input; `bundle/dim-range` if a given input
            is outside a declared range, or the model refuses a declared size; `verify/no-valid-input` if the model
            refuses every generated input; `bundle/too-large`.
    """
    runs = []
    for one in given:
        feed = replace(one, sizes=of_feed(generator.signature, one.values))
        refuse_outside(declared, generator.signature, feed.values, feed.label)
        outputs, refusal = answer(session, feed)
        if outputs is None:
            raise OnnxsmithError(refusal) if refusal is not None else AssertionError("neither outputs nor a refusal")
        runs.append(_small_enough(Run(feed, outputs, generated=False), generator.signature))
    symbols = generator.signature.symbols()
    declared = {symbol: declared[symbol] for symbol in symbols if symbol in declared}
    notes: list[str] = []
    # Given inputs are enough only if nothing has to run at a size of its own, and they have two sizes.
    if not runs or declared or (symbols and len({tuple(sorted(run.feed.sizes.items())) for run in runs}) < 2):
        runs += _generated(session, generator, declared, seed, notes, needed=not runs)
    tried = {symbol: {run.feed.sizes.get(symbol) for run in runs} for symbol in symbols if symbol not in declared}
    fixed = [symbol for symbol, held in tried.items() if len(held) < 2]
    if fixed:
        notes.append(f"the recorded data has only one size of {', '.join(fixed)}")
    cases = tuple(_case(session, run, tolerances) for run in runs)
    notes += tolerances.notes
    notes += _wrong_declarations(generator.signature, runs)
    drawn = sorted({name for case in cases for name in case.random})
    if drawn:
        notes.append(f"outputs that are drawn at random, so only dtype and shape are compared: {', '.join(drawn)}")
        if all(len(case.random) == len(case.outputs) for case in cases):
            raise problem(
                "bundle/random",
                "every output differs from run to run, so golden data shows nothing",
                where=", ".join(drawn),
                why="a node draws random numbers; a seed does not help, because each run draws the next numbers",
                fix="export the module in evaluation mode, or make the drawn tensor an input of the model",
            )
    return Golden(cases, tuple(notes))


def _wrong_declarations(interface: Signature, runs: Iterable[Run]) -> list[str]:
    """Says which outputs have another shape or dtype than the file declares."""
    seen = Declarations(interface)
    for run in runs:
        seen.add(run.feed.values, run.outputs)
    return [f"{contradiction(one)}, so the declaration is wrong" for one in seen.wrong()]


def _generated(
    session: Session,
    generator: Generator,
    declared: Mapping[str, Range],
    seed: int,
    notes: list[str],
    *,
    needed: bool,
) -> list[Run]:
    usual = {symbol: held.usual for symbol, held in declared.items()}
    tries = Tries(session, Plan(generator, known=usual, seed=seed))
    search = Search(tries)
    base = search.base()
    if base is None:
        error = search.nothing_taken()
        if needed and usual and error.problem.id == "verify/no-valid-input":
            raise _refused(usual, tries, _taken_instead(session, generator, declared, seed))
        if needed:
            raise error
        notes.append(f"the model accepted no generated input{' with ' + _shown(usual) if usual else ''}")
        return []
    runs = [_small_enough(base, generator.signature)]
    for which in ("least", "most"):
        sizes = {**base.feed.sizes, **{symbol: getattr(held, which) for symbol, held in declared.items()}}
        if any(run.feed.sizes == sizes for run in runs):
            continue
        # Sizes that the user asked for are run however large they are, so each is a plan of its own.
        tries_here = Tries(session, Plan(generator, known=sizes, seed=seed))
        run = tries_here.run(sizes, seed, search.chosen, search.manner)
        if run is not None:
            runs.append(_small_enough(run, generator.signature))
        elif needed:
            raise _refused({symbol: sizes[symbol] for symbol in declared}, tries_here)
        else:
            notes.append(f"the model refused a generated input with {_shown({s: sizes[s] for s in declared})}")
    if len(declared) < len(generator.signature.symbols()):
        runs += _at_another_size(Resizer(tries, base, search.chosen, search.manner), base)
    return runs


def _at_another_size(resizer: Resizer, base: Run) -> list[Run]:
    """Returns the run that changes most of the dimensions without a declared range; empty if the model accepts none."""
    others = itertools.islice(resizer.runs(), _RESIZED)
    usable = [run for run in others if not run.is_empty and run.feed.sizes != base.feed.sizes and not _large(run)]
    changed = [sum(run.feed.sizes.get(k) != v for k, v in base.feed.sizes.items()) for run in usable]
    return [usable[changed.index(max(changed))]] if usable else []


def _taken_instead(session: Session, generator: Generator, declared: Mapping[str, Range], seed: int) -> str:
    """Returns the options with usual sizes that the model takes: each is a multiple of the least size, the nearest to
    the middle. Returns "" if the model refuses these sizes, too."""
    usual = {symbol: min(round(held.usual / held.least) * held.least, held.most) for symbol, held in declared.items()}
    if Search(Tries(session, Plan(generator, known=usual, seed=seed))).base() is None:
        return ""
    return " ".join(f"--dim {pasted(name)}={held.least}:{usual[name]}:{held.most}" for name, held in declared.items())


def _refused(sizes: Mapping[str, int], tries: Tries, instead: str = "") -> OnnxsmithError:
    last = tries.last
    taken = f"declare another usual size, which the model accepts: {instead}" if instead else ""
    return problem(
        "bundle/dim-range",
        f"the model accepts no generated input with {_shown(sizes)}, which --dim declares",
        why=f"the last refusal: {last.what} {last.why}".strip() if last else "",
        fix=taken
        or "declare only sizes that the model accepts; a dimension that depends on another dimension also needs a "
        "range. If the values are the cause, record an input of your own: --input inputs.npz",
    )


def _small_enough(run: Run, interface: Signature) -> Run:
    """Returns the run, or raises if the run is too large. A model of fixed sizes is never refused, because it has no
    smaller sizes.

    Raises:
        OnnxsmithError: `bundle/too-large`.
    """
    found = _large(run)
    if found is None or not run.feed.sizes:
        return run
    name, size = found
    symbol, most = max(run.feed.sizes.items(), key=lambda item: item[1])
    smaller = max(most * LARGEST // (2 * size), 1)
    declare = f"record smaller sizes: --dim {pasted(symbol)}={smaller}:{smaller}:{smaller}"
    if not run.generated or symbol in {f"{name}.{axis}" for name, axis in nameless(interface)}:
        declare = "record a smaller input: --input inputs.npz"
    raise problem(
        "bundle/too-large",
        f"{name!r} would be {size / 2**20:,.0f} MiB of golden data",
        where=f"input {run.feed.label}",
        why=f"more than {LARGEST / 2**20:.0f} MiB in one tensor makes the bundle too large to hand over",
        fix=declare,
    )


def _large(run: Run) -> tuple[str, int] | None:
    """Returns the largest input or output and its bytes, if it is too large for golden data."""
    arrays = {
        name: value for name, value in {**run.feed.values, **run.outputs}.items() if isinstance(value, np.ndarray)
    }
    name = max(arrays, key=lambda one: arrays[one].nbytes, default=None)
    return (name, arrays[name].nbytes) if name is not None and arrays[name].nbytes > LARGEST else None


def _case(session: Session, run: Run, tolerances: Tolerances) -> Case:
    again = session.run(run.feed.values)
    random = tuple(name for name, value in run.outputs.items() if not _same(value, again[name]))
    allowed = {name: None if name in random else tolerances.of(run, name) for name in run.outputs}
    return Case(_label(run.feed), dict(run.feed.sizes), dict(run.feed.values), run.outputs, random, allowed)


def _same(one: Any, other: Any) -> bool:
    """Whether two runs gave the same values, up to rounding that depends on the order in which threads add."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_same(a, b) for a, b in zip(one, other, strict=True))
    if not isinstance(one, np.ndarray) or not isinstance(other, np.ndarray):
        return bool(one == other)
    if one.shape != other.shape:
        return False
    if not is_float(one):
        return bool(np.array_equal(one, other))
    a, b = widen(one), widen(other)
    scale = float(np.max(np.abs(a), where=np.isfinite(a), initial=0.0))
    return bool(np.allclose(a, b, rtol=0, atol=(least(one) or 0.0) * scale, equal_nan=True))


def _shown(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={size}" for name, size in sizes.items())


def _label(feed: Feed) -> str:
    """Returns the label of an input. Only floats are drawn from a normal distribution."""
    floats = any(isinstance(value, np.ndarray) and value.dtype.kind in "fV" for value in feed.values.values())
    return feed.label if floats else feed.label.removesuffix(", normal")
