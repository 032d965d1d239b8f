"""Computes fractions of sizes in float64, as Python does.

PyTorch's exporter computes fractions such as `math.floor(24 / n * n)` of a size n in float32. Rounding moves some of
them across a whole number, so that a shape is wrong by one at a few sizes. Here each fraction becomes a float64 tensor
of rank 0, which is cast for operators that also take tensors. Rounded quotients of sizes stay integers.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from onnxsmith.base.seams.torch.logarithms import LOG2
from onnxsmith.base.seams.torch.operators import OpOverload
from onnxsmith.base.seams.torch.tensors import mode_of
from onnxsmith.exporter.translating.program_numbers import is_least, value_of

_ATEN = torch.ops.aten
_ARITHMETIC: Mapping[Any, Any] = {
    operator.add: _ATEN.add.Tensor,
    operator.sub: _ATEN.sub.Tensor,
    operator.mul: _ATEN.mul.Tensor,
    operator.truediv: _ATEN.div.Tensor,
    operator.pow: _ATEN.pow.Tensor_Tensor,
    operator.mod: _ATEN.remainder.Tensor,
    operator.neg: _ATEN.neg.default,
    operator.abs: _ATEN.abs.default,
    torch.sym_max: _ATEN.maximum.default,
    torch.sym_min: _ATEN.minimum.default,
    torch.sym_sqrt: _ATEN.sqrt.default,
}
_ROUNDED: Mapping[Any, Any] = {
    math.floor: _ATEN.floor.default,
    math.ceil: _ATEN.ceil.default,
    math.trunc: None,  # a cast cuts off
    torch.sym_int: None,
    builtins.round: _ATEN.round.default,
}
_COMPARED: Mapping[Any, Any] = {
    operator.lt: _ATEN.lt.Tensor,
    operator.le: _ATEN.le.Tensor,
    operator.gt: _ATEN.gt.Tensor,
    operator.ge: _ATEN.ge.Tensor,
    operator.eq: _ATEN.eq.Tensor,
    operator.ne: _ATEN.ne.Tensor,
}
_OF_NUMBERS = (_ATEN.scalar_tensor.default, _ATEN.full.default)
"""Names operators that cast a number to the dtype among their arguments."""
_SPACED = (_ATEN.arange.default, _ATEN.arange.start, _ATEN.arange.start_step)


def exact_fractions(module: torch.fx.GraphModule) -> None:
    """Rewrites every number of the graph that is no integer, and the nodes that read it."""
    for part in module.modules():
        if isinstance(part, torch.fx.GraphModule):
            mode = mode_of(node.meta.get("val") for node in part.graph.nodes)
            if mode is not None:
                _Numbers(part.graph, mode).rewrite()
                part.recompile()


class _Numbers:
    """The fractions of one graph. `made` are nodes whose value is a float64 tensor of rank 0 in place of a number.
    `logs` maps each logarithm to base 2 to the natural logarithm and its argument."""

    def __init__(self, graph: torch.fx.Graph, mode: Any) -> None:
        self.graph, self.mode = graph, mode
        self.made: set[torch.fx.Node] = set()
        self.logs: dict[torch.fx.Node, tuple[torch.fx.Node, torch.fx.Node]] = {}
        self.cast: dict[tuple[torch.fx.Node, torch.dtype], torch.fx.Node] = {}

    def rewrite(self) -> None:
        for node in list(self.graph.nodes):
            if node.op not in ("call_function", "output"):
                continue
            with self.graph.inserting_before(node):
                found = None if isinstance(node.target, OpOverload) else self._number(node)
                if isinstance(node.target, OpOverload) and node.target in _SPACED:
                    found = self._spaced(node)
                if found is None:
                    self._given(node)
                    continue
            node.replace_all_uses_with(found)
            self.graph.erase_node(node)

    def _number(self, node: torch.fx.Node) -> torch.fx.Node | None:
        """Returns the node that computes this number in float64; None if the number stays unchanged."""
        target, args = node.target, [one for one in node.args if one is not None]
        value = node.meta.get("val")
        if target in _ROUNDED and len(args) == 1:
            return self._whole(target, args[0], value) if self._is_fraction(args[0]) else None
        if target in _COMPARED:
            return self._call(_COMPARED[target], args, value) if any(map(self._is_fraction, args)) else None
        if not isinstance(value, torch.SymFloat):
            return None
        if target is torch.sym_float:
            return self._exact(args[0])
        if target is torch.sym_ite:
            return self._call(_ATEN.where.self, args[1:], None, before=args[:1])
        if target is LOG2:
            x = self._exact(args[0])
            return self._exact_log(self._call(_ATEN.log.default, [x], None), x, 2.0)
        if target is operator.mul and (found := self._other_log(args)) is not None:
            return found
        return self._call(_ARITHMETIC[target], args, None) if target in _ARITHMETIC else None

    def _whole(self, target: Any, x: Any, value: Any) -> torch.fx.Node:
        """Rounds the fraction to an integer; a quotient of sizes is rounded without a fraction."""
        if x in self.made and x.target is _ATEN.div.Tensor and target is not builtins.round:
            a, b = (one.args[0] if _is_cast_size(one) else None for one in x.args)
            if is_least(a, 0) and is_least(b, 1):
                if target is math.ceil:
                    a = self._sizes(operator.sub, self._sizes(operator.add, a, b), 1)
                return self._sizes(operator.floordiv, a, b)
        rounded = self._call(_ROUNDED[target], [x], None) if _ROUNDED[target] else x
        return self._call(_ATEN._to_copy.default, [rounded], value, dtype=torch.int64)

    def _sizes(self, target: Any, a: Any, b: Any) -> torch.fx.Node:
        made = self.graph.call_function(target, (a, b))
        made.meta["val"] = target(value_of(a), value_of(b))
        return made

    def _exact_log(self, log: torch.fx.Node, x: torch.fx.Node, base: float) -> torch.fx.Node:
        """Computes the logarithm to an integer base exactly for powers of the base, as Python does; a quotient of
        logarithms may be off."""
        quotient = self._call(_ATEN.div.Tensor, [log, math.log(base)], None)
        near = self._call(_ATEN.round.default, [quotient], None)
        is_power = self._call(_ATEN.eq.Tensor, [self._call(_ATEN.pow.Tensor_Tensor, [base, near], None), x], True)
        made = self._call(_ATEN.where.self, [near, quotient], None, before=[is_power])
        self.logs[made] = (log, x)
        return made

    def _other_log(self, args: list[Any]) -> torch.fx.Node | None:
        """Computes the natural and the decimal logarithm, which a trace writes as log2(x) · log 2."""
        for one, factor in (args, reversed(args)):
            if one in self.logs and factor == math.log(2):
                return self.logs[one][0]
            if one in self.logs and factor == math.log10(2):
                return self._exact_log(*self.logs[one], 10.0)
        return None

    def _spaced(self, node: torch.fx.Node) -> torch.fx.Node | None:
        """Writes `arange` by a fraction: start + step · i, for as many i as in PyTorch."""
        if not any(map(self._is_fraction, node.args)):
            return None
        numbers = [self._exact(one) for one in node.args]
        start = numbers[0] if len(numbers) > 1 else self._exact(0.0)
        end = numbers[min(1, len(numbers) - 1)]
        step = numbers[2] if len(numbers) > 2 else self._exact(1.0)
        value = node.meta["val"]
        length = self._call(_ATEN.div.Tensor, [self._call(_ATEN.sub.Tensor, [end, start], None), step], None)
        count = self._whole(math.ceil, length, value.shape[0])
        places = self._like(value, _ATEN.arange.default, (count,), torch.int64, dtype=torch.int64)
        places = self._like(value, _ATEN._to_copy.default, (places,), torch.float64, dtype=torch.float64)
        scaled = self._like(value, _ATEN.mul.Tensor, (places, step), torch.float64)
        moved = self._like(value, _ATEN.add.Tensor, (scaled, start), torch.float64)
        return self._like(value, _ATEN._to_copy.default, (moved,), value.dtype, dtype=value.dtype)

    def _like(self, shaped: Any, target: Any, args: tuple[Any, ...], has: torch.dtype, **kwargs: Any) -> torch.fx.Node:
        made = self.graph.call_function(target, args, kwargs)
        with self.mode:
            made.meta["val"] = torch.empty_like(shaped, dtype=has)
        return made

    def _given(self, node: torch.fx.Node) -> None:
        """Casts the fractions among an operator's arguments to the dtype in which it computes."""
        if node.target in _OF_NUMBERS or not any(one in self.made for one in node.all_input_nodes):
            return
        value = node.meta.get("val")
        tensors = [
            value_of(one) for one in node.args if isinstance(value_of(one), torch.Tensor) and one not in self.made
        ]
        floats = [one.dtype.to_real() for one in (value, *tensors) if _is_floating(one)]
        dtype = floats[0] if floats else torch.float64 if tensors else torch.float32

        def cast(one: Any) -> Any:
            return self._to(one, dtype) if one in self.made else one

        listed = [isinstance(one, list | tuple) for one in node.args]
        if any(listed) and dtype != torch.float32:  # factors of a resize are float32
            dtype = torch.float32 if node.op == "call_function" else dtype
        args = list(torch.fx.map_arg(node.args, cast))
        overload = _of_tensors(node.target)
        if overload is not None and any(one in self.made for one in node.args):
            node.target = overload
            args = [self._beside(one, dtype) for one in args]
        node.args = tuple(args)
        node.kwargs = torch.fx.map_arg(node.kwargs, cast)

    def _beside(self, one: Any, dtype: torch.dtype) -> Any:
        """Converts an operand of an operator on tensors: numbers become tensors, integers are cast."""
        if isinstance(one, int | float) and not isinstance(one, bool):
            return self._to(self._exact(one), dtype)
        value = value_of(one)
        if isinstance(value, torch.Tensor) and not _is_floating(value) and dtype == torch.float64:
            return self._like(value, _ATEN._to_copy.default, (one,), dtype, dtype=dtype)
        return one

    def _to(self, one: torch.fx.Node, dtype: torch.dtype) -> torch.fx.Node:
        if dtype == torch.float64:
            return one
        if (one, dtype) not in self.cast:
            self.cast[one, dtype] = self._call(_ATEN._to_copy.default, [one], None, as_fraction=False, dtype=dtype)
        return self.cast[one, dtype]

    def _call(
        self, target: Any, numbers: Iterable[Any], value: Any, *, before: Iterable[Any] = (), as_fraction: bool = True,
        **kwargs: Any,
    ) -> torch.fx.Node:  # fmt: skip
        """Returns a node on these numbers. `value` is the size or condition that the node computes, None for a
        fraction, True for a condition without a symbol."""
        made = self.graph.call_function(target, (*before, *map(self._exact, numbers)), kwargs)
        with self.mode:
            if value is None:
                made.meta["val"] = torch.empty((), dtype=kwargs.get("dtype", torch.float64))
            else:
                made.meta["val"] = torch.empty((), dtype=torch.bool) if value is True else value
        if value is None and as_fraction:
            self.made.add(made)
        return made

    def _exact(self, number: Any) -> torch.fx.Node:
        if number in self.made:
            return number  # type: ignore[no-any-return]
        made = self.graph.call_function(_ATEN.scalar_tensor.default, (number,), {"dtype": torch.float64})
        with self.mode:
            made.meta["val"] = torch.empty((), dtype=torch.float64)
        self.made.add(made)
        return made

    def _is_fraction(self, operand: Any) -> bool:
        return operand in self.made or isinstance(value_of(operand), torch.SymFloat)


def _is_cast_size(node: Any) -> bool:
    return node.target is _ATEN.scalar_tensor.default and not isinstance(node.args[0], float)


def _is_floating(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def _of_tensors(target: Any) -> Any:
    """Returns the overload for two tensors of an operator whose second operand is a number."""
    kind, _, overload = str(target).rpartition(".")
    if not isinstance(target, OpOverload) or overload not in ("Scalar", "Tensor_Scalar", "default"):
        return None
    packet: Any = getattr(_ATEN, kind.rpartition(".")[2])
    if overload == "default":
        return packet.Tensor if packet is _ATEN.clamp else None
    other = "Tensor_Tensor" if overload == "Tensor_Scalar" else "Tensor"
    return getattr(packet, other) if other in packet.overloads() else None
