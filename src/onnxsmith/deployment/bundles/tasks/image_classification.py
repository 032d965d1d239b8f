"""Defines `--task image-classification`: resizes and normalises a picture, and returns the likeliest classes by
softmax."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from onnxsmith.deployment.bundles.content import Content
from onnxsmith.deployment.bundles.tasks import _pictures
from onnxsmith.deployment.bundles.tasks.base import Task, mismatch


class ImageClassification(Task):
    """Takes one picture and returns scores of classes."""

    packages = ("pillow",)
    uses = ("size", "fit", "shorter", "resize", "colour", "mean", "std", "labels", "top")

    def refuse(self, content: Content) -> None:
        self._values(content)

    def write_python(self, content: Content, folder: Path) -> None:
        _pictures.write(content, folder, "processing/image_classification.py", **self._values(content))
        _pictures.record(folder, folder)

    def write_javascript(self, content: Content, folder: Path) -> None:
        _pictures.write(content, folder, "processing/image_classification.mjs", **self._values(content))

    def write_cpp(self, content: Content, folder: Path, types: Mapping[str, Any]) -> None:
        _pictures.write(content, folder, "processing/image_classification.hpp", **self._values(content), types=types)

    def record(self, content: Content, folder: Path) -> None:
        _pictures.record_only(content, folder, "processing/image_classification.py", **self._values(content))

    def _values(self, content: Content) -> dict[str, Any]:
        name, chosen = self.id(), content.parameters
        found = _pictures.picture(content, name)
        height, width = chosen.size or (found.height, found.width)
        if height is None or width is None:
            raise mismatch(name, "it takes pictures of any size", f"{found.name}: {found.port.port}",
                           "say which size it was trained with: --size 224x224")  # fmt: skip
        for own, given in ((found.height, height), (found.width, width)):
            if own is not None and own != given:
                raise mismatch(name, f"its input is {found.height}x{found.width}, not {height}x{width}", found.name,
                               "leave --size out: it is taken from the model")  # fmt: skip
        output = _pictures.only_output(content, name, (1, 2))
        classes = output.shape[-1] if output.shape else None
        if chosen.labels and isinstance(classes, int) and classes != len(chosen.labels):
            raise mismatch(name, f"it has {classes} classes, and there are {len(chosen.labels)} labels", output.name,
                           "give a file with a label a line, in the order of the classes")  # fmt: skip
        return {
            "picture": replace(found, height=height, width=width),
            "output": output,
            "activation": content.last_operators.get(output.name, ""),
        }
