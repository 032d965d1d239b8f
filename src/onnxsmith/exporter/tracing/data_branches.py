"""Answers a module's branches on its data, so that a trace continues on one side of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import sympy
import torch

from onnxsmith.base.seams.torch.tensors import MOST_ELEMENTS
from onnxsmith.exporter.factory import is_models
from onnxsmith.exporter.translating.function_substitution import InPlaceOf

_TRIED = 8
"""Limits the counts at which two conditions on one count are compared. A choice: code compares counts with 0, 1 and
2."""


@dataclass
class Decisions:
    """Answers the questions about the data that one trace asks.

    The questions get `answers` in order, then the answer True. `lines` are the lines that asked (`file:line`), `given`
    the answers, `results` the conditions as tensors of rank 0 and dtype bool. A condition that follows from earlier
    ones is no question.
    """

    answers: Sequence[bool] = ()
    most: int = 0
    """Limits the number of questions; the trace stops at the next one."""
    lines: list[str] = field(default_factory=list)
    given: list[bool] = field(default_factory=list)
    results: list[torch.Tensor] = field(default_factory=list)
    _known: list[Any] = field(default_factory=list)

    def begin(self) -> None:
        """Forgets the questions so far when forward begins: torch.export runs forward more than once."""
        for some in (self.lines, self.given, self.results, self._known):
            some.clear()

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Gives a trace in the block the answers, and the numbers of short ranges: `torch.arange(1, 4).tolist()` asks
        nothing."""
        from onnxsmith.base.seams.torch.data_questions import answering

        with answering(self._answer), InPlaceOf({torch.arange: _short_range}):
            yield

    def _answer(self, condition: torch.SymBool, frame: FrameType) -> bool | None:
        file = frame.f_code.co_filename
        if file.startswith("<") or not is_models(file):
            return None
        expression = condition.node.expr
        follows = implied(expression, self._known)
        if follows is not None:
            return follows
        if len(self.given) == self.most:
            return None
        found = self.answers[len(self.given)] if len(self.given) < len(self.answers) else True
        truth: Any = condition  # a symbolic number, which torch's annotations do not have
        self.results.append(torch.scalar_tensor(truth, dtype=torch.bool))
        self.lines.append(f"{file}:{frame.f_lineno}")
        self.given.append(found)
        self._known.append(expression if found else sympy.Not(expression))
        return found


def _short_range(*bounds: Any, dtype: Any = None, device: Any = None, **others: Any) -> Any:
    """Computes `torch.arange` of plain whole numbers, as a tensor whose values a trace knows; NotImplemented for other
    arguments."""
    if (
        any(others.values())
        or not bounds
        or not all(type(one) is int for one in bounds)
        or len(range(*bounds)) > MOST_ELEMENTS
    ):
        return NotImplemented
    return torch.tensor(list(range(*bounds)), dtype=dtype or torch.int64, device=device)


def implied(condition: Any, known: Sequence[Any]) -> bool | None:
    """Whether a condition follows from the known ones; None if that cannot be told."""
    if condition in known:
        return True
    if sympy.Not(condition) in known:
        return False
    symbols = condition.free_symbols
    about = [one for one in known if one.free_symbols == symbols]
    if len(symbols) != 1 or not about:
        return None
    (symbol,) = symbols
    if not symbol.is_integer:
        return None
    numbers = {int(one) for some in (condition, *about) for one in some.atoms(sympy.Integer)}
    least = 0 if symbol.is_nonnegative else min(numbers, default=0) - _TRIED
    counts = range(least, max(numbers, default=0) + _TRIED)
    answers = {condition.subs(symbol, n) for n in counts if all(one.subs(symbol, n) == sympy.true for one in about)}
    if answers == {sympy.true}:
        return True
    return False if answers == {sympy.false} else None
