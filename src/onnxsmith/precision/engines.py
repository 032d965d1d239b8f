"""Describes the libraries that quantise models, each in a process of its own."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

from onnxsmith.base.problem import Problem
from onnxsmith.graph.files.save import INLINE_LIMIT
from onnxsmith.runtimes import _call_limits


@dataclass(frozen=True)
class Engine:
    """A library. `host` is the module that the process runs. `package` has to be installed; `extra` is the extra of
    onnxsmith that does so. `most` is the most bytes of weights in a model that the library takes, None for no limit."""

    host: str
    title: str
    package: str
    extra: str
    most: int | None = None
    runs_the_model: bool = False
    """Whether the library runs the model on samples."""

    def missing(self) -> Problem | None:
        """Returns a problem if the library is not installed, else None."""
        if find_spec(self.package) is not None:
            return None
        return Problem(
            "quantize/not-installed",
            f"{self.title} is not installed",
            fix=f"pip install 'onnxsmith[{self.extra}]'; or try another --to",
        )

    def seconds(self, weight: int) -> float:
        """Returns the most seconds the library may take for a model with `weight` bytes of weights; 0 is no limit."""
        return _call_limits.patient() if self.runs_the_model else _call_limits.seconds(None, model=COPIES * weight)

    def memory(self, weight: int, sample: int) -> int:
        """Returns the most bytes of memory the library may take; 0 is no limit. `sample` is the size of the largest
        sample in bytes."""
        return _call_limits.memory(None, model=COPIES * weight, feeds=sample)


COPIES = 6
"""Copies of the weights that a library holds at once. A choice: libraries copy the model, and each weight in
float32."""

ONNXRUNTIME = Engine("onnxsmith.precision._arithmetic_host", "onnxruntime's quantiser", "onnxruntime", "cpu")
NNCF = Engine(
    "onnxsmith.precision._nncf_host",
    "NNCF",
    "nncf",
    "nncf",
    most=INLINE_LIMIT,  # it passes models on as one protobuf message
    runs_the_model=True,
)
