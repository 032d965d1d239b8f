"""`--for tensorrt`: the line of trtexec with a shape profile, and runners in Python and C++."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from onnxsmith.bundles import python_runner, templates
from onnxsmith.bundles.content import Content, NamedPort
from onnxsmith.bundles.forms.base import Form, not_for_form
from onnxsmith.bundles.tasks.base import PICTURES, TEXTS
from onnxsmith.report.parts.bundle import BundleCheck

_PROFILE = ("min", "opt", "max")


class Tensorrt(Form):
    """build.sh, which calls trtexec; trt_model.py and trt_model.hpp, which run the plan; a Python runner beside
    them."""

    client = "TensorRT"
    dtypes = ("float", "float16", "int8", "int32", "int64", "uint8", "bool")
    tasks = ("tensors", *PICTURES, *TEXTS)

    def refuse(self, content: Content) -> None:
        super().refuse(content)
        for port in content.inputs:
            if port.shape is None:
                raise not_for_form(self.id(), f"the number of dimensions of {port.name!r} is unknown", f"{port.port}")
            if _is_dynamic(port) and not re.fullmatch(r"[^\s,:'\"\\]+", port.name):
                raise not_for_form(
                    self.id(), f"trtexec cannot name the dynamic input {port.name!r} in a shape profile", f"{port.port}"
                )

    def write(self, content: Content, folder: Path) -> None:
        values = {
            **content.values(),
            "options": options(content),
            "profile": {port.name: shapes(content, port) for port in content.inputs if _is_dynamic(port)},
            "notes": notes(content),
        }
        python_runner.write_runner(content, folder)
        for name in ("build.sh", "trt_model.py", "trt_model.hpp", "verify_trt.py", "README.md"):
            templates.write(folder / name, f"tensorrt/{name}", **values)
        (folder / "build.sh").chmod(0o755)

    def replay(self, content: Content, folder: Path) -> list[BundleCheck]:
        why = "building and running a plan needs an NVIDIA GPU and TensorRT; build.sh and verify_trt.py do it there"
        return [
            python_runner.replay_python(content, folder),
            *(BundleCheck(name, "not run", why) for name in ("trtexec line", "TensorRT runners")),
        ]


def options(content: Content) -> list[str]:
    """The options of trtexec for the shape profile; none for a model of fixed shapes."""
    dynamic = [port for port in content.inputs if _is_dynamic(port)]
    found = []
    for which in _PROFILE if dynamic else ():
        parts = [f"{port.name}:{shapes(content, port)[which]}" for port in dynamic]
        found.append(shlex.quote(f"--{which}Shapes={','.join(parts)}"))
    return found


def shapes(content: Content, port: NamedPort) -> dict[str, str]:
    """The least, usual and largest shape of an input, as trtexec writes them: `4x3x224x224`."""
    found: dict[str, str] = {}
    for at, which in enumerate(_PROFILE):
        sizes = []
        for axis, dim in enumerate(port.shape or ()):
            sizes.append(dim if isinstance(dim, int) else _sizes(content, port, dim, axis)[at])
        found[which] = "x".join(map(str, sizes))
    return found


def notes(content: Content) -> list[str]:
    """What a reader has to know of the profile: dimensions without a declared range."""
    free = [dim or f"{port.name}, axis {axis}" for port in content.inputs for axis, dim in enumerate(port.shape or ())
            if not isinstance(dim, int) and dim not in content.ranges]  # fmt: skip
    if not free:
        return []
    names = ", ".join(ascii(name) for name in dict.fromkeys(free))
    return [f"No range was declared for {names}: the profile has the sizes of the golden data. Declare --dim-range."]


def _sizes(content: Content, port: NamedPort, dim: str | None, axis: int) -> tuple[int, int, int]:
    """The declared sizes of a dimension, or those of the golden data: the least, the first, the largest."""
    if dim in content.ranges:
        held = content.ranges[str(dim)]
        return held.least, held.usual, held.most
    values = [case.inputs.get(port.name) for case in content.cases]
    seen = [int(value.shape[axis]) for value in values if value is not None and not isinstance(value, list)]
    return (min(seen), seen[0], max(seen)) if seen else (1, 1, 1)


def _is_dynamic(port: NamedPort) -> bool:
    return not port.optional and any(not isinstance(dim, int) for dim in port.shape or ())
