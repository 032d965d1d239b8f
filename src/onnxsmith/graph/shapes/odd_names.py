"""Renames dimensions with odd names, such as `batch size` or `50%`, while shapes are inferred.

ONNX allows any text as the name of a dimension. Shape inference parses the text as an expression, and fails if it is
not an expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import onnx_ir as ir

from onnxsmith.graph.structure import walk

_PLAIN = re.compile(r"[^\W\d][\w.]*")


@contextmanager
def renamed(model: ir.Model) -> Iterator[None]:
    """Replaces each text that is not an expression by a name made of its letters and digits. Restores the texts after
    the block; in new expressions, such as `2*batch_size`, the name stays."""
    values = [value for value in walk.values_of(walk.graphs(model)) if value.shape is not None]
    texts = dict.fromkeys(dim.value for value in values for dim in value.shape or () if isinstance(dim, ir.SymbolicDim))
    odd = [text for text in texts if text is not None and not is_expression(text)]
    if not odd:
        yield
        return
    names: dict[str, str] = {}
    for text in odd:
        name = wish = re.sub(r"\W+", "_", text).strip("_") or "dim"
        name = wish = wish if wish[0].isalpha() else f"dim_{wish}"
        number = 1
        while name in texts or name in names.values():
            number += 1
            name = f"{wish}_{number}"
        names[text] = name
    _rename(values, names)
    try:
        yield
    finally:
        _rename(list(walk.values_of(walk.graphs(model))), {name: text for text, name in names.items()})


@lru_cache(maxsize=4096)
def is_expression(text: str) -> bool:
    """Whether shape inference can read the text: a name, or an expression over names."""
    if _PLAIN.fullmatch(text):
        return True
    try:
        ir.SymbolicDim(text).free_symbols()
    except (ValueError, TypeError, AttributeError, RecursionError):
        return False
    return True


def _rename(values: list[ir.Value], names: dict[str, str]) -> None:
    for value in values:
        shape = value.shape
        if shape is None or not any(isinstance(dim, ir.SymbolicDim) and dim.value in names for dim in shape):
            continue
        value.shape = ir.Shape(
            [names.get(dim.value or "", dim) if isinstance(dim, ir.SymbolicDim) else dim for dim in shape]
        )
