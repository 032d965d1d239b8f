"""Parses an input as a user types it: `x=float32[1,1,224,224]`, `x=photo.png`, `inputs.npz`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from onnxsmith.base.problem import problem

_SHAPED = re.compile(r"(?P<dtype>[a-z][a-z0-9_]*)\[(?P<dims>[^\]]*)\]")
_SHORT = {
    "float32": "float",
    "float64": "double",
    "half": "float16",
    "fp16": "float16",
    "fp32": "float",
    "bf16": "bfloat16",
    "long": "int64",
    "int": "int32",
}
_DTYPES = [
    "float",
    "double",
    "float16",
    "bfloat16",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
    "string",
    "complex64",
    "complex128",
]


@dataclass(frozen=True)
class InputSpec:
    """Holds one `--input`: a dtype and shape to fill, or a file to read. `name` is empty if no name was given."""

    name: str
    dtype: str = ""
    shape: tuple[int, ...] | None = None
    path: Path | None = None


def parse(text: str) -> InputSpec:
    """Parses the text of one `--input`.

    Raises:
        OnnxsmithError: `input/syntax` if it is neither a dtype with a shape nor an existing file.
    """
    name, equals, value = text.partition("=")
    if not equals:
        name, value = "", text
    match = _SHAPED.fullmatch(value.strip())
    if match:
        return InputSpec(name.strip(), dtype(match["dtype"], text), _dims(match["dims"], text))
    if (path := _file(value)) is not None:
        return InputSpec(name.strip(), path=path)
    if (path := _file(text)) is not None:  # the path of a file may contain an equals sign
        return InputSpec("", path=path)
    raise problem(
        "input/syntax",
        f"{text!r} is neither an existing file nor a dtype with a shape",
        fix="write --input x=float32[1,3,224,224], --input x=photo.png, or --input inputs.npz",
    )


def _file(text: str) -> Path | None:
    try:
        path = Path(text).expanduser()
        return path if path.is_file() else None
    except (OSError, ValueError, RuntimeError):  # a path that is too long, has a null byte, or an unknown user's ~
        return None


def dtype(name: str, text: str) -> str:
    """Returns the ONNX name of a dtype as users write it: `float32` and `fp32` are `float`."""
    known = _SHORT.get(name, name)
    if known not in _DTYPES:
        raise problem(
            "input/syntax",
            f"{name!r} is not a dtype",
            where=text,
            fix=f"one of: float32, float64, {', '.join(_DTYPES[2:])}",
        )
    return known


def _dims(text: str, whole: str) -> tuple[int, ...]:
    try:
        dims = tuple(int(part) for part in text.split(",")) if text.strip() else ()
    except ValueError as error:
        raise problem(
            "input/syntax",
            f"a size is not a number: [{text}]",
            where=whole,
            fix="give example sizes as numbers; name dynamic axes with --dynamic",
        ) from error
    if any(dim < 0 for dim in dims):
        raise problem("input/syntax", f"a size is negative: [{text}]", where=whole, fix="give sizes of 0 or more")
    return dims
