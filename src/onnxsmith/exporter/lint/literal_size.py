"""`x.view(4, -1)` and `torch.zeros(1, 4, 8)`: the example's size of an axis is a number in the code."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.lint.base import Check, Code, Remark

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
    """A number that equals the example's size of a dynamic axis; reported only if the trace fixed an axis."""

    nodes = (ast.Constant,)

    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        assert isinstance(node, ast.Constant)
        if type(node.value) is not int or node.value < 2 or not self._gives_a_size(node, code):
            return
        axes = [(name, a) for name, sizes in code.arguments.items() for a, size in sizes.items() if size == node.value]
        if not axes:
            return
        name, axis = axes[0]
        size = ast.Subscript(ast.Attribute(ast.Name(name), "shape"), ast.Constant(axis))
        yield Remark(
            Problem(
                "forward/literal-size",
                f"the number {node.value} is the example's size of axis {axis} of {name!r}",
                why="a shape with this number fits that one size only",
                fix=f"take the size from the input: {name}.shape[{axis}]",
            ),
            node,
            swaps={node: size},
            same=False,
            freezes=True,
            anywhere=True,
        )

    def _gives_a_size(self, node: ast.Constant, code: Code) -> bool:
        for above in code.up(node):
            if isinstance(above, ast.Call):
                name = above.func.attr if isinstance(above.func, ast.Attribute) else ""
                return name in _TAKE_SIZES
            if not isinstance(above, ast.Tuple | ast.List):
                return False
        return False
