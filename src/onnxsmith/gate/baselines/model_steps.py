"""Goes through the models of a command one after the other: a model that fails does not stop the others."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from onnxsmith.base import clock
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.words import several
from onnxsmith.gate.baselines.settings import Settings

T = TypeVar("T")

_OTHER = 0.5
"""Sets the seconds that a model takes beside its times, until some models were measured. A choice, measured with small
models."""
_STARTING = 1.2
"""Sets the seconds that starting processes adds to the times of a model. A choice, as above."""


def steps(models: Sequence[T], settings: Settings) -> Iterator[T]:
    """Yields the models, and tells the progress before each: which of them it is, and how long the rest will take."""
    begin = time.monotonic()
    each = _OTHER + (settings.seconds + _STARTING if settings.times else 0.0)
    for number, model in enumerate(models):
        if number:
            each = (time.monotonic() - begin) / number
        left = f", {_in_words(each * (len(models) - number))}" if len(models) > 1 else ""
        with clock.step(f"model {number + 1} of {len(models)}{left}", number, len(models)):
            yield model


def _in_words(seconds: float) -> str:
    if seconds >= 100:
        return f"about {several(round(seconds / 60), 'minute')} left"
    return f"about {several(max(round(seconds), 1), 'second')} left"


@contextmanager
def naming(model: str | Path) -> Iterator[None]:
    """Lets an error say at which of the models it happened."""
    try:
        yield
    except OnnxsmithError as error:
        if str(model) in f"{error.problem.what} {error.problem.where}":
            raise
        raise error.at(str(model)) from error
