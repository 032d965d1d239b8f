"""Notes in a file which mutants a test comes to, in whatever process: `tell` is called beside what a mutant changes."""

from __future__ import annotations

import os

FILE = "ONNXSMITH_REACHED"
"""The environment variable that names the file of the present test."""
seen: set[object] = set()


def tell(path: str, *numbers: int) -> None:
    """Notes mutants by their numbers; -1 is a function of the file at `path`."""
    for number in numbers:
        key = path if number < 0 else number
        if key in seen:
            continue
        seen.add(key)
        target = os.environ.get(FILE)
        if target:
            with open(target, "a", encoding="utf-8") as stream:  # noqa: PTH123 — pathlib may be what is told of
                stream.write(f"{key}\n")
