"""What a person writes for a runtime: `onnxruntime`, `reference`, `onnxruntime:disable_all`."""

from __future__ import annotations

from dataclasses import replace

from onnxsmith.problem import problem
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Options, Runtime

LEVELS = {"disable_all": "disable", "basic": "basic", "extended": "extended", "all": "all"}


def resolve(text: str, time_limit: float | None = None) -> tuple[Runtime, Options]:
    """The runtime that a text names, with the options that it gives.

    Raises:
        OnnxsmithError: `runtime/unknown`, `runtime/not-installed`; `reduce/runtime-option` for an option that is none.
    """
    name, _, level = text.partition(":")
    runtime = runtimes.get(name)
    options = Options(time_limit=time_limit)
    if not level:
        return runtime, options
    if name != "onnxruntime" or level not in LEVELS:
        raise problem(
            "reduce/runtime-option",
            f"{name} has no option {level!r}",
            where=text,
            fix=f"onnxruntime takes one of: {', '.join(LEVELS)}; other runtimes take none",
        )
    return runtime, replace(options, optimization=LEVELS[level])
