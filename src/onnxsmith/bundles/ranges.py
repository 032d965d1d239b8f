"""Ranges of symbolic dimensions that the user declares: the least, usual and largest size."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from onnxsmith.bundles.content import Content, Range
from onnxsmith.model.graph.signature import Signature
from onnxsmith.problem import problem


def ranges(given: Mapping[str, tuple[int, int, int]] | Sequence[str], content: Content) -> dict[str, Range]:
    """The declared ranges by dimension, from `batch=1:4:16` texts or from tuples, in the model's order.

    Raises:
        OnnxsmithError: `bundle/dim-range` for a text that is no range, and for a dimension that the model lacks.
    """
    found: dict[str, Range] = {}
    pairs = given.items() if isinstance(given, Mapping) else [_parsed(text) for text in given]
    for name, sizes in pairs:
        if len(sizes) != 3 or not 0 < sizes[0] <= sizes[1] <= sizes[2]:
            raise _no_range(f"{name}={':'.join(map(str, sizes))}")
        if name not in content.symbols:
            near = difflib.get_close_matches(name, content.symbols, 1)
            here = ", ".join(content.symbols) or "none"
            raise problem(
                "bundle/dim-range",
                f"the model has no symbolic dimension {name!r}",
                why=f"it has: {here}",
                fix=f"--dim-range {near[0]}={':'.join(map(str, sizes))}" if near else "leave --dim-range out",
            )
        found[name] = Range(*sizes)
    return {name: found[name] for name in content.symbols if name in found}


def in_sizes(declared: Mapping[str, Range], signature: Signature) -> tuple[dict[str, int], ...]:
    """The sizes of golden data by declared ranges: the usual ones, the least, the largest. Empty if a symbol has no
    range: then the sizes are found by trial."""
    symbols = signature.symbols()
    if not symbols or any(symbol not in declared for symbol in symbols):
        return ()
    found = [{symbol: getattr(declared[symbol], which) for symbol in symbols} for which in ("usual", "least", "most")]
    return tuple(sizes for at, sizes in enumerate(found) if sizes not in found[:at])


def _parsed(text: str) -> tuple[str, tuple[int, ...]]:
    name, equals, sizes = text.rpartition("=")
    numbers = sizes.split(":")
    if not equals or not name or not all(number.strip().isdigit() for number in numbers):
        raise _no_range(text)
    return name.strip(), tuple(int(number) for number in numbers)


def _no_range(text: str) -> Exception:
    return problem(
        "bundle/dim-range",
        f"{text!r} is not a range of sizes",
        why="a range is the least, the usual and the largest size, each at least 1, in ascending order",
        fix="--dim-range batch=1:4:16",
    )
