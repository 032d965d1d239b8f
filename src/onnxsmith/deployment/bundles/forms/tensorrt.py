"""Writes the bundle of `--for tensorrt`: the command line of trtexec with a shape profile, and runners in Python and
C++."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from onnxsmith.base.report.parts.target_checks import BundleCheck
from onnxsmith.deployment.bundles import python_runner, templates
from onnxsmith.deployment.bundles.content import Content, NamedPort
from onnxsmith.deployment.bundles.dimension_ranges import nameless, naming
from onnxsmith.deployment.bundles.forms.base import Form, not_for_form
from onnxsmith.deployment.bundles.identifiers import identifiers
from onnxsmith.deployment.bundles.tasks.base import PICTURES, TEXTS

_PROFILE = ("min", "opt", "max")
_NAMED = r"[^,']+"
"""Matches the names that trtexec can read in a shape profile (samples/common/sampleOptions.cpp of TensorRT 10). trtexec
splits the profile at commas, then each part at single quotes. Inside single quotes, colons and blanks belong to the
name."""
_RANGE = "=MIN:OPT:MAX"
_PLAIN = r"[\w./-]+"
"""Matches the names that need no quotes in a shape profile."""


class Tensorrt(Form):
    """Writes build.sh, which calls trtexec; trt_model.py and trt_model.hpp, which run the plan; and a Python runner for
    the model."""

    client = "TensorRT"
    dtypes = ("float", "float16", "int8", "int32", "int64", "uint8", "bool")
    tasks = ("tensors", *PICTURES, *TEXTS)

    def refuse(self, content: Content) -> None:
        super().refuse(content)
        for port in content.inputs:
            if port.shape is None:
                raise not_for_form(self.id(), f"the number of dimensions of {port.name!r} is unknown", f"{port.port}")
            if _is_dynamic(port) and not re.fullmatch(_NAMED, port.name):
                new = identifiers([port.name])[port.name]
                raise not_for_form(
                    self.id(),
                    f"trtexec cannot name the dynamic input {port.name!r} in a shape profile",
                    f"{port.port}",
                    why="it splits a profile at each comma, and reads single quotes as the limits of a name",
                    fix=f"onnxsmith rename MODEL {shlex.quote(port.name)} {new} -o renamed.onnx",
                )

    def notes(self, content: Content) -> list[str]:
        return [*super().notes(content), *notes(content)]

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
    """Returns the options of trtexec for the shape profile; none for a model of fixed shapes."""
    dynamic = [port for port in content.inputs if _is_dynamic(port)]
    found = []
    for which in _PROFILE if dynamic else ():
        parts = [f"{_quoted(port.name)}:{shapes(content, port)[which]}" for port in dynamic]
        found.append(_word(f"--{which}Shapes={','.join(parts)}"))
    return found


def _quoted(name: str) -> str:
    """Quotes a name as trtexec reads it."""
    return name if re.fullmatch(_PLAIN, name) else f"'{name}'"


def _word(text: str) -> str:
    """Quotes a text as one word of a shell, in double quotes if possible."""
    return f'"{text}"' if "'" in text and not re.search(r'["$`\\!]', text) else shlex.quote(text)


def shapes(content: Content, port: NamedPort) -> dict[str, str]:
    """Returns the least, usual and largest shape of an input, as trtexec writes them: `4x3x224x224`."""
    found: dict[str, str] = {}
    for at, which in enumerate(_PROFILE):
        sizes = []
        for axis, dim in enumerate(port.shape or ()):
            sizes.append(dim if isinstance(dim, int) else _sizes(content, port, dim, axis)[at])
        found[which] = "x".join(map(str, sizes))
    return found


def notes(content: Content) -> list[str]:
    """Returns notes about the profile: dimensions without a declared range."""
    free = [dim for port in content.inputs for dim in port.shape or () if isinstance(dim, str)]
    free = [dim for dim in dict.fromkeys(free) if dim not in content.ranges]
    found = []
    if free:
        names = ", ".join(ascii(name) for name in free)
        found.append(
            f"No range was declared for {names}: the profile has the sizes of the golden data. Declare them: "
            f"{' '.join(f'--dim-range {shlex.quote(ascii(name)[1:-1] + _RANGE)}' for name in free)}."
        )
    places = nameless(content.signature)
    if places:
        where = ", ".join(f"axis {axis} of {name!a}" for name, axis in places)
        command, new = naming(content.signature, content.model_file)
        found.append(
            f"These dimensions have no name, so the profile has the sizes of the golden data: {where}. Name them with "
            f"{' '.join(command.split())}, and bundle named.onnx with --dim-range {new}{_RANGE}."
        )
    return found


def _sizes(content: Content, port: NamedPort, dim: str | None, axis: int) -> tuple[int, int, int]:
    """Returns the least, usual and largest declared size of a dimension. Without a declaration, returns the least,
    first and largest size in the golden data."""
    if dim in content.ranges:
        held = content.ranges[str(dim)]
        return held.least, held.usual, held.most
    values = [case.inputs.get(port.name) for case in content.cases]
    seen = [int(value.shape[axis]) for value in values if value is not None and not isinstance(value, list)]
    return (min(seen), seen[0], max(seen)) if seen else (1, 1, 1)


def _is_dynamic(port: NamedPort) -> bool:
    return not port.optional and any(not isinstance(dim, int) for dim in port.shape or ())
