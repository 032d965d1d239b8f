"""`--task image-classification`, `ocr`, `super-resolution`: the tasks of pictures."""

from __future__ import annotations

import json
import runpy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from onnxsmith.base import folders
from onnxsmith.base.folders import OwnPath
from onnxsmith.base.words import pasted
from onnxsmith.deployment.bundles import templates
from onnxsmith.deployment.bundles.content import Content, NamedPort
from onnxsmith.deployment.bundles.tasks.base import Task, mismatch

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


def picture_of(content: Content, task: str, *, channels: tuple[int, ...] = (1, 3)) -> Picture:
    """Returns the only input, which takes one picture.

    Raises:
        OnnxsmithError: `bundle/task-mismatch` if the model needs more inputs, or if the input is not float or uint8 of
            [batch, channels, height, width] or [batch, height, width, channels].
    """
    needed = [port for port in content.inputs if not port.optional]
    if len(needed) != 1:
        names = ", ".join(port.name for port in needed) or "none"
        raise mismatch(
            task,
            f"the task needs a model with exactly one required input, the picture; this model has {len(needed)}",
            f"inputs: {names}",
        )
    (port,) = needed
    shape = port.shape
    where = f"{port.name}: {port.port}"
    if port.kind != "tensor" or port.dtype not in ("float", "uint8") or shape is None or len(shape) != 4:
        raise mismatch(task, "its input is not a float or uint8 tensor with four dimensions", where)
    axis = next((axis for axis in (1, 3) if shape[axis] in (1, 3)), None)
    if axis is None or shape[axis] not in channels:
        wanted = " or ".join(map(str, channels))
        raise mismatch(task, f"its input has no axis of {wanted} channel{'s' if channels[-1] > 1 else ''}", where)
    if isinstance(shape[0], int) and shape[0] != 1:
        raise mismatch(
            task,
            f"its batch is fixed to {shape[0]}",
            where,
            f"make the batch dynamic: `onnxsmith set-dim {content.file} {pasted(port.name)}:0=batch -o any_batch.onnx`",
        )
    declared = content.ranges.get(str(shape[0]))
    if declared is not None and declared.least > 1:
        raise mismatch(
            task,
            f"its batch {shape[0]!r} is declared to be at least {declared.least}, but a single picture is a batch of 1",
            where,
            f"--dim {shape[0]}=1:{declared.usual}:{declared.most}",
        )
    first = axis == 1
    sizes = shape[2:] if first else shape[1:3]
    height, width = (size if isinstance(size, int) else None for size in sizes)
    for symbol, size in zip(sizes, content.parameters.size or (), strict=False):
        held = content.ranges.get(str(symbol))
        if held is not None and not held.least <= size <= held.most:
            raise mismatch(task, f"{symbol!r} is declared to be {held.least} to {held.most}, but --size is {size}",
                           where, "give a --size in the declared range")  # fmt: skip
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
                           f"write the {channels} numbers that were used in training, separated by commas, for "
                           f"example --{name} {','.join(['0.5'] * channels)} for values from -1 to 1")  # fmt: skip
    if port.dtype == "uint8" and {"mean", "std"} & chosen.given:
        raise mismatch(
            task, "mean and std apply only to float inputs", f"{port.name}: {port.port}", "leave --mean, --std out"
        )


def record_processing(folder: OwnPath, code: Path) -> None:
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


def record_only(content: Content, folder: OwnPath, template: str, **values: Any) -> None:
    """Records a picture as the Python code of the task processes it. Code in other languages has to give the same
    result."""
    with folders.temporary() as other:
        write_processing(content, other, template, **values)
        record_processing(folder, other)


def write_processing(content: Content, folder: OwnPath, template: str, **values: Any) -> None:
    """Writes the processing of one language."""
    suffix = template.rpartition(".")[2]
    templates.write(folder, f"processing.{suffix}", template, **content.values(), **values)


