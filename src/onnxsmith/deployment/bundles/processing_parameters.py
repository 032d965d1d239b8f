"""Reads the parameters of pre- and post-processing from the command line, a TOML file or Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from onnxsmith.base import user_files
from onnxsmith.base.near_names import near_names
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.editor.processing import parameters as readers

COLOURS = ("rgb", "bgr", "grey")
RESIZES = ("bilinear", "bicubic")
FITS = ("stretch", "crop")


@dataclass(frozen=True)
class Parameters:
    """Says how an input is made from a picture or text, and what an output means.

    `size` is (height, width) of the picture that the model gets; None takes the size from the model. With `fit` "crop"
    the shorter side is first resized to `shorter` (default: the larger number of `size`), then the middle is cut out. A
    pixel value of 0..255 becomes `(value / 255 - mean) / std`, for each channel in the order of `colour`. `labels`
    names the classes, or the characters of OCR; `blank` is OCR's blank class. `tokenizer` is a folder with
    tokenizer.json. `scale` is the factor of super-resolution; None takes the factor from the golden data. `top` is the
    number of classes that are returned.
    """

    size: tuple[int, int] | None = None
    fit: str = "stretch"
    shorter: int | None = None
    colour: str = "rgb"
    resize: str = "bilinear"
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    labels: tuple[str, ...] = ()
    blank: int = 0
    top: int = 5
    scale: int | None = None
    tokenizer: Path | None = None
    given: frozenset[str] = frozenset()


_NAMES = tuple(field.name for field in fields(Parameters) if field.name != "given")


def parameters(given: Mapping[str, Any], file: str | Path | None = None) -> Parameters:
    """Returns the parameters from a TOML file and from `given`. If both set a parameter, `given` counts.

    Raises:
        OnnxsmithError: `bundle/settings` if the file cannot be read, for a name that no parameter has, and for a value
            that does not fit.
    """
    held: dict[str, Any] = _read(Path(file)) if file else {}
    held |= {name: value for name, value in given.items() if value not in (None, "", ())}
    for name in held:
        if name not in _NAMES:
            near = near_names(name, _NAMES, 1)
            fix = f"write {near[0]} in place of {name}" if near else f"the parameters are: {', '.join(_NAMES)}"
            raise _wrong(f"there is no parameter {name!r}", fix, str(file or ""))
    found = {name: _value(name, value) for name, value in held.items()}
    made = Parameters(**found, given=frozenset(found))
    if any(number == 0 for number in made.std):
        raise _wrong("std has a zero", "write the number by which the training divided; 1 for no division", "std")
    return made


def _read(file: Path) -> dict[str, Any]:
    try:
        held = user_files.parse_toml(user_files.read_utf8(file))
    except (OSError, ValueError) as error:
        raise problem(
            "bundle/settings",
            "the settings file cannot be read",
            where=str(file),
            why=str(error),
            fix="write TOML with one parameter per line: mean = [0.5, 0.5, 0.5]",
        ) from error
    for name in ("labels", "tokenizer"):  # relative to the settings file, as its writer sees them
        if isinstance(held.get(name), str):
            held[name] = str(file.parent / held[name])
    return held


def _value(name: str, value: Any) -> Any:
    try:
        return _READERS[name](value)
    except OnnxsmithError:
        raise
    except (ValueError, TypeError, OSError) as error:
        raise _wrong(f"{name} cannot be {value!r}: {error}", _EXAMPLES.get(name, f"{name} = 1"), name) from error


def _wrong(what: str, fix: str, where: str) -> OnnxsmithError:
    return problem("bundle/settings", what, where=where, fix=fix)


def _natural(value: Any) -> int:
    if int(value) < 0:
        raise ValueError("give a number of at least 0")
    return int(value)


def _labels(value: Any) -> tuple[str, ...]:
    if isinstance(value, str | Path):
        return tuple(user_files.read_utf8(Path(value)).removesuffix("\n").split("\n"))
    return tuple(str(item) for item in value)


_READERS: dict[str, Any] = {
    "size": readers.size,
    "fit": readers.one_of(FITS),
    "shorter": readers.positive,
    "colour": readers.one_of(COLOURS),
    "resize": readers.one_of(RESIZES),
    "mean": readers.numbers,
    "std": readers.numbers,
    "labels": _labels,
    "blank": _natural,
    "top": readers.positive,
    "scale": readers.positive,
    "tokenizer": Path,
}
_EXAMPLES = {
    "size": "--size 224x224",
    "mean": "write the numbers of the training, one for each channel, divided by commas: for example 0.485,0.456,0.406",
    "std": "write the numbers of the training, one for each channel, divided by commas: for example 0.229,0.224,0.225",
    "labels": "--labels labels.txt, with one label per line",
    "fit": 'fit = "crop"',
    "colour": "--colour bgr",
    "resize": 'resize = "bicubic"',
}
