"""Writes the page of quantization methods."""

from __future__ import annotations

import inspect

from onnxsmith.base import rooms
from onnxsmith.precision.methods.base import Method
from tools.documentation.markdown import code, escaped, from_docstring, table

_HEAD = """\
# Quantization methods

This page lists the methods of `onnxsmith quantize`, which are the values of its option `--to`.
[Quantizing](../quantizing.md) says how to use them, and [`onnxsmith quantize`](commands/quantize.md) has all options.
"""


def pages() -> dict[str, str]:
    """Returns the page by its path on the site."""
    methods = rooms.classes("onnxsmith.precision.methods", Method)
    rows = [
        (f"[`{id_}`](#{id_})", escaped(method.title), _data(method), str(method.opset))
        for id_, method in methods.items()
    ]
    parts = [_HEAD.strip(), table(("method", "result", "data", "oldest opset"), rows)]
    parts += [_method(id_, method) for id_, method in methods.items()]
    return {"reference/quantization.md": "\n\n".join(parts) + "\n"}


def _data(method: type[Method]) -> str:
    return "needed" if method.needs_ranges or method.needs_data else "not needed"


def _method(id_: str, method: type[Method]) -> str:
    extra = f"onnxsmith[{method.engine.extra}]"
    return "\n\n".join(
        (
            f"## {id_}",
            from_docstring(inspect.getdoc(method) or ""),
            f"Changes: {escaped(method.changes + method.where)}.",
            f"Computed by: {escaped(method.engine.title)}, which {code(extra)} installs.",
            *(["The result depends on the form that a target needs: give `--target`."] if method.has_forms else []),
            *([f"If every layer stays as it is: {escaped(method.instead)}."] if method.instead else []),
        )
    )