def only_output(content: Content, task: str, rank: tuple[int, ...]) -> NamedPort:
    """Returns the first output, if it is a float tensor of a fitting rank."""
    output = content.outputs[0]
    known = output.shape is None or len(output.shape) in rank
    if output.kind != "tensor" or output.dtype != "float" or not known:
        ranks = " or ".join(map(str, rank))
        raise mismatch(
            task, f"its first output is not a float tensor of {ranks} dimensions", f"{output.name}: {output.port}"
        )
    return output


class ImageClassification(Task):
    """Takes one picture and returns scores of classes."""

    packages = ("pillow",)
    uses = ("size", "fit", "shorter", "resize", "colour", "mean", "std", "labels", "top")

    def refuse(self, content: Content) -> None:
        self._values(content)

    def write_python(self, content: Content, folder: OwnPath) -> None:
        write_processing(content, folder, "processing/image_classification.py", **self._values(content))
        record_processing(folder, folder)

    def write_javascript(self, content: Content, folder: OwnPath) -> None:
        write_processing(content, folder, "processing/image_classification.mjs", **self._values(content))

    def write_cpp(self, content: Content, folder: OwnPath, types: Mapping[str, Any]) -> None:
        write_processing(content, folder, "processing/image_classification.hpp", **self._values(content), types=types)

    def record(self, content: Content, folder: OwnPath) -> None:
        record_only(content, folder, "processing/image_classification.py", **self._values(content))

    def _values(self, content: Content) -> dict[str, Any]:
        name, chosen = self.id(), content.parameters
        found = picture_of(content, name)
        height, width = chosen.size or (found.height, found.width)
        if height is None or width is None:
            raise mismatch(name, "it accepts pictures of any size", f"{found.name}: {found.port.port}",
                           "give the size that the model was trained with: --size 224x224")  # fmt: skip
        for own, given in ((found.height, height), (found.width, width)):
            if own is not None and own != given:
                raise mismatch(name, f"its input is {found.height}x{found.width}, not {height}x{width}", found.name,
                               "leave --size out; the size is read from the model")  # fmt: skip
        output = only_output(content, name, (1, 2))
        classes = output.shape[-1] if output.shape else None
        if chosen.labels and isinstance(classes, int) and classes != len(chosen.labels):
            raise mismatch(name, f"it has {classes} classes, but there are {len(chosen.labels)} labels", output.name,
                           "give a file with one label per line, in the order of the classes")  # fmt: skip
        return {
            "picture": replace(found, height=height, width=width),
            "output": output,
            "activation": content.last_operators.get(output.name, ""),
        }


class Ocr(Task):
    """Takes one picture of a line and returns scores of characters for each step, [batch, steps, classes]."""

    packages = ("pillow",)
    uses = ("size", "resize", "colour", "mean", "std", "labels", "blank")

    def refuse(self, content: Content) -> None:
        self._values(content)

    def write_python(self, content: Content, folder: OwnPath) -> None:
        write_processing(content, folder, "processing/ocr.py", **self._values(content))
        record_processing(folder, folder)

    def write_javascript(self, content: Content, folder: OwnPath) -> None:
        write_processing(content, folder, "processing/ocr.mjs", **self._values(content))

    def write_cpp(self, content: Content, folder: OwnPath, types: Mapping[str, Any]) -> None:
        write_processing(content, folder, "processing/ocr.hpp", **self._values(content), types=types)

    def record(self, content: Content, folder: OwnPath) -> None:
        record_only(content, folder, "processing/ocr.py", **self._values(content))

    def _values(self, content: Content) -> dict[str, Any]:
        name, chosen = self.id(), content.parameters
        found = picture_of(content, name)
        size = chosen.size or (None, None)
        height = found.height or size[0]
        if height is None:
            raise mismatch(name, "it accepts text lines of any height", f"{found.name}: {found.port.port}",
                           "give the height and width that the model was trained with: --size 48x320")  # fmt: skip
        output = only_output(content, name, (3,))
        classes = output.shape[-1] if output.shape else None
        return {
            "picture": replace(found, height=height, width=found.width),
            "output": output,
            "characters": self._characters(content, classes),
            "steps_first": output.shape is not None and output.shape[1] == 1,
        }

    def _characters(self, content: Content, classes: int | str | None) -> tuple[str, ...]:
        """Returns the text of each class, with an empty text for the blank. Many label files lack the line for the
        blank, or the space at the end. The line or the space is added if the number of classes shows that it is
        missing."""
        labels, blank = content.parameters.labels, content.parameters.blank
        if not labels:
            raise mismatch(self.id(), "the characters of its classes are unknown", content.outputs[0].name,
                           "give a file with one character per line: --labels characters.txt")  # fmt: skip
        with_blank = (*labels[:blank], "", *labels[blank:])
        choices = [with_blank, (*with_blank, " ")]
        if classes == len(labels):
            choices = [(*labels[:blank], "", *labels[blank + 1 :])]
        fitting = [one for one in choices if not isinstance(classes, int) or len(one) == classes]
        if not fitting:
            raise mismatch(self.id(), f"it has {classes} classes, but there are {len(labels)} characters",
                           content.outputs[0].name, "give one character for each class, in their order")  # fmt: skip
        return fitting[0]


