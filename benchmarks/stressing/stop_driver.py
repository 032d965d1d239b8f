"""Runs the command line, counts what the process changes in a folder, and sends itself a signal before one change.

STOPS_AT='[3, 9, false]' python -P benchmarks/stressing/stop_driver.py strip net.onnx -o clean.onnx
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate"}
"""Audit events of Python, which come before the change."""


def watch(place: str, at: int, number: int, group: bool) -> list[int]:
    """Sends the signal `number` before the change `at` below the folder `place`, to this process or its group. Returns
    a list whose one item counts the changes."""
    own, seen = os.getpid(), [0]

    def step(event: str, words: tuple[object, ...]) -> None:
        writes = event == "open" and isinstance(words[2], int) and words[2] & (os.O_WRONLY | os.O_RDWR)
        if (event in _CHANGES or writes) and os.getpid() == own and any(map(is_inside, words[:2])):
            seen[0] += 1
            if seen[0] == at:
                (os.killpg if group else os.kill)(own, number)

    def is_inside(word: object) -> bool:
        return isinstance(word, str | bytes | os.PathLike) and full(word).startswith(place)

    def full(word: str | bytes | os.PathLike[str]) -> str:
        return os.path.abspath(os.fsdecode(word))  # noqa: PTH100 — follows no links, and asks for no file

    sys.addaudithook(step)
    return seen


def main() -> None:
    """Runs `onnxsmith` with the words of this program. As in `onnxsmith`, an interrupt ends it from the start."""
    from onnxsmith.base import interrupts

    interrupts.begin()
    count, at = os.environ.pop("STOPS_COUNT", ""), json.loads(os.environ.pop("STOPS_AT", "[0, 0, false]"))
    seen = watch(str(Path.cwd()), *at)
    from onnxsmith.__main__ import main as command_line

    try:
        command_line()
    finally:
        if count:
            with Path(count).open("x") as file:
                file.write(str(seen[0]))


if __name__ == "__main__":
    main()
