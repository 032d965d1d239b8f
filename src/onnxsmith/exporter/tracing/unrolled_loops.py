"""Finds the Python loops whose number of turns follows from the size of a dynamic axis, by running the module at two
sizes and counting the lines that run. A trace keeps the turns of the example, which fixes the axis."""

from __future__ import annotations

import ast
import linecache
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any

from onnxsmith.base import user_files
from onnxsmith.exporter.factory import is_models

Line = tuple[str, int, int]
"""Names a line by its file, the first line of its function, and its number. A lambda in a line counts for itself."""


@dataclass(frozen=True)
class Unrolled:
    """A loop that began `turns` turns in a call, with the example and with a larger example."""

    where: str
    source: str
    turns: tuple[int, int]


class Lines:
    """Counts the lines of the model's code that run in a call, in the order in which they first run."""

    def __init__(self) -> None:
        self.counts: Counter[Line] = Counter()

    @classmethod
    def of(cls, call: Callable[[], object]) -> Lines | None:
        """Returns the lines of a call; None if it gives no result."""
        made, before = cls(), sys.gettrace()
        sys.settrace(made._entered)
        try:
            return made if call() is not None else None
        finally:
            sys.settrace(before)

    def _entered(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any] | None:
        return self._ran if _is_models(frame.f_code.co_filename) else None

    def _ran(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any]:
        if event == "line":
            code = frame.f_code
            self.counts[code.co_filename, code.co_firstlineno, frame.f_lineno] += 1
        return self._ran


_is_models = lru_cache(maxsize=None)(is_models)


def unrolled(example: Lines, larger: Lines) -> list[Unrolled]:
    """Returns the loops whose turns differ, in the order in which they ran."""
    order = {line: place for place, line in enumerate(example.counts)}
    found = [
        (order.get(header, len(order)), loop)
        for file in dict.fromkeys(file for file, _, _ in example.counts)
        for header, loop in _of_file(file, example.counts, larger.counts)
    ]
    return [loop for _, loop in sorted(found, key=lambda one: one[0])]


def _of_file(file: str, before: Counter[Line], after: Counter[Line]) -> Iterator[tuple[Line, Unrolled]]:
    try:
        tree = ast.parse(user_files.read_utf8(Path(file)))
    except (OSError, ValueError, SyntaxError):
        return
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        start = min([function.lineno, *(one.lineno for one in function.decorator_list)])
        for loop in _loops(function):
            header, body = (file, start, loop.lineno), (file, start, loop.body[0].lineno)
            if header == body:
                continue
            turns = before[body], after[body]
            # The header runs once more than the body, each time that the loop is entered.
            entered = max(before[header] - turns[0], 1), max(after[header] - turns[1], 1)
            each = turns[0] // entered[0], turns[1] // entered[1]
            if each[0] != each[1]:
                yield header, Unrolled(f"{file}:{loop.lineno}", linecache.getline(file, loop.lineno).strip(), each)


def _loops(function: ast.FunctionDef) -> Iterator[ast.For | ast.While]:
    """Yields the loops of a function that stand in no other loop and in no inner function."""
    queue: list[ast.AST] = list(function.body)
    while queue:
        node = queue.pop(0)
        if isinstance(node, ast.For | ast.While):
            yield node
        elif not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            queue += ast.iter_child_nodes(node)
