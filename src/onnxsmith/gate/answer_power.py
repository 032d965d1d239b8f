"""Looks whether the answers of a predict function depend on its inputs: if not, a comparison of them could not fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from onnxsmith.gate.answer_comparison import differences
from onnxsmith.gate.answers.base import Counts, Limits
from onnxsmith.gate.plain_answers import plain
from onnxsmith.gate.predict_function import Predict, call

_EXACT = Limits(tolerance=0.0, overlap=1.0)
_HALF = 0.5
"""Scales the floats of a changed input. A choice: a value that the function accepts most likely."""


def are_equal(ours: Any, theirs: Any) -> bool:
    """Whether two answers are equal to the bit."""
    return not any(differences(ours, theirs, _EXACT, Counts()))


def is_constant(function: Predict, given: Any, answer: Any) -> bool:
    """Whether a function gives the same answer to changed copies of its only input. An answer without floats, such as
    a label, may well be the same, so it says nothing. If no copy can be tried, an answer of zeros counts as constant.
    """
    tried = 0
    for changed in changed_inputs(given) if has_floats(answer) else ():
        try:
            other = call(function, changed)
        except Exception:  # noqa: BLE001 — the user's code may refuse values that it does not know
            continue
        if not are_equal(answer, other):
            return False
        tried += 1
    return bool(tried) or (has_floats(answer) and is_zero(answer))


def copied(answer: Any) -> Any:
    """Returns an answer with arrays of its own: a function may write its next answer into the same memory."""
    answer = plain(answer)
    if isinstance(answer, np.ndarray):
        return answer.copy()
    if isinstance(answer, Mapping):
        return {key: copied(one) for key, one in answer.items()}
    return [copied(one) for one in answer] if isinstance(answer, list | tuple) else answer


def changed_inputs(given: Any) -> Iterator[Any]:
    """Yields copies of an input whose arrays have other values: reversed, all of them the first one, floats halved.
    Yields nothing for an input without arrays and floats, such as a path."""
    for change in (_reversed, _filled, _halved):
        made = _with(given, change)
        if not are_equal(made, given):
            yield made


def has_floats(answer: Any) -> bool:
    """Whether a part of an answer is floats: these depend on inputs closely, unlike a label."""
    return any(one.dtype.kind in "fcV" for one in _arrays(answer))


def is_zero(answer: Any) -> bool:
    """Whether an answer has numbers, all of which are 0."""
    arrays = list(_arrays(answer))
    return bool(arrays) and not any(np.any(one) for one in arrays)


def _arrays(answer: Any) -> Iterator[Any]:
    answer = plain(answer)
    if isinstance(answer, np.ndarray | np.generic | float | int | complex):
        yield np.asarray(answer)
    elif isinstance(answer, Mapping):
        for one in answer.values():
            yield from _arrays(one)
    elif isinstance(answer, Sequence) and not isinstance(answer, str | bytes):
        for one in answer:
            yield from _arrays(one)


def _with(given: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(given, Mapping):
        return {key: _with(one, change) for key, one in given.items()}
    if isinstance(given, list | tuple) and not hasattr(given, "_fields"):
        return type(given)(_with(one, change) for one in given)
    is_changed = isinstance(given, np.ndarray | np.generic | float) or hasattr(given, "new_full")  # of a tensor
    return change(given) if is_changed else given


def _reversed(value: Any) -> Any:
    if not getattr(value, "ndim", 0):
        return value
    return value.flip(tuple(range(value.ndim))) if hasattr(value, "flip") else np.flip(value)


def _filled(value: Any) -> Any:
    if not getattr(value, "ndim", 0) or 0 in value.shape:
        return value
    first = value[(0,) * value.ndim]
    return value.new_full(value.shape, first.item()) if hasattr(value, "new_full") else np.full_like(value, first)


def _halved(value: Any) -> Any:
    is_float = isinstance(value, float) or "float" in str(getattr(value, "dtype", ""))
    return value * _HALF if is_float else value  # keeps the dtype: NumPy and PyTorch take a Python float as weak
