"""Finds the kind of the user's data, and divides it into calibration and test."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onnxsmith.base import rooms
from onnxsmith.base.problem import problem
from onnxsmith.precision.data.base import Kind, Reading, Sample

EVERY = 4
"""If one data set serves for calibration and test, each fourth sample is for calibration. A choice: the test needs
more."""
MOST = 256
"""The most samples that calibration reads. A choice: the ranges of activations seldom grow after some hundred."""


@dataclass(frozen=True)
class Samples:
    """Samples that can be read several times. `passes` starts a new iterator over them."""

    passes: Callable[[], Iterator[Sample]]
    described: str

    def __iter__(self) -> Iterator[Sample]:
        return self.passes()


NONE = Samples(lambda: iter(()), "no data")


def read(given: Any, reading: Reading) -> Samples:
    """Opens the user's data as samples.

    Raises: OnnxsmithError: `quantize/data` if no kind of data fits.
    """
    kinds = sorted(rooms.members("onnxsmith.precision.data", Kind).values(), key=lambda one: one.rank)
    kind = next((one for one in kinds if one.reads(given)), None)
    if kind is None:
        raise problem(
            "quantize/data",
            "the data cannot be read",
            where=str(given)[:200],
            why=_why_not(given),
            fix="give " + "; ".join(one.form for one in kinds),
        )
    chosen, source = kind, given
    if isinstance(given, Iterator):
        source = list(given)
    return Samples(lambda: chosen.samples(source, reading), str(given) if isinstance(given, str) else kind.form)


def _why_not(given: Any) -> str:
    """Says why no kind of data fits."""
    if not isinstance(given, str | Path):
        return f"an object of type {type(given).__name__} is not data"
    path = Path(given)
    if path.is_dir():
        return "the folder has no images and no .npz"
    if path.suffix == ".py" and path.is_file():
        return "the file is Python code: add a colon and the name of a function"
    return (
        f"{path.suffix or 'a file without an extension'} is not a supported kind of data"
        if path.exists()
        else "it does not exist"
    )


def divided(samples: Samples) -> tuple[Samples, Samples]:
    """Divides one data set into calibration and test: each fourth sample is for calibration, up to `MOST`."""

    def is_calibration(index: int) -> bool:
        return index % EVERY == 0 and index < EVERY * MOST

    def calibration() -> Iterator[Sample]:
        return (one for index, one in enumerate(samples) if is_calibration(index))

    def test() -> Iterator[Sample]:
        return (one for index, one in enumerate(samples) if not is_calibration(index))

    return Samples(calibration, f"each {EVERY}th of {samples.described}"), Samples(test, "the rest of it")


def digest(sample: Sample) -> bytes:
    """Returns a hash of the values of a sample."""
    found = hashlib.blake2b(digest_size=16)
    for name, value in sorted(sample.feeds.items()):
        array = np.asarray(value)
        found.update(f"{name} {array.dtype} {array.shape}".encode())
        found.update(array.tobytes() if array.dtype.kind != "O" else repr(array.tolist()).encode())
    return found.digest()
