"""Helpers that run one rule on ONNX text and check that the numbers stay."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from onnxsmith.base.settings import Verify
from onnxsmith.graph.files.text import from_text
from onnxsmith.optimizer.simplification_rounds import simplified
from onnxsmith.verification.sessions import verify_models


def head(opset: int) -> str:
    """A text's first line."""
    return f'<ir_version: {8 if opset < 20 else 10}, opset_import: ["": {opset}]>\n'


def assert_refused(
    rule: str, reason: str, text: str, opset: int = 17, runtime: str = "reference", target: str = ""
) -> None:
    """The rule does not fire and gives this reason; the numbers stay whatever else fires."""
    model = from_text(head(opset) + text)
    result, part = simplified(model, target=target)
    assert not [entry for entry in part.fired if entry.rule == rule]
    assert any(entry.rule == rule and reason in entry.why_not for entry in part.refused), part.refused
    assert not verify_models(model, result, Verify(runtime=runtime)).differs


def assert_left_alone(
    rule: str,
    text: str,
    opset: int = 17,
    runtime: str = "reference",
    target: str = "",
    known: Mapping[str, int] | None = None,
) -> None:
    """The rule does not fire; the numbers stay whatever else fires, at all sizes, or those that are `known`."""
    model = from_text(head(opset) + text)
    result, part = simplified(model, target=target)
    assert not [entry for entry in part.fired if entry.rule == rule]
    assert not verify_models(model, result, Verify(runtime=runtime, sizes=known)).differs


def assert_rewritten(
    rule: str,
    ops: str,
    text: str,
    opset: int = 17,
    runtime: str = "reference",
    known: Mapping[str, int] | None = None,
    target: str = "",
) -> ir.Model:
    """With every rule there is: this one fires, these operators are left, the numbers stay at all sizes, or those that
    are `known`, a second run is still."""
    model = from_text(head(opset) + text)
    result, part = simplified(model, target=target)
    assert [entry for entry in part.fired if entry.rule == rule], part.refused
    assert [node.op_type for node in result.graph] == ops.split()
    assert verify_models(model, result, Verify(runtime=runtime, sizes=known)).equal
    again, still = simplified(result, target=target)
    assert not [entry for entry in still.fired if not entry.rule.startswith("pass")]
    assert len(again.graph) == len(result.graph)
    return result
