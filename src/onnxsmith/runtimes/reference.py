"""Runs the reference evaluator of the onnx package, which is slow, in Python, and independent of all other runtimes
here."""

from __future__ import annotations

from pathlib import Path

from onnxsmith.base.problem import Problem, problem
from onnxsmith.runtimes import _call_limits
from onnxsmith.runtimes._isolated import Isolated
from onnxsmith.runtimes.base import Feeds, Options, Outputs, Runtime, Session, Source

_HOST = "onnxsmith.runtimes._reference_host"


class Reference(Runtime):
    """Runs onnx.reference, which follows the specification in numpy, operator by operator."""

    title = "ONNX reference evaluator"
    package = "onnx"

    def missing(self) -> Problem | None:
        return None

    def prepare(self, source: Source, options: Options | None = None) -> Session:
        options = options or Options()
        if options.provider != "cpu":
            raise problem(
                "runtime/provider-missing",
                f"the reference evaluator runs on the CPU only, not on {options.provider!r}",
                fix="use --provider cpu, or --runtime onnxruntime",
            )
        return Tracer().alone(source, options)

    def preparer(self, *, keep: int = 1) -> Tracer:
        return Tracer(keep)


class Tracer(Isolated):
    """Runs the evaluator in its own process, so that an endless loop can be stopped and memory is limited. Can also
    return the values of all tensors."""

    slowness = 3.0  # a choice: Python code needs more time than native kernels

    def __init__(self, keep: int = 1) -> None:
        super().__init__(_HOST, "the reference evaluator", keep=keep)

    def trace(self, path: Path, feeds: Feeds, *, time_limit: float | None = None) -> Outputs:
        """Returns every value of the main graph that can be computed, by name; see `traced`."""
        self.start()
        asked = {
            "do": "trace",
            "path": str(path.absolute()),
            "memory": _call_limits.memory(None, model=path.stat().st_size),
        }
        return self.ask(asked, feeds, time_limit=time_limit)[1]
