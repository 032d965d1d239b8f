"""Defines `--task ocr`: reads a picture of a line of text by CTC greedy decoding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from onnxsmith.deployment.bundles.content import Content
from onnxsmith.deployment.bundles.tasks import _pictures
from onnxsmith.deployment.bundles.tasks.base import Task, mismatch


class Ocr(Task):
    """Takes one picture of a line and returns scores of characters for each step, [batch, steps, classes]."""

    packages = ("pillow",)
    uses = ("size", "resize", "colour", "mean", "std", "labels", "blank")

    def refuse(self, content: Content) -> None:
        self._values(content)

    def write_python(self, content: Content, folder: Path) -> None:
        _pictures.write(content, folder, "processing/ocr.py", **self._values(content))
        _pictures.record(folder, folder)

    def write_javascript(self, content: Content, folder: Path) -> None:
        _pictures.write(content, folder, "processing/ocr.mjs", **self._values(content))

    def write_cpp(self, content: Content, folder: Path, types: Mapping[str, Any]) -> None:
        _pictures.write(content, folder, "processing/ocr.hpp", **self._values(content), types=types)

    def record(self, content: Content, folder: Path) -> None:
        _pictures.record_only(content, folder, "processing/ocr.py", **self._values(content))

    def _values(self, content: Content) -> dict[str, Any]:
        name, chosen = self.id(), content.parameters
        found = _pictures.picture(content, name)
        size = chosen.size or (None, None)
        height = found.height or size[0]
        if height is None:
            raise mismatch(name, "it takes lines of any height", f"{found.name}: {found.port.port}",
                           "say which height it was trained with: --size 48x320")  # fmt: skip
        output = _pictures.only_output(content, name, (3,))
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
                           "give a file with a character a line: --labels characters.txt")  # fmt: skip
        with_blank = (*labels[:blank], "", *labels[blank:])
        choices = [with_blank, (*with_blank, " ")]
        if classes == len(labels):
            choices = [(*labels[:blank], "", *labels[blank + 1 :])]
        fitting = [one for one in choices if not isinstance(classes, int) or len(one) == classes]
        if not fitting:
            raise mismatch(self.id(), f"it has {classes} classes, and there are {len(labels)} characters",
                           content.outputs[0].name, "give the characters in the order of the classes")  # fmt: skip
        return fitting[0]
