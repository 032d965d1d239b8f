"""Defines `--task super-resolution`: enlarges the luminance by the model, the colours by bicubic interpolation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onnxsmith.deployment.bundles.content import Content
from onnxsmith.deployment.bundles.tasks import _pictures
from onnxsmith.deployment.bundles.tasks.base import Task, mismatch


class SuperResolution(Task):
    """Takes the luminance of a picture and returns a larger luminance."""

    packages = ("pillow",)
    uses = ("mean", "std", "scale")

    def refuse(self, content: Content) -> None:
        name = self.id()
        found = _pictures.picture(content, name, channels=(1,))
        where = f"{found.name}: {found.port.port}"
        if not found.first or found.dtype != "float":
            raise mismatch(name, "its input is not float[batch, 1, height, width]", where)
        if found.height is not None or found.width is not None:
            raise mismatch(
                name,
                "its height or width is fixed, but the task enlarges pictures of any size",
                where,
                f"make them dynamic: onnxsmith set-dim {content.title}.onnx {found.name}:2=height "
                f"{found.name}:3=width -o dynamic.onnx",
            )
        _pictures.only_output(content, name, (4,))

    def write_python(self, content: Content, folder: Path) -> None:
        _pictures.write(content, folder, "processing/super_resolution.py", **self._values(content))
        _pictures.record(folder, folder)

    def write_javascript(self, content: Content, folder: Path) -> None:
        _pictures.write(content, folder, "processing/super_resolution.mjs", **self._values(content))

    def write_cpp(self, content: Content, folder: Path, types: Mapping[str, Any]) -> None:
        _pictures.write(content, folder, "processing/super_resolution.hpp", **self._values(content), types=types)

    def record(self, content: Content, folder: Path) -> None:
        _pictures.record_only(content, folder, "processing/super_resolution.py", **self._values(content))

    def _values(self, content: Content) -> dict[str, Any]:
        picture = _pictures.picture(content, self.id(), channels=(1,))
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
                self.id(), f"it enlarges by {shown}, not by {wanted or 'one whole number in both directions'}", given
            )
        return int(scale)


def np_shape(value: Any) -> tuple[int, ...]:
    """Returns the shape of a recorded value."""
    return tuple(value.shape)
