"""Does one thing of the benchmark in a process of its own, and prints what came of it as JSON on the last line.

    python -m precision.worker prepare CASE FOLDER
    python -m precision.worker make CASE MODEL PEER OUT
    python -m precision.worker ours CASE MODEL TO BUDGET OUT [held-out]
    python -m precision.worker evaluate CASE MODEL FLOAT32

`precision.py` starts it, with the folder `benchmarks` in PYTHONPATH.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from precision.case import Case, load

FEEDS = 8
"""Items whose latency is measured, in turn."""
ROUNDS, SECONDS = (15, 200), 4.0
"""Rounds, at least and at most, and the time after which no further one begins. A choice."""
MARK = "result: "
FLOATS = {"tensor(float16)": np.float16, "tensor(float)": np.float32, "tensor(double)": np.float64}


class Session:
    """A model in onnxruntime, on one thread, that takes feeds of the float32 model, whatever floats it has."""

    def __init__(self, path: str) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.types = {one.name: FLOATS.get(one.type) for one in self.session.get_inputs()}
        self.outputs = [one.name for one in self.session.get_outputs()]

    def feeds(self, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The feeds in the types of this model."""
        return {name: array.astype(self.types[name] or array.dtype, copy=False) for name, array in given.items()}

    def run(self, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
        """One run, of feeds in the types of this model."""
        return self.session.run(None, feeds)


def evaluate(case: Case, session: Session) -> dict[str, Any]:
    """The metrics on the test data, and the items whose outputs hold a NaN or an infinity."""
    predictions, labels, broken = [], [], 0
    began = time.process_time()
    for given, label in case.samples():
        outputs = session.run(session.feeds(given))
        broken += not all(np.isfinite(array).all() for array in outputs if array.dtype.kind == "f")
        predictions.append(case.decode(dict(zip(session.outputs, outputs, strict=True))))
        labels.append(label)
    seconds = time.process_time() - began
    return {"metrics": case.measure(predictions, labels), "items": len(labels), "not finite": broken, "cpu s": seconds}


def latency(case: Case, sessions: tuple[Session, Session]) -> dict[str, Any]:
    """Medians of both, milliseconds, and the median of the rounds' ratios; a round runs both on the same feeds.

    It is the processor's time of the one thread, which is the latency where nothing else runs.
    """
    items = [given for given, _ in itertools.islice(case.samples(), FEEDS)]
    feeds = [[session.feeds(given) for given in items] for session in sessions]
    for session, given in zip(sessions, feeds, strict=True):
        for one in given:
            session.run(one)
    times: list[list[float]] = []
    ends = time.perf_counter() + SECONDS
    while len(times) < ROUNDS[0] or (len(times) < ROUNDS[1] and time.perf_counter() < ends):
        number = len(times) % len(items)
        order = (0, 1) if len(times) // len(items) % 2 else (1, 0)
        row = [0.0, 0.0]
        for which in order:
            began = time.thread_time()
            sessions[which].run(feeds[which][number])
            row[which] = time.thread_time() - began
        times.append(row)
    table = np.array(times)
    medians = np.median(table, axis=0) * 1000
    return {"float32 ms": medians[0], "ms": medians[1], "ratio": float(np.median(table[:, 1] / table[:, 0]))}


def _do(what: str, name: str, *rest: str) -> dict[str, Any]:
    case = load(name)
    if what == "prepare":
        return {"model": str(case.prepare(Path(rest[0])))}
    if what == "evaluate":
        session, reference = (Session(path) for path in rest)
        return evaluate(case, session) | {"latency": latency(case, (reference, session))}
    if what == "make":
        from precision.peers import PEERS

        made = PEERS[rest[1]](Path(rest[0]), list(case.calibration()), Path(rest[2]))
    else:
        from precision.ours import ours

        made = ours(case, Path(rest[0]), rest[1], rest[2], Path(rest[3]), "held-out" in rest)
    return {"model": str(made)}


def main() -> None:
    """Prints the result, or the error, which ends the process with 1."""
    try:
        result = _do(*sys.argv[1:])
    except Exception as error:  # noqa: BLE001 - whatever a peer raises is its result
        print(MARK + json.dumps({"error": f"{type(error).__name__}: {error}"[:600]}))
        sys.exit(1)
    print(MARK + json.dumps(result, default=float))


if __name__ == "__main__":
    main()
