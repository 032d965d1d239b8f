"""Runs the reference on rows that reach the leaves and the splits of its tree ensembles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from onnxsmith.comparison.trying import Run, Tries
from onnxsmith.feeds.generate import Manner
from onnxsmith.feeds.sizes import batches

_PARTS = 8
"""Runs of one kind of rows, where the size of the batch is fixed."""
_DEAR = 1 << 22
"""Elements of all tensors together that a run with more rows may have."""


def at_trees(tries: Tries, base: Run, chosen: Mapping[str, int], manner: Manner) -> Iterator[Run]:
    """One run with a row for everything, where the batch is open; else some at the sizes of the base."""
    table = tries.plan.generator.table
    for kind in table.kinds:
        sizes = _larger(tries, base, table.wanted(kind))
        wanted = replace(manner, rows=kind)
        run = tries.run(sizes, tries.plan.seed + 3, chosen, wanted) if sizes is not None else None
        if run is not None:
            yield run
            continue
        for part in range(_PARTS):
            run = tries.run(base.feed.sizes, tries.plan.seed + 3, chosen, replace(wanted, part=part))
            if run is None:
                break
            yield run


def _larger(tries: Tries, base: Run, rows: int) -> dict[str, int] | None:
    """The base's sizes with so many rows, fewer where they are long; None where the batch stays as it is."""
    generator, plan = tries.plan.generator, tries.plan
    open_ = [
        symbol for symbol in batches(generator.signature) if symbol in base.feed.sizes and symbol not in plan.known
    ]
    now = max((base.feed.sizes[symbol] for symbol in open_), default=rows)
    while rows > now:
        sizes = {**base.feed.sizes, **dict.fromkeys(open_, rows)}
        if generator.numbers.elements(generator.known(sizes)) <= _DEAR:
            return sizes
        rows //= 2
    return None
