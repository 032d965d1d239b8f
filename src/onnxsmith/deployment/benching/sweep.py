"""Measures throughput by batch size and number of threads."""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from onnxsmith.base.clock import advance
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.report.parts.measurements import Point
from onnxsmith.base.words import pasted
from onnxsmith.deployment.benching.measurement_statistics import low
from onnxsmith.deployment.benching.rounds import opened
from onnxsmith.deployment.benching.subject_preparation import Chosen, Ready
from onnxsmith.deployment.benching.subjects import Failed
from onnxsmith.graph.structure.signature import Port
from onnxsmith.runtimes import _idle

_PASSES = 3
"""Counts the passes; each pass measures every point, in another order. A choice: the least number that shows a
spread."""
_LEAST = 0.02
"""Sets the least seconds of measuring for a point in a pass. A choice."""


def batch_dimension(lead: Ready, asked: str) -> str:
    """Returns the symbolic dimension of a subject that is the batch: `asked`, else the first axis of the first input
    whose first axis is symbolic.

    Raises:
        OnnxsmithError: `bench/no-batch` if there is no such dimension.
    """
    side = lead.side
    firsts = [port.shape[0] for port in side.interface.inputs if port.shape]
    named = {dim for port in side.interface.inputs for dim in port.shape or () if isinstance(dim, str)}
    if asked in named:
        return asked
    found = next((dim for dim in firsts if isinstance(dim, str)), None)
    if found is None or asked:
        raise problem(
            "bench/no-batch",
            f"no input has a symbolic dimension {asked!r}" if asked else "the model's batch is fixed",
            where=", ".join(f"{port.name} {port}" for port in side.interface.inputs),
            why="other batch sizes need a symbolic dimension",
            fix=f"name one of: {', '.join(sorted(named))}, as in --batch {min(named)}=1,4"
            if named
            else f"leave --batch out, or {_opening(lead)}",
        )
    return found


def _opening(lead: Ready) -> str:
    """Returns advice on how to make the batch symbolic."""
    port: Port | None = next((port for port in lead.side.interface.inputs if port.shape), None)
    if port is None:
        return "give a model whose input has an axis"
    target = lead.subject.target
    dynamic = pasted(f"{port.name}:0=batch")
    if lead.side.model is None:
        model = pasted(target) if isinstance(target, str) else "file.py:function"
        return f"measure a file with such an axis: `onnxsmith export {model} -o dynamic.onnx --dynamic {dynamic}`"
    model = pasted(target) if isinstance(target, str | Path) else "MODEL"
    return (
        f"make the axis dynamic first: `onnxsmith set-dim {model} {dynamic} -o dynamic.onnx`, and measure dynamic.onnx"
    )


def swept(
    subjects: Sequence[Ready],
    inputs: Mapping[int, Chosen],
    threads: Sequence[int],
    seconds: float,
    seed: int,
) -> tuple[list[Point], list[Failed]]:
    """Measures the throughput of every subject at each number of threads and each batch size. 0 threads leave the
    number to the runtime. `inputs` are the inputs by batch size. Each subject is opened once for a number of threads.
    Points are measured in passes, in random order."""
    shuffle = random.Random(seed)
    found: list[Point] = []
    failed: list[Failed] = []
    cells = len(subjects) * max(len(threads), 1) * len(inputs)
    each = max(seconds / (cells * _PASSES), _LEAST)
    for number, ready in enumerate(subjects):
        for count in threads or [0]:
            advance("sweep", number, len(subjects))
            subject = ready.subject.with_threads(count) if count else ready.subject
            if subject is None:
                failed.append(Failed.of(f"{ready.subject.label}, other numbers of threads", _no_threads(ready)))
                break
            try:
                found += _points(Ready(subject, ready.side, ready.names), inputs, count, each, shuffle)
            except OnnxsmithError as error:
                failed.append(Failed.of(subject.label, error))
    return found, failed


def _no_threads(ready: Ready) -> OnnxsmithError:
    return problem(
        "bench/no-threads",
        f"{ready.subject.on} accepts no number of threads",
        fix=f"leave {ready.subject.on} out of a measurement with --threads, or measure it alone",
    )


def _points(
    ready: Ready, inputs: Mapping[int, Chosen], threads: int, seconds: float, shuffle: random.Random
) -> list[Point]:
    times: dict[int, list[float]] = {batch: [] for batch in inputs}
    with ExitStack() as stack:
        _idle.end_all()
        one = opened(ready)
        stack.callback(one.close)
        for _ in range(_PASSES):
            order = list(inputs)
            shuffle.shuffle(order)
            for batch in order:
                timer = one.hold(inputs[batch].feed.values)
                timer.samples(1_000_000, 1, seconds / 4)  # at new sizes the runtime first plans its memory
                timer.samples(1, 1, 0.0)
                times[batch].append(low(timer.samples(1_000_000, 1, seconds)) / 1e9)
    label = ready.subject.label.partition(":threads=")[0] if threads else ready.subject.label
    return [
        Point(label, threads, batch, statistics.median(found), min(found), max(found)) for batch, found in times.items()
    ]
