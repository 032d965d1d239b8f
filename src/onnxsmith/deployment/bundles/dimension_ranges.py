"""Reads the declared ranges of symbolic dimensions: the least, usual and largest size."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnxsmith.base.near_names import near_names
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import pasted
from onnxsmith.graph.structure import dim_ranges
from onnxsmith.graph.structure.signature import Signature
from onnxsmith.verification.inputs.size_proposals import of_feed


@dataclass(frozen=True)
class Range:
    """Holds the least, usual and largest size of a symbolic dimension."""

    least: int
    usual: int
    most: int


def ranges(
    given: dim_ranges.Asked, symbols: Sequence[str], interface: Signature, file: str = "MODEL"
) -> dict[str, Range]:
    """Reads the declared ranges by dimension, from texts such as `batch=1:4:16`, `batch=1..16` and `batch=4`, or from
    tuples. Without a usual size, the geometric mean of least and largest is the usual size. The result is in the order
    of `symbols`, the named symbolic dimensions. `file` is the model in a command.

    Raises:
        OnnxsmithError: `bundle/dim-range` for a text that is no range, for a dimension that the model lacks, that has
            no name, or that no input has.
    """
    found: dict[str, Range] = {}
    for name, declared in _pairs(given):
        sizes = (declared.least, declared.usual, declared.most)
        if name not in symbols:
            raise _unknown(name, sizes, symbols, interface, file)
        if name not in interface.symbols():
            raise problem(
                "bundle/dim-range",
                f"no input has the dimension {name!r}, only an output",
                why="the model computes the size of this dimension, so you cannot choose it",
                fix=f"leave --dim {pasted(name)} out",
            )
        found[name] = declared
    return {name: found[name] for name in symbols if name in found}


def _pairs(given: dim_ranges.Asked) -> Iterator[tuple[str, Range]]:
    items = given.items() if isinstance(given, Mapping) else [(text, text) for text in given or ()]
    for key, value in items:
        text = f"{key}={value}" if isinstance(given, Mapping) else str(value)
        try:
            read = dim_ranges.read({key: value} if isinstance(given, Mapping) else [str(value)])
        except OnnxsmithError:
            raise _no_range(text) from None
        for name, size in read.items():
            held = dim_ranges.Range(size, size, size) if isinstance(size, int) else size
            if held.most is None or held.least < 1:
                raise _no_range(text)
            usual = held.usual if held.usual is not None else math.isqrt(held.least * held.most)
            yield name, Range(held.least, usual, held.most)


def nameless(interface: Signature) -> list[tuple[str, int]]:
    """Returns the dynamic dimensions of required inputs that have no name, as input and axis."""
    return [
        (port.name, axis)
        for port in interface.required()
        for axis, dim in enumerate(port.shape or ())
        if dim == f"{port.name}.{axis}"
    ]


def naming(interface: Signature, file: str = "MODEL") -> tuple[str, str]:
    """Returns the command that names the nameless dynamic dimensions, and the first of the new names."""
    free = (f"d{number}" for number in itertools.count(1) if f"d{number}" not in interface.symbols())
    axes: dict[str, list[str]] = {}
    first = ""
    for name, axis in nameless(interface):
        new = next(free)
        first = first or new
        axes.setdefault(name, []).append(f"{axis}={new}")
    texts = [pasted(f"{name}:{','.join(parts)}") for name, parts in axes.items()]
    return f"onnxsmith set-dim {file} {' '.join(texts)} -o named.onnx", first


def refuse_outside(declared: Mapping[str, Range], interface: Signature, values: Mapping[str, Any], label: str) -> None:
    """Raises if an input has a size outside its declared range.

    Raises:
        OnnxsmithError: `bundle/dim-range`.
    """
    for name, size in of_feed(interface, values).items():
        held = declared.get(name)
        if held is None or held.least <= size <= held.most:
            continue
        low, high = min(held.least, size), max(held.most, size)
        raise problem(
            "bundle/dim-range",
            f"{name!r} is {size} in {label}, but --dim declares {held.least} to {held.most}",
            why="the generated runners refuse sizes outside of the declared range",
            fix=f"--dim {pasted(name)}={low}:{held.usual}:{high}, or another input",
        )


def _unknown(
    name: str, sizes: Sequence[int], symbols: Sequence[str], interface: Signature, file: str
) -> OnnxsmithError:
    near = near_names(name, symbols, 1)
    places = nameless(interface)
    fix = "leave --dim out"
    if near:
        fix = f"--dim {pasted(near[0])}={':'.join(map(str, sizes))} in place of {name}=…"
    elif places:
        command, new = naming(interface, file)
        declared = f"--dim {new}={':'.join(map(str, sizes))}"
        fix = f"name the dimensions first: `{command}`; then bundle named.onnx with {declared}"
    without = f"; without a name: {', '.join(f'axis {axis} of {port}' for port, axis in places)}" if places else ""
    return problem(
        "bundle/dim-range",
        f"the model has no symbolic dimension {name!r}",
        why=f"its symbolic dimensions are: {', '.join(symbols) or 'none'}{without}",
        fix=fix,
    )


def _no_range(text: str) -> Exception:
    name, _, rest = text.partition("=")
    sizes = sorted(max(int(one), 1) for one in re.findall(r"-?\d+", rest)) or [1, 4, 16]
    if len(sizes) == 2:
        sizes.insert(1, math.isqrt(sizes[0] * sizes[1]))
    return problem(
        "bundle/dim-range",
        f"{text!r} is not a range of sizes",
        why="a range is the least, the usual and the largest size, in ascending order and each at least 1",
        fix=f"--dim {pasted(name.strip() or 'batch')}={':'.join(map(str, sizes[:3]))}",
    )
