"""Reads the report of `torch.export.draft_export`, which continues where a trace stops, and closes its log.

Compared with torch 2.11 to 2.14. If a name is gone, only the first stop of a trace is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch.export import ExportedProgram

from onnxsmith.base.seams.base import private, replaced

_CAPTURE = "torch.export._draft_export:CaptureStructuredTrace"
_DEPENDS = "torch.export._draft_export:FailureType.DATA_DEPENDENT_ERROR"
REACHES = (_CAPTURE, _DEPENDS)


@contextmanager
def closed_logs() -> Iterator[None]:
    """Closes the log file of a draft that is made in the block; torch leaves it open."""
    capture = private(_CAPTURE)
    if capture is None:
        yield
        return
    leave = capture.__exit__

    def close(log: Any, *raised: Any) -> None:
        leave(log, *raised)
        log.close()

    with replaced(capture, "__exit__", close):
        yield


def stops(drafted: ExportedProgram) -> list[tuple[Any, Mapping[int, str]]]:
    """Returns the call stacks at which a trace stops because a branch depends on data. Each has the names of its files
    by number."""
    report: Any = getattr(drafted, "_report", None)
    depends = private(_DEPENDS)
    failures = [] if report is None else report.failures
    return [(one.data["stack"], report.str_to_filename) for one in failures if one.failure_type is depends]
