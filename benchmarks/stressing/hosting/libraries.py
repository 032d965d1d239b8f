"""Libraries with native threads, which a host imports before onnxsmith or after it, and uses."""

from __future__ import annotations

import importlib
import importlib.util
import signal
import tempfile
from pathlib import Path
from typing import Any

_kept: list[Any] = []
"""Keeps sessions alive, as a host does."""


def start(models: Path, order: str) -> None:
    """Sets the host's own handlers, imports the libraries `before` or `after` onnxsmith, and makes each compute."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _handler)
    if order == "after":
        _own()
    for name in ("torch", "torch._dynamo", "onnxruntime", "openvino"):  # each sets variables, and makes a folder
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name)
    if order == "before":
        _own()
    _use(models)
    tempfile.gettempdir()  # which Python keeps


def _handler(*_: object) -> None:
    raise KeyboardInterrupt


def _own() -> None:
    import onnxsmith

    for name in onnxsmith.__all__:
        getattr(onnxsmith, name)


def _use(models: Path) -> None:
    """Starts the threads of each library."""
    import numpy as np
    import onnxruntime
    import torch

    torch.ones(600, 600) @ torch.ones(600, 600)
    torch.ones(2_000_000).sum()
    model = str(models / "net0.onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feeds = {session.get_inputs()[0].name: np.ones((2, 3, 8, 8), "f")}
    session.run(None, feeds)
    _kept.append(session)
    if importlib.util.find_spec("openvino") is not None:
        import openvino

        compiled = openvino.compile_model(model, "CPU")
        compiled(list(feeds.values()))
        _kept.append(compiled)
