"""Says what a command has left behind when it is stopped: Ctrl-C, or a request to end."""

from __future__ import annotations

from pathlib import Path

from onnxsmith.base import interrupts
from onnxsmith.base.problem import Problem
from onnxsmith.cli import command_words
from onnxsmith.cli.commands.base import Command


class Interruption:
    """Remembers the outputs that a command finds when it begins."""

    def __init__(self, command: Command) -> None:
        self._before = {path: _mark(path) for path in command_words.written(command).values()}

    def problem(self, stop: BaseException | None = None) -> Problem:
        """Returns the problem of a command that was stopped. Its reason names each output: written, as it was before,
        or not written."""
        kept = [stop.kept] if isinstance(stop, interrupts.Stopped) else []
        return Problem(
            "run/interrupted",
            "the command was stopped before it was done",
            why="; ".join(["Ctrl-C, SIGTERM or SIGHUP", *kept, *self._outputs()]),
        )

    def _outputs(self) -> list[str]:
        states: dict[str, list[str]] = {}
        for path, before in self._before.items():
            now = _mark(path)
            state = "not written" if now is None else "as before" if now == before else "written"
            states.setdefault(state, []).append(path)
        return [f"{state}: {', '.join(paths)}" for state, paths in states.items()]


def _mark(path: str) -> tuple[int, int] | None:
    """Returns what changes when an output is replaced; None if it does not exist."""
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return None
    return found.st_ino, found.st_mtime_ns
