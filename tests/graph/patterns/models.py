"""Models for the tests of patterns, in ONNX text."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.patterns.pattern_search import find


def model(
    body: str, *, opset: int = 20, inputs: str = "float[N] x", outputs: str = "float[N] y", held: str = ""
) -> ir.Model:
    """A model with these statements; `held` are its initializers."""
    weights = f"<{held}> " if held else ""
    domains = ', "custom": 1, "com.microsoft": 1, "local": 1'
    return from_text(
        f'<ir_version: 10, opset_import: ["": {opset}{domains}]>\ng ({inputs}) => ({outputs}) {weights}{{{body}}}'
    )


def places(given: ir.Model, pattern: object, **options: bool) -> list[str]:
    """The names of the first results of all matches."""
    return [match.outputs[0].name or "" for match in find(given, pattern, **options)]  # type: ignore[arg-type]


BRANCHES = """
   y = If (b) <
      then_branch = t () => (float[N] p) { p = Mul(x, s) },
      else_branch = e () => (float[N] p) { p = Neg(x) }>
"""
