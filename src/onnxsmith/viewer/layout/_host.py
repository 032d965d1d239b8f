"""The process in which fast-sugiyama runs: native code that gets odd input may end its process or never return.

Reads graphs from its standard input and writes a layout of each to its standard output, all as 64-bit numbers. A graph
is the number of its edges, 1 if it is large, and its edges. A layout is the number of components, and for each the
number of its vertices, their numbers, x and y, the number of its edges, and those. The file stands alone, so that
nothing else has to be imported."""

from __future__ import annotations

import sys
from array import array
from typing import Any, BinaryIO

SPACING = 100
"""Distance of neighbours in a row."""


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
        if large:  # "up" moves vertices to the start: turned round, each stands just above its reader
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
