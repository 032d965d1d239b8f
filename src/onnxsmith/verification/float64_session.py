"""Computes a graph in float64 with the reference evaluator, which implements every operator in float64."""

from __future__ import annotations

import time

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.graph.surgery.float64_copy import widened
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Feeds, Options, Outputs, Session

_SECONDS = 10.0
"""Limits the seconds of all runs together. A choice: the evaluator is slow, and it only gives a second opinion."""


def in_double(model: ir.Model) -> Session | None:
    """Returns a session that accepts the feeds of `model` and computes in float64; None if the model cannot be
    widened."""
    wide = widened(model)
    if wide is None:
        return None
    return _Doubled(runtimes.get("reference").prepare(wide, Options(time_limit=_SECONDS)))


class _Doubled(Session):
    def __init__(self, session: Session) -> None:
        self._session = session
        self._spent = 0.0
        self.signature, self.provider = session.signature, session.provider

    def close(self) -> None:
        self._session.close()

    def run(self, feeds: Feeds) -> Outputs:
        if self._spent > _SECONDS:
            raise problem("runtime/timeout", "the computation in float64 is too slow")
        doubles = {port.name for port in self.signature.inputs if port.dtype == "double"}
        values = {
            name: value.astype(np.float64) if name in doubles and isinstance(value, np.ndarray) else value
            for name, value in feeds.items()
        }
        begun = time.monotonic()
        try:
            return self._session.run(values)
        finally:
            self._spent += time.monotonic() - begun
