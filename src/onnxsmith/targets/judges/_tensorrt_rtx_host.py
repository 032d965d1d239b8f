"""Runs in the child process of `tensorrt_rtx.py`. Only this module imports tensorrt_rtx."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.runtimes._child import serve
from onnxsmith.runtimes.base import Outputs, Value

_LARGER = 2
"""Sets the largest size of a symbolic dimension, in multiples of the usual size. A choice."""
_MOST = 600
"""Limits the characters of a message. A choice."""


class _Log:
    """Holds the errors that TensorRT logs, in order."""

    def __init__(self, trt: Any) -> None:
        class Logger(trt.ILogger):  # type: ignore[misc]
            def __init__(self) -> None:
                trt.ILogger.__init__(self)
                self.errors: list[str] = []

            def log(self, severity: Any, text: str) -> None:
                if severity in (trt.ILogger.ERROR, trt.ILogger.INTERNAL_ERROR):
                    self.errors.append(text)

        self.logger = Logger()


def answer(request: dict[str, Any], values: dict[str, Value]) -> tuple[dict[str, Any], Outputs]:
    """Parses and builds the model at `path`. `values` are the default inputs, which set the sizes of the profile.

    The head has `parsed`, `why` ("" if an engine was built) and the `nodes` that the parser names.
    """
    import tensorrt_rtx as trt

    log = _Log(trt).logger
    builder = trt.Builder(log)
    network = builder.create_network(0)
    config = builder.create_builder_config()
    config.num_compute_capabilities = 1  # without this the builder asks the driver for the GPU
    config.set_compute_capability(trt.ComputeCapability.SM89, 0)
    parser = trt.OnnxParser(network, log)
    if not parser.parse_from_file(request["path"]):
        errors = [parser.get_error(index) for index in range(parser.num_errors)]
        said = list(dict.fromkeys(map(_parse_error, errors)))
        return _head(False, "; ".join(said) or _last(log.errors), [one.node_name() for one in errors]), {}
    profile = _profile(builder, network, values)
    if profile is not None:
        config.add_optimization_profile(profile)
    engine = builder.build_serialized_network(network, config)
    if engine is None:
        return _head(True, _last(log.errors), []), {}
    return _head(True, "", []), {}


def _head(parsed: bool, why: str, nodes: list[str]) -> dict[str, Any]:
    return {"parsed": parsed, "why": why[:_MOST], "nodes": [name for name in nodes if name]}


def _parse_error(error: Any) -> str:
    """Returns an error without the C++ file and line: `UNSUPPORTED_NODE: Det: …`."""
    kind = str(error.code()).rpartition(".")[2]
    said = " ".join(error.desc().split())
    return f"{kind}: {error.node_operator()}" + (f": {said}" if said not in ("", "false") else "")


def _last(errors: list[str]) -> str:
    if not errors:
        return "the builder returned no engine and no message"
    return re.sub(r"^\[[\w.]+::\w+::\d+\] ", "", " ".join(errors[-1].split()))


def _profile(builder: Any, network: Any, values: dict[str, Value]) -> Any:
    """Makes a profile for inputs with symbolic dimensions: from the default sizes to twice these sizes. Returns None if
    all sizes are fixed."""
    profile = builder.create_optimization_profile()
    needed = False
    for index in range(network.num_inputs):
        port = network.get_input(index)
        value = values.get(port.name)
        if not any(size < 0 for size in port.shape) and not port.is_shape_tensor:
            continue
        if not isinstance(value, np.ndarray):
            raise problem(
                "target/no-sizes",
                f"TensorRT needs sizes for the input {port.name}",
                where=port.name,
                why="an engine is built for a range of each symbolic dimension",
                fix="give an input: --input inputs.npz; or give the size of each symbolic dimension with --dim",
            )
        needed = True
        if port.is_shape_tensor:
            usual = value.reshape(-1).tolist()
            profile.set_shape_input(port.name, usual, usual, usual)
            continue
        usual = list(value.shape)
        larger = [_LARGER * size if given < 0 else size for given, size in zip(port.shape, usual, strict=True)]
        profile.set_shape(port.name, usual, usual, larger)
    return profile if needed else None


def translate(error: Exception) -> OnnxsmithError:
    """Turns an error of the bindings into a problem."""
    return problem(
        "runtime/failed",
        "TensorRT for RTX failed",
        why=f"{type(error).__name__}: {error}"[:_MOST],
        fix="`onnxsmith explain runtime/failed` lists what these messages usually mean",
    )


def main() -> None:
    """Runs the child process."""
    serve(answer, translate)
