"""Silences torch's logs and warnings while it traces and translates."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr

from onnxsmith.base.seams.base import alone

_TALKATIVE = ("torch", "onnxscript", "onnx_ir")


@contextmanager
def quiet() -> Iterator[None]:
    """Silences torch's exporter in the block: its messages are about itself (no torchvision, deprecations), not about
    the model. A trace that stops prints its unfinished graph to stderr, which is discarded too."""
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
