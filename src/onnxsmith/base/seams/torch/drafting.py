"""Reads the report of `torch.export.draft_export`, which continues where a trace stops, and moves its log.

Compared with torch 2.11 to 2.14. If a name is gone, only the first stop of a trace is reported.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch.export import ExportedProgram

from onnxsmith.base.seams.base import private, replaced

_CAPTURE = "torch.export._draft_export:CaptureStructuredTrace"
_DEPENDS = "torch.export._draft_export:FailureType.DATA_DEPENDENT_ERROR"
_LOG, _ASKED = "torch.__trace", "TORCH_TRACE"
"""Name torch's logger of traces, and the environment variable by which its user asks for the log in a folder."""
REACHES = (_CAPTURE, _DEPENDS)


@contextmanager
def logging_to(folder: Path) -> Iterator[None]:
    """Makes a draft in the block write its log file into `folder`, and closes the file, which torch leaves open. torch
    also removes handlers from its logger; they come back."""
    capture = private(_CAPTURE)
    if capture is None:
        yield
        return
    make, leave = capture.__init__, capture.__exit__

    def begin(log: Any) -> None:
        make(log)
        if _ASKED not in os.environ:
            log.root_dir = str(folder)

    def close(log: Any, *raised: Any) -> None:
        leave(log, *raised)
        log.close()

    with replaced(capture, "__init__", begin), replaced(capture, "__exit__", close):
        logger = logging.getLogger(_LOG)
        handlers = list(logger.handlers)
        try:
            yield
        finally:
            logger.handlers[:] = handlers


def stops(drafted: ExportedProgram) -> list[tuple[Any, Mapping[int, str]]]:
    """Returns the call stacks at which a trace stops because a branch depends on data. Each has the names of its files
    by number."""
    report: Any = getattr(drafted, "_report", None)
    depends = private(_DEPENDS)
    failures = [] if report is None else report.failures
    return [(one.data["stack"], report.str_to_filename) for one in failures if one.failure_type is depends]
