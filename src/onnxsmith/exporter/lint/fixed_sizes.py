"""Finds sizes that a trace fixes: as numbers, in comparisons, as literals, or as the length of a table."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import torch

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.parts.capture import Weight
from onnxsmith.exporter.lint._numbers_of_sizes import FOLLOW_SIZES, of_numpy, of_python, readers
from onnxsmith.exporter.lint._size_arithmetic import computed
from onnxsmith.exporter.lint._values import OTHER, Kind, Value
from onnxsmith.exporter.lint.base import Check, Code, New, Remark

_SIZES = (Kind.SIZE, Kind.SHAPE)
_TENSORS = ("tensor", "as_tensor", "LongTensor")
"""Names functions of torch that make a tensor of Python numbers."""


class SizeAsNumber(Check):
    """Finds a size that becomes a Python number: `int(x.shape[0])`, `np.arange(x.shape[0])`, `torch.tensor(x.shape)`.

    Counts only if the axis is dynamic and the trace fixes it.
    """

    nodes = (ast.Call,)

    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        assert isinstance(node, ast.Call)
        live = code.flow.live(node.func)
        home = str(getattr(live, "__module__", "") or type(live).__module__).partition(".")[0]
        given = {code.flow.kind(part) for part in (*node.args, *(word.value for word in node.keywords))}
        kind = code.flow.kind(node.args[0]) if node.args else Kind.OTHER
        new: New | None = None
        others: dict[ast.AST, New] = {}
        if home == "numpy" and given & set(_SIZES):
            new = of_numpy(node, live, code)
            others = readers(code) if isinstance(new, ast.Call) and _is_torchs(new, code) else {}
        elif any(live is one for one in (int, float, list, len)) or home == "math":
            if kind is not Kind.SIZE and (live is len or kind is not Kind.SHAPE):
                return
            if home == "math" and live.__name__ in FOLLOW_SIZES:
                return
            new = of_python(node, live, code)
        elif home != "torch" or kind not in _SIZES or getattr(live, "__name__", "") not in _TENSORS:
            return
        called = ast.unparse(node.func)
        yield Remark(
            Problem(
                "forward/size-as-number",
                "a size becomes a Python number",
                why=f"in a trace, sizes of dynamic axes are symbols; {called} replaces the symbol by the example's "
                "number",
                fix=_advice(new, called, home, code),
            ),
            node,
            swaps={} if new is None else {node: new, **others},
            freezes=True,
        )


def _is_torchs(call: ast.Call, code: Code) -> bool:
    return isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == code.torch


def _advice(new: New | None, called: str, home: str, code: Code) -> str:
    such = f", such as {ast.unparse(new.func)}" if isinstance(new, ast.Call) and _is_torchs(new, code) else ""
    doing = "compute it" if home in ("numpy", "math") else "use the size itself"
    return f"{doing} without {called}: functions of torch accept sizes{such}"


class SizeCompared(Check):
    """Finds `if x.shape[0] > 1` on a dynamic axis: the graph is valid only for sizes that take the example's side.

    The patch computes a number that both sides choose from the sizes. A branch on sizes inside the module is reported
    only if it has such a patch.
    """

    nodes = (ast.If, ast.IfExp)

    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        assert isinstance(node, ast.If | ast.IfExp)
        if code.flow.kind(node.test) is not Kind.SIZE:
            return
        new = computed(node, code)
        swaps: dict[ast.AST, New] = {} if new is None else {node: new}
        sizes: list[Value] = [code.flow.values.get(part, OTHER) for part in ast.walk(node.test)]
        axes = [value.axis for value in sizes if value.axis is not None]
        dynamic = [(name, axis) for name, axis in axes if axis in code.arguments.get(name, {})]
        if not dynamic and not swaps:
            return
        said, other = "a branch depends on sizes, which may be dynamic", ""
        if dynamic:
            name, axis = dynamic[0]
            said = f"a branch reads the size of axis {axis} of {name!r}, which is dynamic"
            other = (
                "; or, if every input leads to the same side, give an example of that side, and leave "
                f"{name}:{axis} out of --dynamic"
            )
        yield Remark(
            Problem(
                "forward/size-compared",
                said,
                why="the graph has only the example's side, and is valid only for sizes that lead to this side",
                fix=f"write both sides as one computation{other}",
            ),
            node.test,
            weight=Weight.NOTE,
            swaps=swaps,
            freezes=not dynamic,
        )


_TAKE_SIZES = frozenset(
    [
        "view",
        "reshape",
        "expand",
        "zeros",
        "ones",
        "rand",
        "randn",
        "full",
        "empty",
        "repeat",
        "broadcast_to",
        "unflatten",
    ]
)


class LiteralSize(Check):
    """Finds a number in a shape that equals the example's size of a dynamic axis: `x.view(4, -1)`, `torch.zeros(1, 4,
    8)`.

    Counts only if the trace fixed an axis.
    """

    nodes = (ast.Constant,)

    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        assert isinstance(node, ast.Constant)
        if type(node.value) is not int or node.value < 2 or not self._gives_a_size(node, code):
            return
        axes = [(name, a) for name, sizes in code.arguments.items() for a, size in sizes.items() if size == node.value]
        if not axes:
            return
        name, axis = axes[0]
        owners = " and ".join(f"axis {axis} of {name!r}" for name, axis in axes)
        sizes = " or ".join(f"{name}.shape[{axis}]" for name, axis in axes)
        size = ast.Subscript(ast.Attribute(ast.Name(name), "shape"), ast.Constant(axis))
        yield Remark(
            Problem(
                "forward/literal-size",
                f"the number {node.value} is the example's size of {owners}",
                why="a shape with this number fits only that size",
                fix=f"take the size from the input: {sizes}",
            ),
            node,
            swaps={node: size},
            same=False,
            freezes=True,
            anywhere=True,
            axes=axes,
        )

    def _gives_a_size(self, node: ast.Constant, code: Code) -> bool:
        for above in code.up(node):
            if isinstance(above, ast.Call):
                name = above.func.attr if isinstance(above.func, ast.Attribute) else ""
                return name in _TAKE_SIZES
            if not isinstance(above, ast.Tuple | ast.List):
                return False
        return False


class TableLength(Check):
    """Finds `x + self.table` where the table, a parameter or buffer, fits only the example's size of a dynamic axis."""

    nodes = (ast.BinOp,)

    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        assert isinstance(node, ast.BinOp)
        for table, other in ((node.left, node.right), (node.right, node.left)):
            live = code.flow.live(table)
            if not isinstance(live, torch.Tensor) or code.flow.kind(other) is not Kind.TENSOR:
                continue
            for name, sizes in code.arguments.items():
                for axis, size in sizes.items():
                    places = [d for d in range(live.dim()) if live.shape[d] == size]
                    if size > 1 and places and isinstance(other, ast.Name):
                        yield self._remark(node, table, other, name, axis, places[0] - live.dim(), size)
                        return

    def _remark(
        self, node: ast.BinOp, table: ast.expr, other: ast.Name, name: str, axis: int, place: int, size: int
    ) -> Remark:
        text = ast.unparse(table)
        length = ast.Subscript(ast.Attribute(ast.Name(other.id), "shape"), ast.Constant(place))
        cut = ast.Slice(None, length, None)
        rest: list[ast.expr] = [ast.Slice(None, None, None)] * (-place - 1)
        index: ast.expr = ast.Tuple([ast.Constant(...), cut, *rest]) if place else cut
        return Remark(
            Problem(
                "forward/table-length",
                f"{text} has the example's length: {size}, axis {axis} of {name!r}",
                why="the table fits only that size, so the axis becomes fixed",
                fix="make the table as long as the longest input, and slice it: "
                f"{ast.unparse(ast.Subscript(table, index))}",
            ),
            node,
            swaps={table: ast.Subscript(table, index)},
            freezes=True,
            axes=[(name, axis)],
        )
