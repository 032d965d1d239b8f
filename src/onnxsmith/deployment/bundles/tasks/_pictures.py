"""Shares code between the tasks of pictures: finds the picture among the inputs, its size, and records a picture."""

from __future__ import annotations

import json
import runpy
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onnxsmith.deployment.bundles import templates
from onnxsmith.deployment.bundles.content import Content, NamedPort
from onnxsmith.deployment.bundles.tasks.base import mismatch

_PICTURE = (37, 53)
"""Sets height and width of the recorded picture. A choice: two primes, so that a resize has to weigh pixels."""


@dataclass(frozen=True)
class Picture:
    """Describes the input that takes a picture. `first` is True if the channels come before height and width. A size is
    None if the model takes any size."""

    port: NamedPort
    channels: int
    first: bool
    height: int | None
    width: int | None

    @property
    def name(self) -> str:
        return self.port.name

    @property
    def numpy(self) -> str:
        return self.port.numpy

    @property
    def dtype(self) -> str:
        return self.port.dtype


def picture(content: Content, task: str, *, channels: tuple[int, ...] = (1, 3)) -> Picture:
    """Returns the only input, which takes one picture.

    Raises:
        OnnxsmithError: `bundle/task-mismatch` if the model needs more inputs, or if the input is not float or uint8 of
            [batch, channels, height, width] or [batch, height, width, channels].
    """
    needed = [port for port in content.inputs if not port.optional]
    if len(needed) != 1:
        names = ", ".join(port.name for port in needed) or "none"
        raise mismatch(task, f"it needs {len(needed)} inputs, and a picture is one", f"inputs: {names}")
    (port,) = needed
    shape = port.shape
    where = f"{port.name}: {port.port}"
    if port.kind != "tensor" or port.dtype not in ("float", "uint8") or shape is None or len(shape) != 4:
        raise mismatch(task, "its input is not float or uint8 with four dimensions", where)
    axis = next((axis for axis in (1, 3) if shape[axis] in (1, 3)), None)
    if axis is None or shape[axis] not in channels:
        wanted = " or ".join(map(str, channels))
        raise mismatch(task, f"its input has no axis of {wanted} channel{'s' if channels[-1] > 1 else ''}", where)
    if isinstance(shape[0], int) and shape[0] != 1:
        raise mismatch(
            task,
            f"its batch is fixed to {shape[0]}",
            where,
            f"make it dynamic: onnxsmith set-dim {content.title}.onnx {port.name}:0=batch -o any_batch.onnx",
        )
    declared = content.ranges.get(str(shape[0]))
    if declared is not None and declared.least > 1:
        raise mismatch(
            task,
            f"its batch {shape[0]!r} is declared to be at least {declared.least}, and a picture is one",
            where,
            f"--dim-range {shape[0]}=1:{declared.usual}:{declared.most}",
        )
    first = axis == 1
    sizes = shape[2:] if first else shape[1:3]
    height, width = (size if isinstance(size, int) else None for size in sizes)
    for symbol, size in zip(sizes, content.parameters.size or (), strict=False):
        held = content.ranges.get(str(symbol))
        if held is not None and not held.least <= size <= held.most:
            raise mismatch(task, f"{symbol!r} is declared to be {held.least} to {held.most}, and --size gives {size}",
                           where, "give a --size inside of the declared range")  # fmt: skip
    found = shape[axis]
    assert isinstance(found, int)
    _check_numbers(content, task, port, found)
    return Picture(port, found, first, height, width)


def _check_numbers(content: Content, task: str, port: NamedPort, channels: int) -> None:
    chosen = content.parameters
    for name in ("mean", "std"):
        count = len(getattr(chosen, name))
        if count not in (1, channels):
            raise mismatch(task, f"{name} has {count} numbers for {channels} channels", f"{port.name}: {port.port}",
                           f"give --{name} {','.join(['0.5'] * channels)}")  # fmt: skip
    if port.dtype == "uint8" and {"mean", "std"} & chosen.given:
        raise mismatch(
            task, "mean and std apply only to float inputs", f"{port.name}: {port.port}", "leave --mean, --std out"
        )


def record(folder: Path, code: Path) -> None:
    """Writes a picture into the golden data, and its processed form by the processing.py in `code`."""
    height, width = _PICTURE
    random = np.random.default_rng(0)
    across = np.linspace(0, 255, width)[None, :, None] * np.ones((height, 1, 3))
    pixels = np.clip(across + random.normal(0, 40, (height, width, 3)), 0, 255).astype(np.uint8)
    processed = runpy.run_path(str(code / "processing.py"))["preprocess"](pixels)
    golden = folder / "golden"
    (golden / "picture.bin").write_bytes(pixels.tobytes())
    (golden / "processed.bin").write_bytes(processed.tobytes())
    held = {"picture": list(pixels.shape), "processed": list(processed.shape), "dtype": str(processed.dtype)}
    (golden / "picture.json").write_bytes((json.dumps(held) + "\n").encode())


def record_only(content: Content, folder: Path, template: str, **values: Any) -> None:
    """Records a picture as the Python code of the task processes it. Code in other languages has to give the same
    result."""
    with tempfile.TemporaryDirectory(prefix="onnxsmith-") as other:
        write(content, Path(other), template, **values)
        record(folder, Path(other))


def write(content: Content, folder: Path, template: str, **values: Any) -> None:
    """Writes the processing of one language."""
    suffix = template.rpartition(".")[2]
    templates.write(folder / f"processing.{suffix}", template, **content.values(), **values)


def only_output(content: Content, task: str, rank: tuple[int, ...]) -> NamedPort:
    """Returns the first output, if it is a float tensor of a fitting rank."""
    output = content.outputs[0]
    known = output.shape is None or len(output.shape) in rank
    if output.kind != "tensor" or output.dtype != "float" or not known:
        ranks = " or ".join(map(str, rank))
        raise mismatch(task, f"its first output is not float of {ranks} dimensions", f"{output.name}: {output.port}")
    return output
