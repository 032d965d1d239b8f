"""Lays out connected graphs with fast-sugiyama, in a process of its own."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import threading
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from onnxsmith.base.system import children
from onnxsmith.viewer.layout import _host
from onnxsmith.viewer.layout.graph import Edge, Graph, Layout

_SECONDS = 60.0
"""Limits the seconds of the library for one room. Measured: a second for 20,000 items, 7 for 100,000."""
_LARGE = 1000
"""Counts the edges from which the quick ranking is used. Measured: the slow ranking takes 0.1 s for 1,000 edges, and
its time grows with the square of their number."""
_RESTARTS = 3
"""Limits how often the process is restarted after a crash. A choice: after more crashes something is wrong with all
rooms."""
_UNIT = 1.2 / _host.SPACING
"""Scales x so that the widest item has a width of 1, and a fifth of this width is free between neighbours."""


def layouts(graphs: Sequence[Graph]) -> Iterator[Layout | str]:
    """Yields the layout of each connected graph, or a text on what went wrong. Items have numbers from 0 on, and each
    has an edge."""
    spec = importlib.util.find_spec("fast_sugiyama")
    if spec is None or spec.origin is None:
        yield from ["fast-sugiyama is not installed"] * len(graphs)
        return
    at = restarts = 0
    trouble = ""
    while at < len(graphs) and restarts <= _RESTARTS:
        with _Host(Path(spec.origin).parent.parent) as host:
            while at < len(graphs):
                found = host.ask(graphs[at])
                yield found
                at += 1
                if isinstance(found, str):
                    trouble = found
                    break
        restarts += 1
    for _ in range(at, len(graphs)):
        yield trouble


class _Host:
    def __init__(self, place: Path) -> None:
        self._place = place

    def __enter__(self) -> _Host:
        self._process = children.HERE.start(
            [sys.executable, "-I", _host.__file__, str(self._place)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        return self

    def __exit__(self, *_: object) -> None:
        children.HERE.end(self._process)

    def ask(self, graph: Graph) -> Layout | str:
        questions, answers = self._process.stdin, self._process.stdout
        assert questions is not None
        assert answers is not None
        late = threading.Event()

        def stop() -> None:
            late.set()
            self._process.kill()

        timer = threading.Timer(_SECONDS, stop)
        timer.start()
        try:
            questions.write(array("q", [len(graph.edges), len(graph.edges) > _LARGE]).tobytes())
            questions.write(array("q", [item for edge in graph.edges for item in edge]).tobytes())
            questions.flush()
            found = _read(answers, graph)
            return found.problem(graph.edges) or found
        except (OSError, EOFError, KeyError) as error:
            if late.is_set():
                return f"fast-sugiyama took longer than {_SECONDS:g} s"
            if isinstance(error, KeyError):
                return "fast-sugiyama gave an incomplete layout"
            return f"fast-sugiyama ended with {children.cause_of_end(self._process.wait())}"
        finally:
            timer.cancel()


def _read(answers: IO[bytes], graph: Graph) -> Layout:
    x: dict[int, float] = {}
    y: dict[int, float] = {}
    ways: dict[int, list[int]] = {}
    for _ in range(_integers(answers, 1)[0]):
        size = _integers(answers, 1)[0]
        vertices = _integers(answers, size)
        x.update(zip(vertices, _floats(answers, size), strict=True))
        y.update(zip(vertices, _floats(answers, size), strict=True))
        edges = _integers(answers, 2 * _integers(answers, 1)[0])
        for one, other in zip(edges[::2], edges[1::2], strict=True):
            ways.setdefault(one, []).append(other)
    top, left = min(y.values()), min(x.values())
    rows = [round((y[item] - top) / _host.SPACING) for item in range(graph.count)]
    places = [round((x[item] - left) * _UNIT, 3) for item in range(graph.count)]
    bends: dict[Edge, list[float]] = {}
    for item in range(graph.count):
        for following in ways.get(item, ()):
            passed, end = [], following
            while end >= graph.count:  # a vertex that the library added for an edge that crosses a row
                passed.append(round((x[end] - left) * _UNIT, 3))
                end = ways[end][0]
            bends[item, end] = passed
    return Layout(rows, places, bends)


def _integers(stream: IO[bytes], count: int) -> array[int]:
    found: array[int] = array("q")
    found.frombytes(_bytes(stream, count))
    return found


def _floats(stream: IO[bytes], count: int) -> array[float]:
    found: array[float] = array("d")
    found.frombytes(_bytes(stream, count))
    return found


def _bytes(stream: IO[bytes], count: int) -> bytes:
    data = stream.read(8 * count)
    if len(data) < 8 * count:
        raise EOFError
    return data
