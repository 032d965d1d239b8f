"""Tries an edited model at other sizes of a dimension.

A model may take some sizes only: for example, a U-Net that halves its picture twice takes multiples of 4. Refused sizes
are reported. Refused sizes are an error only if the model takes no other size than the original's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.graph.files.load import load
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure.signature import signature
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

    def restriction(self, start: str) -> str:
        """Returns the refused sizes, after the text `start`; "" if no size was refused."""
        return start + ", ".join(str(size) for size in sorted(self.refused)) if self.refused else ""


def tried(
    candidate: Path | ir.Model, symbol: str, size: int, known: Mapping[str, int], given: Mapping[str, int], seed: int
) -> Tried:
    """Runs the edited model at the original's `size` of `symbol`, and at other sizes. The other sizes are the size in
    `given`, if any; else the usual sizes, and multiples if the model takes none of the usual sizes. `known` are the
    original's sizes of all symbols.

    Raises:
        OnnxsmithError: `edit/does-not-run` if the model takes no other size than the original's.
    """
    model = load(candidate)
    generator = Generator.for_model(inferred(model)[0]).under(signature(model))
    others = {name: known.get(name, 2) for name in signature(model).symbols() if name != symbol}
    found = Tried()

    def fits(one: int, beside: Mapping[str, int]) -> bool:
        try:
            feed = generator.feed({**others, **beside, symbol: one}, seed=seed + one)
            ran_on(candidate, feed.values)
        except OnnxsmithError as error:
            found.refused.setdefault(one, error)
            return False
        found.refused.pop(one, None)
        if beside:
            found.together.append(one)
        else:
            found.feeds[one] = feed
        return True

    fits(size, {})
    if symbol in given:
        beside = {name: one for name, one in given.items() if name in others}
        _ = fits(given[symbol], {}) or (beside and fits(given[symbol], beside))
    else:
        for one in usual(size):
            fits(one, {})
        # Only the original's size ran: the model may take multiples only.
        for one in _further(size) if len(found.feeds) < 2 else ():
            fits(one, {})
            if len(found.feeds) > _ENOUGH:
                break
    if size in found.refused or (found.refused and len(found.feeds) + len(found.together) < 2):
        raise _does_not_run(symbol, size, found.refused)
    return found


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


def _does_not_run(symbol: str, size: int, refused: Mapping[int, OnnxsmithError]) -> OnnxsmithError:
    listed = ", ".join(str(one) for one in sorted(refused))
    first = next(iter(refused.values())).problem
    return problem(
        "edit/does-not-run",
        f"the edited model runs at no other {symbol} than {size}"
        if size not in refused
        else f"the edited model does not run at {symbol} = {size}",
        where=f"{symbol} = {listed}",
        why=f"at {symbol} = {next(iter(refused))}: {first.what}. {first.why}".strip(". "),
        fix=f"keep the dimension static, or name a size that the model takes: --dim {symbol}={2 * size}; nothing was "
        "written",
    )


def ran_on(source: Path | ir.Model, values: Mapping[str, Any]) -> dict[str, Any]:
    """Runs a model and returns its outputs."""
    return dict(run(source, values).outputs)
