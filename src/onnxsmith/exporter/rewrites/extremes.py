"""Keeps Python's `min` and `max` of sizes symbolic. A trace would choose by the example's sizes, and stop at a size
that depends on data."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import reduce
from types import ModuleType
from typing import Any

import sympy
import torch

from onnxsmith.base.seams.base import replaced
from onnxsmith.base.seams.torch.size_questions import is_known
from onnxsmith.base.seams.torch.tensors import check
from onnxsmith.exporter.factory import is_models
from onnxsmith.exporter.rewrites.base import Rewrite


class Extremes(Rewrite):
    """Replaces `min` and `max` by `torch.sym_min` and `torch.sym_max` if all arguments are numbers and one is symbolic.

    Only files of the packages that define the module's classes are changed, unless a file defines these names. Other
    calls are unchanged.
    """

    title = "min and max of sizes follow the sizes"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        for home in files(module):
            for name, one in (("min", _least), ("max", _largest)):
                if name not in vars(home):
                    stack.enter_context(replaced(home, name, one, create=True))
        return False


def files(module: torch.nn.Module) -> list[ModuleType]:
    """Returns the loaded Python modules of the packages that define the classes of a module, without torch's. A module
    that is imported on first use stays unchanged, because `vars` does not import it."""
    kinds = {kind.__module__ for part in module.modules() for kind in type(part).__mro__}
    packages = {name.partition(".")[0] for name in kinds} - {"builtins", "torch"}
    found = [one for name, one in list(sys.modules.items()) if name.partition(".")[0] in packages]
    return [one for one in found if isinstance(one, ModuleType) and is_models(vars(one).get("__file__") or "")]


def _least(*args: Any, **kwargs: Any) -> Any:
    return _chosen(builtins.min, torch.sym_min, args, kwargs)


def _largest(*args: Any, **kwargs: Any) -> Any:
    return _chosen(builtins.max, torch.sym_max, args, kwargs)


def _chosen(usual: Callable[..., Any], symbolic: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> Any:
    if kwargs or not args:
        return usual(*args, **kwargs)
    if torch.compiler.is_dynamo_compiling():  # TorchDynamo confuses max and min, and shows a symbolic number as an int
        is_numbers = len(args) > 1 and all(isinstance(one, int | float) for one in args)
        return reduce(symbolic, args) if is_numbers else usual(*args)
    given: Iterable[Any] = args
    if len(args) == 1:
        if not isinstance(args[0], list | tuple):
            return usual(*args)
        given = args[0]
    numbers = list(given)
    if not any(isinstance(one, torch.SymInt | torch.SymFloat) for one in numbers):
        return usual(*args)
    if not all(isinstance(one, int | float | torch.SymInt | torch.SymFloat) for one in numbers):
        return usual(*args)
    is_least = symbolic is torch.sym_min
    return reduce(lambda a, b: _of_two(a, b, is_least, symbolic), numbers)


def _of_two(a: Any, b: Any, is_least: bool, symbolic: Callable[..., Any]) -> Any:
    """Returns the smaller or larger of two sizes. It is one of the two if this is known for all sizes, otherwise a
    symbolic number."""
    if _always(a <= b):
        return a if is_least else b
    if _always(b <= a):
        return b if is_least else a
    found = symbolic(a, b)
    # Operators check that an axis is long enough, which torch cannot derive for a size that depends on data.
    for one in (a, b) if isinstance(found, torch.SymInt) else ():
        check(found <= one if is_least else found >= one)
    return found


_SMALL = (1, 2, 3)
"""Lists small sizes for which the knowledge of a trace is tested."""


def _always(condition: Any) -> bool:
    """Whether a condition is true for all sizes.

    A trace assumes that every size is at least 2, also sizes inside the module. For small sizes its conclusions may be
    wrong, as in `max(1, n // 2)` and `min(20, n // 16 * m)`.
    """
    if not is_known(condition):
        return False
    if not isinstance(condition, torch.SymBool):
        return True
    expression: Any = condition.node.expr
    at = [dict.fromkeys(expression.free_symbols, size) for size in _SMALL]
    return all(expression.subs(sizes) != sympy.false for sizes in at)
