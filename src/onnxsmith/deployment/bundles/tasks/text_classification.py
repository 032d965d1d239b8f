"""Defines `--task text-classification`: turns a text into tokens, and tokens into scores of classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from onnxsmith.deployment.bundles.content import Content
from onnxsmith.deployment.bundles.tasks import _texts
from onnxsmith.deployment.bundles.tasks.base import Task, mismatch


class TextClassification(Task):
    """Takes a text and returns classes with their probabilities."""

    packages = ("tokenizers",)
    uses = ("tokenizer", "labels")

    def refuse(self, content: Content) -> None:
        self._values(content)

    def write_python(self, content: Content, folder: Path) -> None:
        _texts.write(content, folder, "processing/text_classification.py", **self._values(content))

    def record(self, content: Content, folder: Path) -> None:
        _texts.record(content, folder, "processing/text_classification.py", **self._values(content))

    def _values(self, content: Content) -> dict[str, Any]:
        name = self.id()
        config = _texts.settings(_texts.folder_of(content))
        output = content.outputs[0]
        if output.dtype != "float" or (output.shape is not None and len(output.shape) != 2):
            raise mismatch(name, "its first output is not float of 2 dimensions", f"{output.name}: {output.port}")
        named = config.get("id2label") or {}
        labels = content.parameters.labels or tuple(str(named[key]) for key in sorted(named, key=int))
        classes = output.shape[-1] if output.shape else None
        if labels and isinstance(classes, int) and classes != len(labels):
            raise mismatch(name, f"it has {classes} classes, and there are {len(labels)} labels", output.name)
        return {
            "needed": _texts.needed(content, name),
            "output": output,
            "labels": labels,
            "several": config.get("problem_type") == "multi_label_classification",
        }