class SuperResolution(Task):
    """Takes the luminance of a picture and returns a larger luminance."""

    packages = ("pillow",)
    uses = ("mean", "std", "scale")

    def refuse(self, content: Content) -> None:
        name = self.id()
        found = picture_of(content, name, channels=(1,))
        where = f"{found.name}: {found.port.port}"
        if not found.first or found.dtype != "float":
            raise mismatch(name, "its input is not float[batch, 1, height, width]", where)
        if found.height is not None or found.width is not None:
            raise mismatch(
                name,
                "its height or width is fixed, but the task enlarges pictures of any size",
                where,
                f"make them dynamic: `onnxsmith set-dim {content.file} {pasted(found.name)}:2=height,3=width "
                "-o dynamic.onnx`",
            )
        only_output(content, name, (4,))

    def write_python(self, content: Content, folder: OwnPath) -> None:
        write_processing(content, folder, "processing/super_resolution.py", **self._values(content))
        record_processing(folder, folder)

    def write_javascript(self, content: Content, folder: OwnPath) -> None:
        write_processing(content, folder, "processing/super_resolution.mjs", **self._values(content))

    def write_cpp(self, content: Content, folder: OwnPath, types: Mapping[str, Any]) -> None:
        write_processing(content, folder, "processing/super_resolution.hpp", **self._values(content), types=types)

    def record(self, content: Content, folder: OwnPath) -> None:
        record_only(content, folder, "processing/super_resolution.py", **self._values(content))

    def _values(self, content: Content) -> dict[str, Any]:
        picture = picture_of(content, self.id(), channels=(1,))
        output = content.outputs[0]
        return {"picture": picture, "output": output, "scale": self._scale(content, picture.name, output.name)}

    def _scale(self, content: Content, taken: str, given: str) -> int:
        """Returns the factor by which the recorded outputs are larger than the inputs."""
        found = set()
        for case in content.cases:
            small, large = np_shape(case.inputs[taken])[2:], np_shape(case.outputs[given])[2:]
            found |= {b / a for a, b in zip(small, large, strict=True)}
        (scale, *others) = sorted(found)
        wanted = content.parameters.scale
        if others or scale != int(scale) or wanted not in (None, int(scale)):
            shown = ", ".join(f"{one:g}" for one in sorted(found))
            raise mismatch(
                self.id(),
                f"it enlarges pictures by {shown}, not by {wanted or 'one whole number in both directions'}",
                given,
            )
        return int(scale)


def np_shape(value: Any) -> tuple[int, ...]:
    """Returns the shape of a recorded value."""
    return tuple(value.shape)
