"""Starts onnxruntime's sessions on a provider. Imported in the child process of onnxruntime only."""

from __future__ import annotations

import contextlib
import functools
import io
from typing import Any

CPU = "CPUExecutionProvider"
_NVIDIA = ("CUDAExecutionProvider", "TensorrtExecutionProvider")


def started(model: str | bytes, options: Any, provider: str, *, falls_back: bool = True) -> Any:
    """Starts a session of the model, a path or bytes, on the provider. With `falls_back`, nodes that the provider lacks
    run on the CPU. Raises onnxruntime's own errors."""
    import onnxruntime as ort

    if provider in _NVIDIA:
        _load_cuda()
    others = [CPU] if falls_back and provider != CPU else []
    return ort.InferenceSession(model, options, providers=[provider, *others])


@functools.cache
def _load_cuda() -> None:
    """Loads the libraries of CUDA and cuDNN that pip installs (`onnxruntime-gpu[cuda,cudnn]`), because the system's
    loader does not look for them there. A missing library shows when the session starts, so onnxruntime's prints about
    it are dropped."""
    import onnxruntime as ort

    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(RuntimeError, OSError):
        ort.preload_dlls()
