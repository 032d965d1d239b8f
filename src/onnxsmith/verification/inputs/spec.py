"""Parses an input as a user types it: `x=float32[1,1,224,224]`, `x=photo.png`, `inputs.npz`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from onnxsmith.base.near_names import near_names
from onnxsmith.base.problem import problem
from onnxsmith.base.words import pasted

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


def parse(text: str, *, example: bool = False) -> InputSpec:
    """Parses the text of one `--input`. With `example` it describes an example of an export, whose axes may be dynamic.

    Raises:
        OnnxsmithError: `input/syntax` if it is neither a dtype with a shape nor an existing file.
    """
    name, equals, value = text.partition("=")
    if not equals:
        name, value = "", text
    match = _SHAPED.fullmatch(value.strip())
    if match:
        return InputSpec(name.strip(), dtype(match["dtype"], text), _dims(match["dims"], text, example=example))
    if (path := _file(value)) is not None:
        return InputSpec(name.strip(), path=path)
    if (path := _file(text)) is not None:  # the path of a file may contain an equals sign
        return InputSpec("", path=path)
    raise problem(
        "input/syntax",
        f"{text!r} is neither an existing file nor a dtype with a shape",
        fix=_meant(text, name.strip(), value.strip()),
    )


def _meant(text: str, name: str, value: str) -> str:
    """Returns the advice to write what was probably meant: a file of a similar name, or a shape in other brackets."""
    start = f"{name}=" if name else ""
    if match := re.fullmatch(r"([a-z]+\d*)\s*[(\[{: ]\s*(\d+(?:\s*[,x]\s*\d+)*)\s*[)\]}]?", value):
        sizes = re.sub(r"\s*[,x]\s*", ",", match[2])
        return f"write {start}{match[1]}[{sizes}] in place of {text}"
    if re.search(r"\.\w{2,5}$", value):
        from onnxsmith.graph.files.load import near_file

        found = near_file(Path(value))
        if found is not None:
            return f"write {pasted(f'{start}{found}')} in place of {text}"
    name = pasted(name or "x")
    shape = f"--input {name}=float32[1,3,224,224]"
    return f"write a file or a dtype with sizes: {shape}, --input {name}=photo.png, or --input inputs.npz"


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
        near = near_names(name, ["float32", "float64", *_DTYPES[2:]], 1)
        raise problem(
            "input/syntax",
            f"{name!r} is not a dtype",
            where=text,
            fix=f"write {near[0]} in place of {name}"
            if near
            else f"write one of float32, float64, {', '.join(_DTYPES[2:])}",
        )
    return known


def _dims(text: str, whole: str, *, example: bool) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    try:
        dims = tuple(map(int, parts)) if text.strip() else ()
    except ValueError as error:
        raise problem(
            "input/syntax",
            f"a size is not a number: [{text}]",
            where=whole,
            fix=_numbers(text, whole, example=example),
        ) from error
    if any(dim < 0 for dim in dims):
        raise problem("input/syntax", f"a size is negative: [{text}]", where=whole, fix="give sizes of 0 or more")
    return dims


def _numbers(text: str, whole: str, *, example: bool) -> str:
    """Returns the fix for names in a shape: numbers in their place, and for an export the names of its axes."""
    parts = [part.strip() for part in text.split(",")]
    named = {axis: part for axis, part in enumerate(parts) if not part.lstrip("-").isdecimal()}
    shape = ",".join("2" if axis in named else part for axis, part in enumerate(parts))
    head = whole.partition("[")[0].strip()
    fix = f"write a number in place of {', '.join(named.values())}, for example --input {pasted(f'{head}[{shape}]')}"
    names = ",".join(f"{axis}={name}" for axis, name in named.items() if name.isidentifier())
    if example and names:
        axes = pasted(f"{head.partition('=')[0]}:{names}")
        fix += f" --dynamic {axes}, which names the axes in the model"
    return fix
