"""Runs a model with a symbolic dimension at other sizes, and notes which sizes it takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import pasted
from onnxsmith.graph.files.load import load
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure.dim_ranges import Range, Size, one_size
from onnxsmith.graph.structure.signature import signature
from onnxsmith.runtimes import base as runtimes
from onnxsmith.verification.input_search import Plan, Search, Tries
from onnxsmith.verification.inputs.generate import Feed, Generator
from onnxsmith.verification.run import run

_ENOUGH = 3
"""Counts the other sizes that must run before no further sizes are tried. A choice: the number of usual sizes."""


@dataclass
class Tried:
    """Holds the results of a model at the sizes of one dimension. `feeds` are inputs of the sizes that the model takes
    while other dimensions keep the original's size. `together` are the sizes that the model takes only if other
    dimensions change too. `refused` are the sizes that the model does not take, with the errors."""

    feeds: dict[int, Feed] = field(default_factory=dict)
    together: list[int] = field(default_factory=list)
    refused: dict[int, OnnxsmithError] = field(default_factory=dict)

    def said(self) -> str:
        """Returns a clause: `the edited model runs at 8, 16, 32, and not at 1, 17`."""
        taken = ", ".join(str(size) for size in sorted([*self.feeds, *self.together]))
        return f"the edited model runs at {taken}{self.restriction(', and not at ')}"

    def is_closed(self, size: int) -> bool:
        """Whether the model refuses sizes, and takes none above the original's."""
        return bool(self.refused) and max([*self.feeds, *self.together], default=0) <= size

    def restriction(self, start: str) -> str:
        """Returns the refused sizes, after the text `start`; "" if no size was refused."""
        return start + ", ".join(str(size) for size in sorted(self.refused)) if self.refused else ""


def tried(
    candidate: Path | ir.Model,
    symbol: str,
    size: int,
    known: Mapping[str, int],
    given: Mapping[str, Size],
    seed: int,
    runtime: str | None = None,
) -> Tried:
    """Runs the edited model at the original's `size` of `symbol`, and at other sizes. The other sizes are the size in
    `given`, if any; else the usual sizes, and multiples if the model takes none of the usual sizes, all in the range of
    `given` or of the file. `known` are the original's sizes of all symbols.

    Raises:
        OnnxsmithError: `edit/does-not-run` if the model takes no other size than the original's.
    """
    model = load(candidate)
    generator = Generator.for_model(inferred(model)[0]).under(signature(model))
    others = {name: one for name, one in known.items() if name != symbol}
    others |= other_sizes(candidate, generator, {**known, symbol: size}, one_size(given), seed)
    found = Tried()

    def fits(one: int, beside: Mapping[str, int]) -> bool:
        at = {**others, **beside, symbol: one}
        try:
            feed = generator.feed(at, seed=seed + one)
            ran_on(candidate, feed.values, runtime)
        except OnnxsmithError as error:
            fitting = _with_other_integers(candidate, generator, at, seed + one, runtime)
            if fitting is None:
                found.refused.setdefault(one, error)
                return False
            feed = fitting
        found.refused.pop(one, None)
        if beside:
            found.together.append(one)
        else:
            found.feeds[one] = feed
        return True

    fits(size, {})
    asked = given.get(symbol, generator.signature.ranges.get(symbol, Range()))
    if isinstance(asked, int):
        beside = {name: one for name, one in one_size(given).items() if name in others}
        _ = fits(asked, {}) or (beside and fits(asked, beside))
    else:
        ends = [] if asked.most is None else [asked.least or 1, asked.most]
        for one in dict.fromkeys(one for one in (*usual(size), *ends) if asked.holds(one)):
            fits(one, {})
        # Only the original's size ran: the model may take multiples only.
        for one in filter(asked.holds, _further(size)) if len(found.feeds) < 2 else ():
            fits(one, {})
            if len(found.feeds) > _ENOUGH:
                break
    if size in found.refused or (found.refused and len(found.feeds) + len(found.together) < 2):
        raise does_not_run(symbol, size, found.refused, given.get(symbol))
    return found


def _with_other_integers(
    candidate: Path | ir.Model, generator: Generator, at: Mapping[str, int], seed: int, runtime: str | None
) -> Feed | None:
    """Returns an input of these sizes that the model takes: lengths and row numbers have to be small. Returns None if
    there is none, or if no input has integers."""
    if not any("int" in port.dtype for port in generator.signature.required()):
        return None
    try:
        with runtimes.get(runtime or runtimes.default()).prepare(candidate) as session:
            found = Search(Tries(session, Plan(generator, known=at, seed=seed))).base()
    except OnnxsmithError:
        return None
    return None if found is None else found.feed


def other_sizes(
    candidate: Path | ir.Model, generator: Generator, known: Mapping[str, int], given: Mapping[str, int], seed: int
) -> dict[str, int]:
    """Returns sizes of all symbols but those that are opened, at which the edited model runs: the given ones, else 2,
    else the first usual ones that it takes."""
    names = [name for name in generator.signature.symbols() if name not in known]
    sizes = {name: given.get(name, 2) for name in names}
    if not names:
        return sizes
    plan = Plan(generator, known={**given, **known}, start={**sizes, **known}, seed=seed)
    try:
        with runtimes.get(runtimes.default()).prepare(candidate) as session:
            found = Search(Tries(session, plan)).base()
    except OnnxsmithError:  # another runtime may run it
        return sizes
    return sizes if found is None else {name: found.feed.sizes.get(name, sizes[name]) for name in names}


def usual(size: int) -> list[int]:
    """Returns the sizes that are tried first: 1, the next size after `size`, and a size above twice `size`."""
    return [one for one in (1, size + 1, 2 * size + 1) if one != size]


def _further(size: int) -> Iterator[int]:
    """Yields sizes for a model that takes only multiples of a number: powers of two above `size`, and multiples of
    `size`."""
    step = 2
    while step < size:
        yield size + step
        step *= 2
    yield from (2 * size, 3 * size)


def does_not_run(symbol: str, size: int, refused: Mapping[int, OnnxsmithError], given: Size | None) -> OnnxsmithError:
    listed = ", ".join(str(one) for one in sorted(refused))
    first = next(iter(refused.values())).problem
    return problem(
        "edit/does-not-run",
        f"the edited model runs only at {symbol} = {size}"
        if size not in refused
        else f"the edited model does not run at {symbol} = {size}",
        where=f"{symbol} = {listed}",
        why=f"at {symbol} = {next(iter(refused))}: {first.what}. {first.why}".strip(". "),
        fix=f"leave --dim {pasted(symbol)}={given} out, so that usual sizes are tried; or leave the dimension at {size}"
        "; nothing was written"
        if given is not None
        else f"leave the dimension at {size}, without the name {symbol}, unless you know another size that the "
        "model accepts (give this size with --dim); nothing was written",
    )


def ran_on(source: Path | ir.Model, values: Mapping[str, Any], runtime: str | None = None) -> dict[str, Any]:
    """Runs a model and returns its outputs."""
    return dict(run(source, values, runtime=runtime).outputs)
