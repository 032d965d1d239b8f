"""`.cuda()`, `.to("cuda")`, `device="cuda"`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.lint._values import Kind
from onnxsmith.exporter.lint.base import Check, Code, New, Remark

_DEVICES = ("cuda", "mps", "xpu", "hpu")


class HardDevice(Check):
    """A device that forward names, instead of using its input's device."""

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
                why="a graph has no devices, the runtime chooses one; and the module does not run without this device",
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
