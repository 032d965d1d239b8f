"""Models that installed packages ship, linked into the corpus."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import onnx

PACKAGES = ("silero_vad", "rapidocr", "magika", "nudenet", "ddddocr", "basic_pitch")
"""Trained models of several exporters: torch (both), tf2onnx, paddle2onnx, hand-made; with If, Loop, LSTM and int8."""

LIGHT = Path("onnx", "backend", "test", "data", "light")
"""Classic image networks that the onnx package ships; a ConstantOfShape stands where each weight was. In its files
initializers are graph inputs too, as IR version 3 asked for; here they are constants, or little could be done."""


def link(folder: Path) -> None:
    """Makes FOLDER/real, of links, and FOLDER/light. What is not installed is left out."""
    root = Path(sysconfig.get_path("purelib"))
    real = [
        (f"{package}__{path.name}", path) for package in PACKAGES for path in sorted((root / package).rglob("*.onnx"))
    ]
    (folder / "real").mkdir(parents=True, exist_ok=True)
    for name, path in real:
        target = folder / "real" / name
        target.unlink(missing_ok=True)
        target.symlink_to(path)
    (folder / "light").mkdir(parents=True, exist_ok=True)
    for path in sorted((root / LIGHT).glob("*.onnx")):
        onnx.save(constant(onnx.load(path)), folder / "light" / path.name)


def constant(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model itself, in which no initializer can be overridden by a caller any more."""
    held = {tensor.name for tensor in model.graph.initializer}
    required = [value for value in model.graph.input if value.name not in held]
    del model.graph.input[:]
    model.graph.input.extend(required)
    model.ir_version = max(model.ir_version, 4)
    return model
