"""Finds the lines that read a Python value from a tensor without an effect on the trace.

A trace records the operations of one example. A line such as `int(x.max())` is harmless if its value decides nothing
that is recorded: it chooses between two ways to compute the same, or it only checks the input. To find such lines, the
module is traced again with other values at the line.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from enum import Enum
from types import TracebackType
from typing import Any

import torch

from onnxsmith.base.seams.base import replaced

MOST_LINES = 8
"""Limits the lines that are examined. A choice: each line costs up to three more traces. If there are more lines, all
of them count."""
_MOST_CONVERSIONS = 1000
"""Limits the conversions in one trace. A choice: it ends a loop whose end condition is changed."""
_CONVERSIONS = ("__bool__", "__int__", "__float__", "__index__", "item", "tolist")
_CHANGES: tuple[Callable[[Any], Any], ...] = (lambda n: n + 1, lambda n: n * 0, lambda n: n * 1000 + 7)
"""Changes a number to its neighbour, to 0, to a distant number. A truth value becomes its opposite."""


class _Effect(Enum):
    NONE = "the same trace"
    CHECK = "the module raised an error of its own"
    SOME = "another trace, or an error"


def deciding(lines: Sequence[str], trace: Callable[[], bytes]) -> list[str]:
    """Returns the lines (`file:number`) whose values decide what `trace` records.

    A line counts if its value changes the result of `trace`. It also counts if that cannot be told: no conversion is
    called there, or an operation fails with the changed value. A line does not count if the module itself raises with
    every changed truth value: it checks the input, and the module has no result if the check fails. Lines without an
    effect alone are changed together once more, as one value may hide another.
    """
    if not lines or len(lines) > MOST_LINES:
        return list(lines)
    before = trace()
    effects = {line: _effect([line], trace, before) for line in lines}
    idle = [line for line, effect in effects.items() if effect is _Effect.NONE]
    if len(idle) > 1 and _effect(idle, trace, before) is not _Effect.NONE:
        return list(lines)
    return [line for line, effect in effects.items() if effect is _Effect.SOME]


def _effect(lines: Sequence[str], trace: Callable[[], bytes], before: bytes) -> _Effect:
    for change in _CHANGES:
        with _changed(lines, change) as seen:
            try:
                after = trace()
            except Exception as error:  # noqa: BLE001  # an operation or a check that rejects the changed value
                is_check = seen == {bool} and is_raised(error.__traceback__)
                return _Effect.CHECK if is_check else _Effect.SOME
        if after != before or not seen:
            return _Effect.SOME
        if seen == {bool}:
            break  # a truth value has only one other value
    return _Effect.NONE


def is_raised(trail: TracebackType | None) -> bool:
    """Whether a statement of the module raised the error, instead of an operation of torch."""
    while trail is not None and trail.tb_next is not None:
        trail = trail.tb_next
    if trail is None or trail.tb_frame.f_code.co_filename in (torch.__file__, __file__):
        return False
    code = trail.tb_frame.f_code.co_code
    return code[trail.tb_lasti] == dis.opmap["RAISE_VARARGS"]


@contextmanager
def _changed(lines: Sequence[str], change: Callable[[Any], Any]) -> Iterator[set[type]]:
    """Changes the values of conversions that these lines call in the block. Yields the types of the changed values."""
    seen: set[type] = set()
    count = 0

    def changing(convert: Callable[..., Any]) -> Callable[..., Any]:
        def changed(tensor: torch.Tensor, *rest: Any) -> Any:
            nonlocal count
            value = convert(tensor, *rest)
            caller = sys._getframe(1)
            if f"{caller.f_code.co_filename}:{caller.f_lineno}" not in lines:
                return value
            seen.add(type(value))
            count += 1
            if count > _MOST_CONVERSIONS:
                raise RecursionError("a loop goes on for as long as the value is another")
            return _other(value, change)

        return changed

    with ExitStack() as stack:
        for name in _CONVERSIONS:
            stack.enter_context(replaced(torch.Tensor, name, changing(getattr(torch.Tensor, name))))
        yield seen


def _other(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, list):
        return [_other(one, change) for one in value]
    return not value if isinstance(value, bool) else change(value)
