"""Finds code that turns a tensor into a constant, or moves it to a fixed device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.lint._values import Kind
from onnxsmith.exporter.lint.base import Check, Code, New, Remark

_MAKES = ("tensor", "FloatTensor", "LongTensor", "Tensor")


class CopiedTensor(Check):
    """Finds `torch.tensor(x)` of a tensor, also of tensors in a list. A trace makes the copy a constant."""

    nodes = (ast.Call,)

    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        assert isinstance(node, ast.Call)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        live = code.flow.live(node.func)
        if name not in _MAKES or getattr(live, "__name__", "") != name or not node.args:
            return
        kind = code.flow.kind(node.args[0])
        made: New | None = None
        if kind is Kind.TENSOR:
            made = ast.Call(ast.Attribute(node.args[0], "clone"), [], [])
        elif kind is Kind.MANY and code.torch:
            made = ast.Call(ast.Attribute(ast.Name(code.torch), "stack"), [node.args[0]], [])
        elif kind is not Kind.VALUE:
            return
        dtype = next((word.value for word in node.keywords if word.arg == "dtype"), None)
        if made is not None and dtype is not None:
            made = ast.Call(ast.Attribute(made, "to"), [dtype], [])  # type: ignore[arg-type]
        yield Remark(
            Problem(
                "forward/copied-tensor",
                f"torch.{name} copies the values of a tensor",
                why="the new tensor has no connection to the old tensor: a TorchScript trace keeps the example's "
                "values, and torch.export cannot follow the copy",
                fix="use the tensor itself, or its clone(); for several tensors of rank 0 use torch.stack",
            ),
            node,
            swaps={} if made is None else {node: made},
        )


class DataAttribute(Check):
    """Finds `.data`. torch.export follows it; a TorchScript trace turns it into a constant."""

    nodes = (ast.Attribute,)

    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        assert isinstance(node, ast.Attribute)
        if node.attr != "data" or code.flow.kind(node.value) is not Kind.TENSOR:
            return
        stored = isinstance(node.ctx, ast.Store)
        yield Remark(
            Problem(
                "forward/data-attribute",
                ".data hides the tensor from the trace",
                why="a TorchScript trace silently turns the values after it into constants",
                fix="use .detach(), or remove .data: an export needs no gradients",
            ),
            node,
            swaps={} if stored else {node: ast.Call(ast.Attribute(node.value, "detach"), [], [])},
        )


_DEVICES = ("cuda", "mps", "xpu", "hpu")


class HardDevice(Check):
    """Finds a device that forward names instead of its input's device: `.cuda()`, `.to("cuda")`, `device="cuda"`."""

    nodes = (ast.Call,)

    def look(self, node: ast.AST, code: Code) -> Iterator[Remark]:
        assert isinstance(node, ast.Call)
        new: New | None = None
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr="cuda" | "mps" | "xpu")):
                if code.flow.kind(value) is not Kind.TENSOR:
                    return
                new = value
            case ast.Call(func=ast.Attribute(value=value, attr="to"), args=[first]) if self._is_device(first, code):
                new = value
            case _:
                word = next((w for w in node.keywords if w.arg == "device" and self._is_device(w.value, code)), None)
                if word is None:
                    return
                argument = next(iter(code.arguments), None)
                device = ast.Attribute(ast.Name(argument), "device") if argument else None
                words = [w for w in node.keywords if w is not word]
                words += [ast.keyword("device", device)] if device is not None else []
                new = ast.Call(node.func, node.args, words)
        yield Remark(
            Problem(
                "forward/device",
                "forward names a device",
                why="a graph names no devices, because the runtime chooses the device; and the module does not run "
                "on a machine without this device",
                fix="let the caller choose the device, net.to(device), and use device=x.device for new tensors",
            ),
            node,
            swaps={node: new},
            same=False,
        )

    def _is_device(self, node: ast.expr, code: Code) -> bool:
        match node:
            case ast.Constant(value=str() as text):
                return text.partition(":")[0] in _DEVICES
            case ast.Call(func=ast.Attribute(attr="device"), args=[ast.Constant(value=str() as text), *_]):
                return text.partition(":")[0] in _DEVICES
        live = code.flow.live(node)
        return type(live).__name__ == "device" and getattr(live, "type", "cpu") in _DEVICES
