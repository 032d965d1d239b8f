"""Keeps sizes symbolic in functions that take only plain numbers."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from types import ModuleType
from typing import Any

import torch

from onnxsmith.base.seams.base import replaced
from onnxsmith.base.seams.torch import logarithms
from onnxsmith.base.seams.torch.size_questions import example, is_known
from onnxsmith.exporter.rewrites.base import Rewrite
from onnxsmith.exporter.rewrites.extremes import files
from onnxsmith.exporter.translating.function_substitution import InPlaceOf

_SYMBOLS = (torch.SymInt, torch.SymFloat)
_as_float: Any = torch.sym_float
_larger: Any = torch.sym_max


class NumbersOfSizes(Rewrite):
    """Keeps numbers computed from sizes symbolic: `math.log2(n)`, `math.sqrt(n)`, `n.bit_length()`, `divmod(n, 2)`,
    `numpy.ceil(n / 8)`. Python asks a symbolic number for its value there, which fixes the axis.

    In the files of the packages that define the module's classes, functions of `math` return a symbolic number for a
    symbolic argument. Other calls are unchanged. `math` itself is unchanged too, because a module imported meanwhile
    would keep the changed one. Symbolic numbers get the operators that they lack, and the methods by which numpy
    computes with objects.
    """

    title = "numbers computed from sizes follow the sizes"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        if logarithms.LOG2 is None:
            return False
        stack.enter_context(logarithms.allowed())
        own = {getattr(math, name): (name, _function(name, symbolic)) for name, symbolic in FUNCTIONS.items()}
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
    """Returns the logarithm. Base 2 uses `math.log2`, which is exact for powers of two, as Python's quotient is."""
    if base == 2:
        return _log2(x)
    found = _log2(x) * math.log(2) if isinstance(x, _SYMBOLS) else math.log(x)
    return found if base == math.e else found / _log(base) if isinstance(base, _SYMBOLS) else found / math.log(base)


def _root(x: Any) -> Any:
    return torch.sym_sqrt(_as_float(x))


def _power(x: Any, exponent: Any) -> Any:
    return _as_float(x) ** _as_float(exponent)


def _bits(n: Any, usual: Callable[[Any], int]) -> Any:
    """Returns the number of binary digits of a size. 0 has none."""
    if torch.compiler.is_dynamo_compiling() or not is_known(n >= 0):
        return usual(n)
    return math.floor(_log2(_larger(_as_float(n), 0.5))) + 1


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
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
    "log10": FUNCTIONS["log10"],
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
"""Computes shifts as products, because PyTorch's exporter has no shifts of sizes."""
_BUILTIN = type(math.sqrt)


_Numbers = bool | int | float | torch.SymBool | torch.SymInt | torch.SymFloat
_SYMBOL_TYPES = (torch.SymBool, torch.SymInt, torch.SymFloat)


class TensorsOfSizes(Rewrite):
    """Traces `torch.tensor([x.shape[2], x.shape[3]])` with symbolic sizes. torch.export would store the example's
    sizes.

    Replaces `torch.tensor` and `torch.as_tensor` by a stack of scalars if one of the numbers is a symbolic size.
    """

    title = "a tensor made from sizes is stacked from scalars"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        stack.enter_context(InPlaceOf({torch.tensor: _tensor, torch.as_tensor: _tensor}))
        return False


def _tensor(data: Any, dtype: torch.dtype | None = None, device: Any = None, **others: Any) -> Any:
    """Returns the same as `torch.tensor`. Returns NotImplemented for other arguments, for leaves that are not numbers,
    or if no number is symbolic."""
    leaves = list(_leaves(data))
    if any(others.values()) or not any(isinstance(leaf, _SYMBOL_TYPES) for leaf in leaves):
        return NotImplemented
    if not all(isinstance(leaf, _Numbers) for leaf in leaves):
        return NotImplemented
    return _stacked(data, dtype or _dtype(leaves), device)


def _leaves(data: Any) -> Iterator[Any]:
    if isinstance(data, list | tuple):
        for part in data:
            yield from _leaves(part)
    else:
        yield data


def _dtype(leaves: list[Any]) -> torch.dtype:
    """Returns the dtype that torch chooses for Python numbers."""
    if any(isinstance(leaf, float | torch.SymFloat) for leaf in leaves):
        return torch.get_default_dtype()
    return torch.bool if all(isinstance(leaf, bool | torch.SymBool) for leaf in leaves) else torch.int64


def _stacked(data: Any, dtype: torch.dtype, device: Any) -> torch.Tensor:
    if not isinstance(data, list | tuple):
        return torch.scalar_tensor(data, dtype=dtype, device=device)
    if not data:
        return torch.empty(0, dtype=dtype, device=device)
    return torch.stack([_stacked(part, dtype, device) for part in data])


class TriangularIndices(Rewrite):
    """Traces `torch.triu_indices(n, n)` and `torch.tril_indices` with symbolic sizes. torch takes plain numbers, which
    fix the axis.

    Returns the positions of the ones in a triangular matrix, which come in the same order: row by row.
    """

    title = "indices of a triangle are those of the ones in a triangular matrix"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        stack.enter_context(
            InPlaceOf({torch.triu_indices: _indices(torch.triu), torch.tril_indices: _indices(torch.tril)})
        )
        return False


def _indices(triangle: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    def found(row: Any, col: Any, offset: Any = 0, *, dtype: Any = None, device: Any = None, layout: Any = None) -> Any:
        """Returns an int64 tensor [2, number of elements], as torch's function does, or NotImplemented for plain
        numbers."""
        if not any(isinstance(size, torch.SymInt) for size in (row, col, offset)):
            return NotImplemented
        ones = triangle(torch.ones(row, col, device=device), offset)
        return torch.nonzero(ones).t().to(dtype or torch.int64)

    return found


_OPT_EINSUM = "opt_einsum.parser"
_SHAPE_FUNCTION = "get_shape"


class ContractionPaths(Rewrite):
    """Traces `opt_einsum.contract` with symbolic sizes. It chooses the order of its products by plain numbers.

    Here it chooses by the example's sizes. Every order gives the same sums.
    """

    title = "opt_einsum chooses its order by the example's sizes"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        home = sys.modules.get(_OPT_EINSUM)
        usual = getattr(home, _SHAPE_FUNCTION, None)
        if home is None or usual is None:
            return False

        def shape(x: Any) -> Any:
            if isinstance(x, torch.Tensor):
                return tuple(map(example, x.shape))
            return usual(x)

        stack.enter_context(replaced(home, _SHAPE_FUNCTION, shape))
        return False


class Lengths(Rewrite):
    """Makes `len(tensor)` return a symbolic size. Python requires a plain int from `__len__`, which would fix the axis.

    In the files that define the module's classes, `len(tensor)` returns `tensor.shape[0]`. For other objects `len` is
    unchanged. A file that defines its own `len` keeps it.
    """

    title = "len(tensor) is tensor.shape[0]"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        for home in _homes(module):
            if "len" not in vars(home):
                stack.enter_context(replaced(home, "len", _length, create=True))
        return False


def _homes(module: torch.nn.Module) -> set[ModuleType]:
    """Returns the Python modules that define the module's classes and their base classes, without torch's."""
    kinds = {kind for part in module.modules() for kind in type(part).__mro__}
    names = {kind.__module__ for kind in kinds} - {"builtins"}
    return {sys.modules[name] for name in names if name in sys.modules and name.partition(".")[0] != "torch"}


def _length(found: Any, /) -> Any:
    return found.shape[0] if isinstance(found, torch.Tensor) and found.dim() else len(found)
