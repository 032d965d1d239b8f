"""What torch says about itself while it traces and translates, kept from the user's screen."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr

from onnxsmith.seams.base import alone

_TALKATIVE = ("torch", "onnxscript", "onnx_ir")


@contextmanager
def quiet() -> Iterator[None]:
    """The exporter warns and logs about itself (no torchvision, its own deprecations), not about the model; and where a
    trace stops, it prints the part of the graph that it has."""
    with alone():
        yield from _quiet()


def _quiet() -> Iterator[None]:
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in _TALKATIVE]
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with redirect_stderr(io.StringIO()):
                yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
