"""Infers types and shapes of operators of ai.onnx.ml for which the engine has no rules: classifiers, scalers,
encoders."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onnxsmith.graph.shapes import standard_inference
from onnxsmith.graph.structure import schema

DOMAIN = "ai.onnx.ml"
_SAME_SHAPE = frozenset({"Imputer", "Normalizer", "Scaler"})
"""Lists operators whose result has the shape of the operand (ai.onnx.ml, "Maps each element" in their descriptions)."""


def infer(context: Any, node: ir.Node) -> None:
    """Sets the result of onnx's inference. If that is unknown, sets the only possible dtype, and the shape that follows
    from the operand's."""
    version = context.get_opset_version(DOMAIN)
    try:
        for value, found in standard_inference.infer(node, version).items():
            standard_inference.adopt(value, found)
    except standard_inference.RefusedError:
        return
    known = schema.find(node.op_type, DOMAIN, version)
    for index, value in enumerate(node.outputs):
        formal = known.output(index) if known is not None else None
        if value.type is None and formal is not None and formal.types == {"tensor(float)"}:
            value.type = ir.TensorType(ir.DataType.FLOAT)
    operand = node.inputs[0] if node.inputs else None
    if operand is not None and operand.shape is not None:
        _shape(node, operand.shape)


def _shape(node: ir.Node, given: ir.Shape) -> None:
    """Sets the shapes that follow from the operand's, where they are unknown."""
    if node.op_type in _SAME_SHAPE:
        node.outputs[0].shape = node.outputs[0].shape or given
    columns = _columns(node) if len(given) == 2 and node.op_type in _COLUMNS else None
    if columns is None:
        return
    *labels, scores = (value for value in node.outputs if value is not None)
    scores.shape = scores.shape or ir.Shape([given[0], columns])
    for value in labels:
        value.shape = value.shape or ir.Shape([given[0]])


_COLUMNS: dict[str, tuple[str, ...]] = {
    "FeatureVectorizer": ("inputdimensions",),
    "LinearRegressor": ("targets",),
    "TreeEnsembleClassifier": ("classlabels_int64s", "classlabels_strings"),
    "TreeEnsembleRegressor": ("n_targets",),
}
"""Lists operators whose result has a number of columns given by an attribute (ai.onnx.ml: "number of targets", "the
class labels", "the size of each input"). The first result of classifiers is a vector of labels."""


def _columns(node: ir.Node) -> int | None:
    """Returns the number of columns of the result; None if it is unknown. A single label has rules of its own, so it
    counts as unknown."""
    found = next((node.attributes[name] for name in _COLUMNS[node.op_type] if name in node.attributes), None)
    if node.op_type == "LinearRegressor" and found is None:
        return 1  # the attribute's default
    if found is None or found.is_ref():
        return None
    if found.type is ir.AttributeType.INT:
        return found.as_int()
    if node.op_type == "FeatureVectorizer":
        return sum(found.as_ints())
    labels = len(found.value)
    return labels if labels > 1 else None


def versions() -> dict[str, tuple[int, ...]]:
    """Returns the operators of the domain, with the versions at which they changed."""
    return {name: schema.versions(name, DOMAIN) for name in schema.every_name(DOMAIN)}
