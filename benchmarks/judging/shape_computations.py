"""Random shape computations before and after `simplify`: is any element of any output another, at any size from 0 to 7?

    python -m benchmarks.judging.shape_computations [--count 10000] [--seed 0] [--processes 2] [--keep FOLDER]

Each graph is simplified without verification, and run before and after in onnxruntime with its optimisations off, at
eight choices of sizes, empty ones and ones that two inputs share and do not agree on among them. Equal means: the same
dtype, the same shape, the same bits. Where the original fails or kills the runtime there is nothing to compare; where
only the simplified one does, that is wrong. Prints the first wrong graph as text, and how many of how many were wrong.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from benchmarks.judging.shape_steps import graph
from onnxsmith.optimizer.simplification_rounds import simplified

_SIZES = 8
Feed = dict[str, np.ndarray[Any, Any]]


def model(seed: int) -> onnx.ModelProto:
    """The graph of a seed."""
    return graph(seed).model()


def feeds(proto: onnx.ModelProto, seed: int) -> Iterator[Feed]:
    """Inputs: all sizes 0, all 1, one of them 0, others at random."""
    draw = random.Random(f"sizes {seed}")
    names = sorted({d.dim_param for i in proto.graph.input for d in i.type.tensor_type.shape.dim if d.dim_param})
    for index in range(_SIZES):
        sizes = {name: index if index < 2 else draw.randint(index in (4, 5), 7) for name in names}
        if index in (2, 3) and names:
            sizes[draw.choice(names)] = 0
        feed: Feed = {}
        for port in proto.graph.input:
            shape = [
                d.dim_value if d.HasField("dim_value") else draw.randint(0, 4) if index == 7 else sizes[d.dim_param]
                for d in port.type.tensor_type.shape.dim
            ]
            count = int(np.prod(shape, dtype=np.int64))
            dtype = onnx.helper.tensor_dtype_to_np_dtype(port.type.tensor_type.elem_type)
            held = np.arange(1, count + 1) if dtype.kind == "f" else [draw.randint(-3, 8) for _ in range(count)]
            feed[port.name] = np.array(held).astype(dtype).reshape(shape)
        yield feed


def simple(proto: onnx.ModelProto) -> onnx.ModelProto:
    """What is judged."""
    return ir.to_proto(simplified(ir.from_proto(proto), in_place=True)[0])


def session(proto: onnx.ModelProto) -> Any:
    """One of onnxruntime that runs the graph as it is."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(proto.SerializeToString(), options)


def judge(seed: int, skip: frozenset[int], say: Any) -> str:
    """What came of a graph; `say` is told what is about to be done, which may kill the process."""
    proto = model(seed)
    say("original", -1)
    try:
        original = session(proto)
    except Exception as error:  # noqa: BLE001 — it refuses the graph
        return f"invalid: {error}"
    answers = {}
    for index, feed in enumerate(feeds(proto, seed)):
        say("original", index)
        if index not in skip:
            try:
                answers[index] = (feed, original.run(None, feed))
            except Exception:  # noqa: BLE001 — it refuses these sizes
                continue
    if not answers:
        return "nothing to compare"
    say("simplified", -1)
    try:
        found = session(simple(proto))
    except Exception as error:  # noqa: BLE001 — whatever it is, it is wrong
        return f"wrong: {type(error).__name__}: {error}"
    for index, (feed, wanted) in answers.items():
        say("simplified", index)
        sizes = {name: array.shape for name, array in feed.items()}
        try:
            given = found.run(None, feed)
        except Exception as error:  # noqa: BLE001 — as above
            return f"wrong at {sizes}: {error}"
        for one, a, b in zip(proto.graph.output, wanted, given, strict=True):
            if a.dtype != b.dtype or a.shape != b.shape or not np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
                pair = f"{a.dtype}{a.shape} {a.ravel()[:6]}, now {b.dtype}{b.shape} {b.ravel()[:6]}"
                return f"wrong at {sizes}: {one.name} was {pair}"
    return "right"


def _work(pipe: Connection) -> None:
    while True:
        seed, skip = pipe.recv()
        pipe.send(("done", judge(seed, skip, lambda what, at: pipe.send((what, at)))))


@dataclass
class _Worker:
    """A process that judges; started again when a graph kills it."""

    seed: int = -1
    skip: frozenset[int] = frozenset()
    last: tuple[str, int] = ("", 0)
    pipe: Connection = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """A new process."""
        context = multiprocessing.get_context("fork")
        self.pipe, other = context.Pipe()
        context.Process(target=_work, args=(other,), daemon=True).start()
        other.close()

    def give(self, seed: int, skip: frozenset[int] = frozenset()) -> None:
        """Asks for a graph."""
        self.seed, self.skip, self.last = seed, skip, ("", 0)
        self.pipe.send((seed, skip))

    def answer(self) -> str | None:
        """What came of the graph; None while it is not done."""
        try:
            what, said = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            self.start()
            if self.last[0] == "original" and self.last[1] >= 0:
                self.give(self.seed, self.skip | {self.last[1]})
                return None
            return f"{'wrong' if self.last[0] == 'simplified' else 'invalid'}: the process died at {self.last}"
        if what == "done":
            return str(said)
        self.last = (what, said)
        return None


def judged(seeds: Iterator[int], processes: int) -> Iterator[tuple[int, str]]:
    """What came of each graph."""
    workers = {}
    for _ in range(processes):
        worker = _Worker()
        seed = next(seeds, None)
        if seed is not None:
            worker.give(seed)
            workers[worker.pipe] = worker
    while workers:
        for pipe in wait(list(workers)):
            worker = workers.pop(pipe)  # type: ignore[index]
            answer = worker.answer()
            if answer is not None:
                yield worker.seed, answer
                seed = next(seeds, None)
                if seed is None:
                    continue
                worker.give(seed)
            workers[worker.pipe] = worker


def main() -> None:
    """Judges, and says what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="a folder for the texts of the wrong ones")
    given = parser.parse_args()
    tally: Counter[str] = Counter()
    first: tuple[int, str] | None = None
    for seed, answer in judged(iter(range(given.seed, given.seed + given.count)), given.processes):
        kind = answer.split(":")[0].split(" at ")[0]
        tally[kind] += 1
        if kind == "wrong":
            print(f"{seed}: {answer[:300]}", flush=True)
            first = min(first, (seed, answer)) if first else (seed, answer)
            if given.keep is not None:
                given.keep.mkdir(parents=True, exist_ok=True)
                (given.keep / f"{seed}.onnxtxt").write_text(onnx.printer.to_text(model(seed)))
    if first is not None:
        print(f"\nThe first that is wrong, seed {first[0]}:\n{onnx.printer.to_text(model(first[0]))}\n{first[1]}\n")
    others = ", ".join(f"{number} {kind}" for kind, number in sorted(tally.items()) if kind != "wrong")
    print(f"shape computations: {tally['wrong']} of {given.count} wrong ({others})")
    sys.exit(1 if tally["wrong"] else 0)


if __name__ == "__main__":
    main()
