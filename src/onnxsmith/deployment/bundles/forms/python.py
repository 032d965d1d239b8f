"""Writes the bundle of `--for python`: a typed runner that needs only numpy and onnxruntime."""

from __future__ import annotations

from pathlib import Path

from onnxsmith.base.report.parts.target_checks import BundleCheck
from onnxsmith.deployment.bundles import python_runner, templates
from onnxsmith.deployment.bundles.content import Content
from onnxsmith.deployment.bundles.forms.base import NUMBERS, Form
from onnxsmith.deployment.bundles.tasks.base import PICTURES, TEXTS


class Python(Form):
    """Writes a folder with `model.py`, a class with the model's inputs as typed keyword arguments."""

    client = "Python with numpy and onnxruntime"
    dtypes = (*NUMBERS, "string", "bfloat16")
    kinds = ("tensor", "sequence", "map", "optional")
    tasks = ("tensors", *PICTURES, *TEXTS)

    def write(self, content: Content, folder: Path) -> None:
        python_runner.write_runner(content, folder)
        templates.write(folder / "README.md", "python/README.md", **content.values())

    def replay(self, content: Content, folder: Path) -> list[BundleCheck]:
        return [python_runner.replay_python(content, folder)]
