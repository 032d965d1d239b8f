"""The verdict of a command, and the exit status that follows from it."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """How a command ended; its `exit_code` is the process's."""

    DONE = "done"
    DIFFERENT = "different"
    CANNOT_TELL = "cannot-tell"
    FAILED = "failed"

    @property
    def exit_code(self) -> int:
        """0: done, and verified if the command verifies. 1: different, or the check cannot tell. 2: failed."""
        return {Verdict.DONE: 0, Verdict.DIFFERENT: 1, Verdict.CANNOT_TELL: 1, Verdict.FAILED: 2}[self]
