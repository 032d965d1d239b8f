"""Lets numbers that are computed from sizes follow the sizes: `math.log2(n)`, `math.sqrt(n)`, `n.bit_length()`,
`divmod(n, 2)`, `numpy.ceil(n / 8)`. Python asks a symbolic number for its value there, which fixes the axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import ModuleType
from typing import Any

import torch

from onnxsmith.base.seams.base import replaced
from onnxsmith.base.seams.torch import logarithms
from onnxsmith.base.seams.torch.size_questions import is_known
from onnxsmith.exporter.rewrites.base import Rewrite
from onnxsmith.exporter.rewrites.extremes import files

_SYMBOLS = (torch.SymInt, torch.SymFloat)
_as_float: Any = torch.sym_float
_larger: Any = torch.sym_max


class NumbersOfSizes(Rewrite):
    """In the files of the packages that define the module's classes, functions of `math` give a symbolic number for
    one. Other calls of them are unchanged, and so is `math` elsewhere: what is imported meanwhile would keep it.
    Symbolic numbers have the operators that they lack, and the methods by which numpy computes with objects."""

    title = "numbers computed from sizes follow the sizes"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        if logarithms.LOG2 is None:
            return False
        stack.enter_context(logarithms.allowed())
        own = {getattr(math, name): (name, _function(name, symbolic)) for name, symbolic in _FUNCTIONS.items()}
        library = ModuleType("math")
        vars(library).update(vars(math), **dict(own.values()))
        for home in files(module):
            for bound, value in list(vars(home).items()):
                if value is math:
                    stack.enter_context(replaced(home, bound, library))
                elif type(value) is _BUILTIN and value in own:
                    stack.enter_context(replaced(home, bound, own[value][1]))
        for name, method in _METHODS.items():
            for kind in _SYMBOLS:
                stack.enter_context(replaced(kind, name, method, create=True))
        for name, method in _SHIFTS.items():
            stack.enter_context(replaced(torch.SymInt, name, method, create=True))
        usual = torch.SymInt.bit_length
        stack.enter_context(replaced(torch.SymInt, "bit_length", lambda n: _bits(n, usual)))
        return False


def _function(name: str, symbolic: Callable[..., Any]) -> Callable[..., Any]:
    usual = getattr(math, name)

    def function(*args: Any) -> Any:
        if any(isinstance(one, _SYMBOLS) for one in args) and not torch.compiler.is_dynamo_compiling():
            return symbolic(*args)
        return usual(*args)

    return function


def _log2(x: Any) -> Any:
    return logarithms.LOG2(_as_float(x))


def _log(x: Any, base: Any = math.e) -> Any:
    """To base 2 as `math.log2`, which is exact for powers of two as Python's quotient is."""
    if base == 2:
        return _log2(x)
    found = _log2(x) * math.log(2) if isinstance(x, _SYMBOLS) else math.log(x)
    return found if base == math.e else found / _log(base) if isinstance(base, _SYMBOLS) else found / math.log(base)


def _root(x: Any) -> Any:
    return torch.sym_sqrt(_as_float(x))


def _power(x: Any, exponent: Any) -> Any:
    return _as_float(x) ** _as_float(exponent)


def _bits(n: Any, usual: Callable[[Any], int]) -> Any:
    """The digits of a size in base 2; 0 has none."""
    if torch.compiler.is_dynamo_compiling() or not is_known(n >= 0):
        return usual(n)
    return math.floor(_log2(_larger(_as_float(n), 0.5))) + 1


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "sqrt": _root,
    "isqrt": lambda n: math.floor(_root(n)),  # exact below 2⁵²
    "log2": _log2,
    "log": _log,
    "log10": lambda x: _log2(x) * math.log10(2),
    "pow": _power,
    "fabs": lambda x: abs(_as_float(x)),
}
_METHODS: Mapping[str, Callable[..., Any]] = {
    "__divmod__": lambda a, b: (a // b, a % b),
    "__rdivmod__": lambda a, b: (b // a, b % a),
    "sqrt": _root,
    "log2": _log2,
    "log": _log,
    "log10": _FUNCTIONS["log10"],
    "ceil": lambda x: _as_float(math.ceil(x)),
    "floor": lambda x: _as_float(math.floor(x)),
    "rint": lambda x: _as_float(round(x)),
}
_SHIFTS: Mapping[str, Callable[..., Any]] = {
    "__lshift__": lambda a, b: a * 2**b,
    "__rlshift__": lambda a, b: b * 2**a,
    "__rshift__": lambda a, b: a // 2**b,
    "__rrshift__": lambda a, b: b // 2**a,
}
"""Shifts are products: PyTorch's exporter has none of sizes."""
_BUILTIN = type(math.sqrt)
