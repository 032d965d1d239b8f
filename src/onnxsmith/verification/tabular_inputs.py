"""Runs the reference on many rows. These rows reach the leaves and splits of its tree ensembles, or lie on both sides
of the numbers with which the reference compares its inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from onnxsmith.verification.input_trials import Run, Tries
from onnxsmith.verification.inputs.draw_description import Manner
from onnxsmith.verification.inputs.size_proposals import batches

_PARTS = 8
"""Limits the runs of one kind of rows if the batch size is fixed. A choice, like the limits below."""
_ROWS, _MOST_ROWS = 24, 512
"""Counts the rows for each number with which inputs are compared, and the rows in all."""
_DEAR = 1 << 22
"""Limits the elements of all tensors together in a run with more rows."""


def at_trees(tries: Tries, base: Run, chosen: Mapping[str, int], manner: Manner) -> Iterator[Run]:
    """Yields one run with a row for each leaf and split if the batch is dynamic. Otherwise yields several runs at the
    base's sizes."""
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


def at_limits(tries: Tries, base: Run, chosen: Mapping[str, int], manner: Manner) -> Iterator[Run]:
    """Yields a run with several rows for each number with which inputs are compared, if the batch is dynamic."""
    limits = tries.plan.generator.compared
    rows = min(_ROWS * max((len(numbers) for numbers in limits.values()), default=0), _MOST_ROWS)
    sizes = _larger(tries, base, rows) if rows else None
    run = tries.run(sizes, tries.plan.seed + 4, chosen, manner) if sizes is not None else None
    yield from [run] if run is not None else []


def _larger(tries: Tries, base: Run, rows: int) -> dict[str, int] | None:
    """Returns the base's sizes with `rows` rows, or with fewer rows if the run would be too large; None if the batch
    cannot grow."""
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
