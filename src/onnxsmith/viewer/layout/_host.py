"""Runs fast-sugiyama in a process of its own, because native code may crash or never return on odd input.

Reads graphs from its standard input and writes a layout of each to its standard output, all as 64-bit numbers. A graph
is the count of its edges, a flag that is 1 for a large graph, and its edges. A layout begins with the count of
components. For each component follow the count of vertices, then number, x and y of each vertex, then the count of
edges, then the edges. The file imports no other module of this package, so that the process starts quickly.
"""

from __future__ import annotations

import sys
from array import array
from typing import Any, BinaryIO

SPACING = 100
"""Sets the distance of neighbours in a row."""


def main() -> None:
    sys.path.insert(0, sys.argv[1])
    from fast_sugiyama import from_edges

    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    while head := questions.read(16):
        count, large = array("q", head)
        flat = array("q")
        flat.frombytes(questions.read(16 * count))
        edges = list(zip(flat[::2], flat[1::2], strict=True))
        how: dict[str, Any] = {"ranking_type": "up", "transpose": False} if large else {}
        if large:  # "up" moves vertices to the start; in the reversed graph that is just above their readers
            edges = [(other, one) for one, other in edges]
        found = from_edges(edges, vertex_spacing=SPACING, dummy_vertices=True, check_layout=False, **how)
        _write(answers, found, 1 if large else -1)


def _write(answers: BinaryIO, found: Any, down: int) -> None:
    answers.write(array("q", [len(found)]).tobytes())
    for positions, _, _, edges in found:
        answers.write(array("q", [len(positions)]).tobytes())
        answers.write(array("q", [vertex for vertex, _ in positions]).tobytes())
        answers.write(array("d", [x for _, (x, _) in positions]).tobytes())
        answers.write(array("d", [down * y for _, (_, y) in positions]).tobytes())
        pairs = [(one, other)[::-down] for one, other in edges or ()]
        answers.write(array("q", [len(pairs)]).tobytes())
        answers.write(array("q", [vertex for pair in pairs for vertex in pair]).tobytes())
    answers.flush()


if __name__ == "__main__":
    main()
