"""Says which operators of a program PyTorch's exporter cannot write, and of what this package composes them."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any

from onnxsmith.exporter.translating.program_origin import origins

_LEAST = 4
"""Operators for each call, from which on a composition is told. A choice: one or two are only another way to write
an operator."""
_SENTENCE = re.compile(r"\.(\s|$)")


def notes(before: Any, after: Any, ours: Mapping[Any, Callable[..., Any]], written: Container[Any]) -> Iterator[str]:
    """Yields a note for each operator that a translation of this package composed of others, and that PyTorch's
    exporter cannot write as an operator of ONNX.

    `before` and `after` are the graphs before and after the decomposition, `ours` the translations by operator, and
    `written` has the operators that PyTorch's exporter writes.
    """
    called = {node.name: node.target for node in before.nodes if node.target in ours and node.target not in written}
    calls = Counter(called.values())
    parts: Counter[Any] = Counter()
    for node, source in origins(before, after):
        if source.name in called and not str(node.target).startswith("<"):  # such as <built-in function getitem>
            parts[source.target] += 1
    for op, count in calls.items():
        each = parts[op] // count
        if each >= _LEAST:
            times, each_call = (f" ({count} calls)", " each") if count > 1 else ("", "")
            name = str(op.name()).removesuffix(".default")
            said = (
                f"PyTorch's exporter has no translation for this operator; onnxsmith composes it of {each} "
                f"operators{each_call}"
            )
            yield f"{name}{times}: {said}: {_formula(ours[op])}"


def _formula(function: Callable[..., Any]) -> str:
    """Returns the first sentence on a translation: of its class, or of its family of classes."""
    kind = type(getattr(function, "__self__", function))
    text = str(vars(kind).get("__doc__") or sys.modules[kind.__module__].__doc__ or "")
    return _SENTENCE.split(" ".join(text.split()), 1)[0]
