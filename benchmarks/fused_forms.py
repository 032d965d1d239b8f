"""What a fused form is worth on onnxruntime: the time of a run before and after the rule that makes it.

    python benchmarks/fused_forms.py [--only NAME …] [--rounds 60] [--threads 1]

Each form is a small graph of the sizes of a real layer. It is simplified by the named rules alone, and both files are
run by onnxruntime at its default level, which fuses what it finds itself: a ratio of 1 means that the runtime makes the
form, too. The two sessions take turns of about 2 ms. The time of a side is the fifth part of its turns that took least,
because other work on the machine only adds; beside the ratio stand those of the two halves of the rounds, which say how
far noise moves it. "not made" is a rule that refused the graph.

A form below 0.97 is worth making unasked. `Rule.slower` holds what was measured above 1.03.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
import onnxruntime
from models.fused import FORMS, Form, Numbers

from onnxsmith.optimizer.simplification_rounds import simplified

_TURN = 0.002
"""Seconds of a turn. A choice: far above the resolution of the clock, far below that of other work on the machine."""


@dataclass(frozen=True)
class Figure:
    """Milliseconds before and after, their ratio, and the ratios of both halves."""

    before: float
    after: float
    ratio: float
    halves: tuple[float, float]
    made: str


def session(model: ir.Model, threads: int) -> onnxruntime.InferenceSession:
    """Prepares a model with onnxruntime's default optimisations."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    data = ir.to_proto(model).SerializeToString()
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def measured(form: Form, rounds: int, threads: int) -> Figure | str:
    """Times both sides of a form in turns; returns a text where it was not made."""
    before = form.model()
    after, part = simplified(before, only=form.rules)
    if not part.fired:
        return f"not made: {part.refused[0].why_not if part.refused else 'no match'}"
    feeds = form.feeds()
    calls = [_call(session(model, threads), feeds) for model in (before, after)]
    spent: list[list[float]] = [[], []]
    counts = [max(1, int(_TURN / min(_turn(call, 3) for _ in range(3)))) for call in calls]
    for _ in range(rounds):
        for side, call in enumerate(calls):
            spent[side].append(_turn(call, counts[side]))
    halves = [_usual(spent[1][half]) / _usual(spent[0][half]) for half in (slice(0, None, 2), slice(1, None, 2))]
    old, new = (_usual(one) * 1000 for one in spent)
    made = " ".join(dict.fromkeys(node.op_type for node in after.graph))
    return Figure(old, new, new / old, (halves[0], halves[1]), made)


def _call(one: onnxruntime.InferenceSession, feeds: Numbers) -> Callable[[], object]:
    given = {port.name: feeds[port.name] for port in one.get_inputs()}
    return lambda: one.run(None, given)


def _turn(call: Callable[[], object], count: int) -> float:
    """Seconds of one run in a turn of `count`."""
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def _usual(spent: Sequence[float]) -> float:
    """The time that a fifth of the turns take at most."""
    return statistics.quantiles(spent, n=5)[0]


def rows(forms: list[Form], rounds: int, threads: int) -> Iterator[str]:
    """The rows of a table, as they are measured."""
    yield f"{'form':44} {'before':>9} {'after':>9}  ratio  halves"
    for form in forms:
        found = measured(form, rounds, threads)
        if isinstance(found, str):
            yield f"{form.name:44} {found}"
            continue
        halves = " ".join(f"{one:.2f}" for one in found.halves)
        yield f"{form.name:44} {found.before:7.3f}ms {found.after:7.3f}ms  {found.ratio:5.2f}  {halves}  {found.made}"


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    chosen = [form for form in FORMS if not given.only or any(text in form.name for text in given.only)]
    if not chosen:
        sys.exit(f"no such form; there are {', '.join(form.name for form in FORMS)}")
    print(
        f"onnxruntime {onnxruntime.__version__}, numpy {np.__version__}, {given.threads} threads, {given.rounds} rounds"
    )
    for row in rows(chosen, given.rounds, given.threads):
        print(row, flush=True)


if __name__ == "__main__":
    main()
