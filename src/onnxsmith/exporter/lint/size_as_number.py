"""`int(x.shape[0])`, `np.prod(x.shape)`, `torch.tensor(x.shape)`: a size that becomes a Python number."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.lint._values import Kind
from onnxsmith.exporter.lint.base import Check, Code, New, Remark

_SIZES = (Kind.SIZE, Kind.SHAPE)


class SizeAsNumber(Check):
    """Counts only if the axis is dynamic and the trace fixes it."""

    nodes = (ast.Call,)

    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        assert isinstance(node, ast.Call)
        if not node.args or code.flow.kind(node.args[0]) not in _SIZES:
            return
        new: New | None = None
        live = code.flow.live(node.func)
        home = str(getattr(live, "__module__", "") or type(live).__module__).partition(".")[0]
        if live is int:
            new = _whole(node.args[0], code)
        elif home == "numpy" and code.torch:
            name = getattr(live, "__name__", "")
            math = {"prod": "prod", "sqrt": "sqrt"}.get(name)
            new = ast.Call(ast.Attribute(ast.Name("math"), math), node.args, []) if math else None
            if "math" not in code.flow.scope:
                new = None
            match node.args[0]:
                case ast.Attribute(value=tensor, attr="shape") if name == "prod":
                    new = ast.Call(ast.Attribute(tensor, "numel"), [], [])
        elif not (home == "torch" and getattr(live, "__name__", "") in ("tensor", "as_tensor", "LongTensor")):
            return
        yield Remark(
            Problem(
                "forward/size-as-number",
                "a size becomes a Python number",
                why="in a trace, sizes of dynamic axes are symbols; the conversion gives the example's number",
                fix="use the size without a conversion: x.shape[0] without int(), math.prod instead of numpy.prod",
            ),
            node,
            swaps={} if new is None else {node: new},
            freezes=True,
        )


def _whole(size: ast.expr, code: Code) -> ast.expr:
    """The size without a conversion; what is computed from sizes may be a fraction, which int cuts off."""
    is_direct = isinstance(size, ast.Subscript | ast.Attribute | ast.Name | ast.Constant)
    is_size_of = isinstance(size, ast.Call) and isinstance(size.func, ast.Attribute) and size.func.attr == "size"
    if is_direct or is_size_of or not code.torch:
        return size
    return ast.Call(ast.Attribute(ast.Name(code.torch), "sym_int"), [size], [])
