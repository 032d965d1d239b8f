"""How long a result takes to run beside its original, in one process, the two in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import onnxruntime

from onnxsmith import load
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure.signature import signature
from onnxsmith.runtimes import base as runtimes
from onnxsmith.verification.explore import Explorer, Plan
from onnxsmith.verification.inputs.generate import Generator

LEVELS = {
    "disable": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
THREADS = 2
LEAST, MOST = 15, 200
"""Repetitions of each; between these it stops after SECONDS."""
SECONDS = 1.5


def ratios(source: Path, results: dict[str, Path]) -> dict[str, dict[str, float]]:
    """By tool and level: median over the repetitions of the result's time over the original's time in the same turn."""
    feed = first_feed(source)
    found: dict[str, dict[str, float]] = {tool: {} for tool in results}
    for level, value in LEVELS.items():
        sessions = {name: _session(path, value) for name, path in {"original": source, **results}.items()}
        for tool, ratio in _turns(sessions, feed).items():
            found[tool][level] = ratio
    return found


def first_feed(source: Path) -> dict[str, Any]:
    """The first input that the verification would use."""
    model = load(source)
    known, _ = inferred(model)
    generator = Generator.for_model(known)
    with ExitStack() as stack:
        session = stack.enter_context(runtimes.get("onnxruntime").prepare(source))
        run = next(iter(Explorer(session, Plan(generator), {}).runs()))
    names = {port.name for port in signature(model).inputs}
    return {name: value for name, value in run.feed.values.items() if name in names and value is not None}


def _session(path: Path, level: Any) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = THREADS
    options.graph_optimization_level = level
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _turns(sessions: dict[str, onnxruntime.InferenceSession], feed: dict[str, Any]) -> dict[str, float]:
    """Each session once a turn, in an order that moves on by one, after two turns to warm up."""
    names = list(sessions)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for turn, order in enumerate(_orders(names)):
        for name in order:
            start = time.perf_counter()
            sessions[name].run(None, feed)
            if turn >= 2:
                seconds[name].append(time.perf_counter() - start)
        done = len(seconds[names[0]])
        if done >= MOST or (done >= LEAST and sum(map(sum, seconds.values())) > SECONDS * len(names)):
            break
    base = seconds.pop("original")
    return {
        name: statistics.median(own / other for own, other in zip(times, base, strict=True))
        for name, times in seconds.items()
    }


def _orders(names: list[str]) -> Iterator[list[str]]:
    turn = 0
    while True:
        start = turn % len(names)
        yield names[start:] + names[:start]
        turn += 1
