"""Reads ranges of sizes, and keeps in a file's metadata for which sizes a model is meant: `height` is `64..1024`."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.base import user_files
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import pasted, shortened

_LARGEST = 2**63 - 1
_DIGITS = len(str(_LARGEST))
KEY = "onnxsmith.dim_ranges"
"""Names the metadata property of the model: a JSON object from the name of a dimension to its range as text."""


@dataclass(frozen=True)
class Range:
    """Holds the least and the largest size of a symbolic dimension, both inclusive; None is no limit. `usual` is the
    size that is met most; None if nobody said it."""

    least: int = 0
    most: int | None = None
    usual: int | None = None

    def __str__(self) -> str:
        low = str(self.least) if self.least or self.most is None else ""
        return f"{low}..{'' if self.most is None else self.most}"

    def holds(self, size: int) -> bool:
        """Whether the size is in the range."""
        return self.least <= size and (self.most is None or size <= self.most)

    def nearest(self, size: int) -> int:
        """Returns the size of the range that is nearest."""
        low = max(size, self.least)
        return low if self.most is None else min(low, self.most)

    def both(self, other: Range) -> Range | None:
        """Returns the sizes that both ranges hold; None if there is none."""
        most = min((one.most for one in (self, other) if one.most is not None), default=None)
        least = max(self.least, other.least)
        return None if most is not None and most < least else Range(least, most, self.usual)

    @property
    def in_words(self) -> str:
        """Says the sizes after "was tried": `from 64 to 1024`."""
        if self.most is None:
            return f"from {self.least} upwards"
        return f"from {self.least} to {self.most}" if self.least else f"up to {self.most}"


Size = int | Range
Sizes = Mapping[str, int | str | tuple[int | None, ...] | Range]
"""Maps names of dimensions to sizes as a caller gives them: a number, a text such as `64..1024`, or a pair
`(64, 1024)`, in which None is no limit."""


Asked = Mapping[str, object] | Sequence[str] | None
"""Holds sizes before they are read: `Sizes`, sizes that were read, or texts such as `height=64..1024`."""


def read(given: Asked) -> dict[str, Size]:
    """Returns sizes and ranges by the name of the dimension, from texts such as `batch=1` and `height=64..1024`, or
    from a mapping.

    Raises:
        OnnxsmithError: `input/syntax` for a text that is neither a size nor a range; `input/size-range` for a negative
            size or a range without a size.
    """
    if isinstance(given, Mapping):
        return {name: _size(name, value) for name, value in given.items()}
    found: dict[str, Size] = {}
    for text in [given] if isinstance(given, str) else given or ():
        name, equals, size = text.rpartition("=")
        if not equals or not name.strip():
            raise _unreadable(text)
        found[name.strip()] = _parsed(name.strip(), size.strip())
    return found


def whole(digits: str) -> int:
    """Returns the size that a text of decimal digits stands for.

    Raises:
        OnnxsmithError: `input/size-range` for a size above int64.
    """
    digits = digits.lstrip("0") or "0"
    if len(digits) > _DIGITS or int(digits) > _LARGEST:
        raise _empty(shortened(digits, 2 * _DIGITS), "the format keeps sizes as int64", f"write at most {_LARGEST}")
    return int(digits)


def one_size(sizes: Mapping[str, Size]) -> dict[str, int]:
    """Returns a single size for each dimension, for a verb that takes one: the usual size of a range, or its least."""
    return {
        name: size if isinstance(size, int) else size.usual if size.usual is not None else max(size.least, 1)
        for name, size in sizes.items()
    }


def written(given: Asked) -> dict[str, int | str]:
    """Returns sizes as numbers, and ranges as texts."""
    return {name: size if isinstance(size, int) else str(size) for name, size in read(given).items()}


def _size(name: str, value: object) -> Size:
    if isinstance(value, Range):
        return value
    if isinstance(value, str):
        return _parsed(name, value.strip())
    try:
        if isinstance(value, tuple | list):
            return _of_numbers(name, [None if one is None else operator.index(one) for one in value])
        return _checked(name, operator.index(value))  # type: ignore[arg-type]  # raises TypeError for other types
    except TypeError:
        raise _unreadable(f"{name}={value!r}") from None


def _parsed(name: str, text: str) -> Size:
    """Reads `120`, `64..1024`, `64..`, `..1024` or `1:4:16`."""
    whole = f"{name}={text}"
    try:
        if ".." in text:
            low, _, high = text.partition("..")
            return _of_numbers(name, [int(low) if low.strip() else None, int(high) if high.strip() else None])
        numbers: list[int | None] = [int(part) for part in text.split(":")]
    except ValueError:
        raise _unreadable(whole) from None
    if len(numbers) == 2:
        raise _unreadable(whole)
    return _of_numbers(name, numbers) if len(numbers) > 1 else _checked(name, numbers[0] or 0)


def _of_numbers(name: str, numbers: Sequence[int | None]) -> Size:
    """Returns the range of two numbers, or of three: the least, usual and largest size."""
    if len(numbers) not in (2, 3):
        raise _unreadable(f"{name}={':'.join(str(one) for one in numbers)}")
    low, high, usual = numbers[0], numbers[-1], numbers[1] if len(numbers) == 3 else None
    shown = f"{'' if low is None else low}..{'' if high is None else high}"
    for number in numbers:
        _checked(name, 0 if number is None else number, shown, Range(max(low or 0, 0), high and max(high, low or 0, 0)))
    if low is not None and high is not None and low > high:
        raise _empty(
            f"{name}={shown}",
            ("the smallest size is larger than the largest size"),
            f"--dim {pasted(name)}={high}..{low}",
        )
    if usual is not None and not Range(low or 0, high).holds(usual):
        raise _empty(
            f"{name}={low}:{usual}:{high}", "the usual size is outside the range", f"--dim {pasted(name)}={low}..{high}"
        )
    return low if low == high and low is not None else Range(low or 0, high, usual)


def _checked(name: str, size: int, shown: str = "", instead: Range | None = None) -> int:
    if size < 0:
        fix = f"--dim {pasted(name)}={instead if instead is not None else -size}"
        raise _empty(f"{name}={shown or size}", "a size is negative", fix)
    if size > _LARGEST:
        raise _empty(f"{name}={shown or size}", "the format keeps sizes as int64", f"--dim {pasted(name)}=1")
    return size


def _empty(text: str, why: str, fix: str) -> OnnxsmithError:
    return problem("input/size-range", f"no dimension can have the size {text}", why=why, fix=fix)


def _unreadable(text: str) -> OnnxsmithError:
    return problem(
        "input/syntax",
        f"{text!r} does not set the size of a dimension",
        fix=f"write {_meant(text)} in place of {text!r}; a range is written as height=64..1024",
    )


def _meant(text: str) -> str:
    """Returns a dimension and its size as they are written; a missing one is `batch`, or 1."""
    words: list[str] = re.findall(r"\w+", text)
    size = next((word for word in words if word.isdecimal()), "1")
    return f"{next((word for word in words if not word.isdecimal()), 'batch')}={size}"


# Keeps the ranges in the metadata of a file.


def ranges(model: ir.Model) -> dict[str, Range]:
    """Returns the range of each dimension that has one; empty for metadata that cannot be read."""
    try:
        found = user_files.parse_json(model.metadata_props.get(KEY, "{}"))
        read_ = read({str(name): str(text) for name, text in found.items()}) if isinstance(found, dict) else {}
    except (ValueError, OnnxsmithError):
        return {}
    return {name: size if isinstance(size, Range) else Range(size, size) for name, size in read_.items()}


def record(model: ir.Model, found: Mapping[str, Range]) -> None:
    """Writes the ranges in place of those that the model has."""
    model.metadata_props.pop(KEY, None)
    if found:
        model.metadata_props[KEY] = json.dumps({name: str(one) for name, one in found.items()})


def keep(model: ir.Model, sizes: Mapping[str, Size]) -> None:
    """Adds the ranges among `sizes` to those of the model, if inputs have these dimensions. A size is no range: it says
    what one check tries, not which sizes the model is meant for."""
    named = {dim.value for value in model.graph.inputs for dim in value.shape or () if isinstance(dim, ir.SymbolicDim)}
    new = {name: one for name, one in sizes.items() if isinstance(one, Range) and name in named}
    if new:
        record(model, {**ranges(model), **new})


def rename(model: ir.Model, renamed: Callable[[str], str]) -> None:
    """Renames the dimensions that have a range."""
    record(model, {renamed(name): one for name, one in ranges(model).items()})
