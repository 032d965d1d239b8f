"""Makes golden data: inputs, and the outputs that the model gives for them here, at two sizes of the dynamic
dimensions."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnxsmith.comparison.resizing import Resizer
from onnxsmith.comparison.searching import Search
from onnxsmith.comparison.tensors import is_float
from onnxsmith.comparison.trying import Plan, Run, Tries, answer
from onnxsmith.feeds.generate import Feed, Generator
from onnxsmith.metrics.base import widen
from onnxsmith.problem import OnnxsmithError, problem
from onnxsmith.runtimes.base import Session, Value

EQUAL = 1e-5
"""The largest difference of an output from its golden value, relative to the golden value's largest magnitude. A
choice: float32 sums in another order differ by some 1e-7 for each thousand terms."""
_ULPS = 4
"""Steps of a narrower dtype by which an output may differ: another version may round an intermediate the other way."""
_RESIZED = 12
"""Runs at other sizes that are tried. A choice."""


@dataclass(frozen=True)
class Case:
    """One input with its outputs. Outputs in `random` differ from run to run: only their dtype and shape are
    compared."""

    label: str
    sizes: Mapping[str, int]
    inputs: Mapping[str, Value]
    outputs: Mapping[str, Value]
    random: tuple[str, ...] = ()


@dataclass(frozen=True)
class Golden:
    """The cases, and notes on what they do not show."""

    cases: tuple[Case, ...]
    notes: tuple[str, ...]


def golden(
    session: Session,
    generator: Generator,
    given: Iterable[Feed],
    sizes: tuple[Mapping[str, int], ...],
    seed: int,
) -> Golden:
    """Cases for the given inputs, and generated ones: at the first of `sizes` that the model accepts and at another
    size of every dynamic dimension, or at the other `sizes` if there are any.

    Raises:
        OnnxsmithError: `run/…` or `runtime/…` if the model refuses a given input; `verify/no-valid-input` if it refuses
            every generated one.
    """
    runs = []
    for feed in given:
        outputs, refusal = answer(session, feed)
        if outputs is None:
            raise OnnxsmithError(refusal) if refusal is not None else AssertionError("neither outputs nor a refusal")
        runs.append(Run(feed, outputs, generated=False))
    symbols = generator.signature.symbols()
    notes: list[str] = []
    if not runs or (symbols and len({tuple(sorted(run.feed.sizes.items())) for run in runs}) < 2):
        runs += _generated(session, generator, sizes, seed, notes, needed=not runs)
    tried = {symbol: {run.feed.sizes.get(symbol) for run in runs} for symbol in symbols}
    fixed = [symbol for symbol, held in tried.items() if len(held) < 2]
    if fixed:
        notes.append(f"golden data has only one size of {', '.join(fixed)}")
    cases = tuple(_case(session, run) for run in runs)
    drawn = sorted({name for case in cases for name in case.random})
    if drawn:
        notes.append(f"drawn at random, so only dtype and shape are compared: {', '.join(drawn)}")
        if all(len(case.random) == len(case.outputs) for case in cases):
            raise problem(
                "bundle/random",
                "every output differs from run to run, so golden data shows nothing",
                where=", ".join(drawn),
                why="a node draws random numbers without a seed",
                fix="export the module in evaluation mode, or give the nodes that draw the attribute `seed`",
            )
    return Golden(cases, tuple(notes))


def tolerance(value: Value) -> float | None:
    """The allowed difference of one output, relative to its largest magnitude; None for outputs that must be equal."""
    if not isinstance(value, np.ndarray) or not is_float(value):
        return None
    if value.dtype.itemsize >= 4:
        return EQUAL
    step = {"float16": 2.0**-10, "bfloat16": 2.0**-7}.get(value.dtype.name, 2.0**-10)
    return max(EQUAL, _ULPS * step)


def _generated(
    session: Session,
    generator: Generator,
    sizes: tuple[Mapping[str, int], ...],
    seed: int,
    notes: list[str],
    *,
    needed: bool,
) -> list[Run]:
    first = dict(sizes[0]) if sizes else None
    tries = Tries(session, Plan(generator, start=first, seed=seed))
    search = Search(tries)
    base = search.base()
    if base is None:
        if needed:
            raise search.nothing_taken()
        notes.append("the model accepted no generated input")
        return []
    if first is not None and dict(base.feed.sizes) != first:
        notes.append("the model refused the usual sizes that were declared: " + _shown(first))
    if not generator.signature.symbols():
        return [base]
    asked = [tries.run(one, seed, search.chosen, search.manner) for one in sizes[1:]]
    refused = [_shown(one) for one, run in zip(sizes[1:], asked, strict=True) if run is None]
    if refused:
        notes.append(f"the model refused declared sizes: {'; '.join(refused)}")
    accepted = [run for run in asked if run is not None]
    if accepted:
        return [base, *accepted]
    others = itertools.islice(Resizer(tries, base, search.chosen, search.manner).runs(), _RESIZED)
    usable = [run for run in others if not run.is_empty and run.feed.sizes != base.feed.sizes]
    changed = [sum(run.feed.sizes.get(k) != v for k, v in base.feed.sizes.items()) for run in usable]
    return [base, usable[changed.index(max(changed))]] if usable else [base]


def _case(session: Session, run: Run) -> Case:
    again = session.run(run.feed.values)
    random = tuple(name for name, value in run.outputs.items() if not _same(value, again[name]))
    return Case(run.feed.label, dict(run.feed.sizes), dict(run.feed.values), run.outputs, random)


def _same(one: Any, other: Any) -> bool:
    """Whether two runs gave the same, up to the order in which threads add."""
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
    return bool(np.allclose(a, b, rtol=0, atol=(tolerance(one) or 0.0) * scale, equal_nan=True))


def _shown(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={size}" for name, size in sizes.items())
