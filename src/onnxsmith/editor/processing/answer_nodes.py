"""Writes the processing of outputs with operators of the standard."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from onnxsmith.editor.processing.answer_rules import AnswerRules
from onnxsmith.graph.operators.operator_methods import Operators
from onnxsmith.graph.operators.tensor import Tensor


def process(g: Operators, values: Sequence[ir.Value], rules: AnswerRules) -> list[ir.Value]:
    """Makes the nodes that compute the answers from outputs of the model, and returns the answers. Scores of float16
    and bfloat16 are computed in float32."""
    wide = ir.DataType.DOUBLE if values[0].dtype == ir.DataType.DOUBLE and rules.method != "nms" else ir.DataType.FLOAT
    tensors = [g.tensor(value) if value.dtype == wide else g.Cast(value, to=wide) for value in values]
    made = _detections(g, tensors[0], tensors[1], rules) if rules.method == "nms" else _classes(g, tensors[0], rules)
    return [one.value for one in made]


def _classes(g: Operators, scores: Tensor, rules: AnswerRules) -> list[Tensor]:
    if rules.method == "argmax":
        return [g.ArgMax(scores, axis=rules.axis, keepdims=0)]
    values = g.Softmax(scores, axis=rules.axis) if rules.gives_probabilities else scores
    if rules.method == "softmax":
        return [values]
    size = g.Gather(g.Shape(scores), g.constant(np.array([rules.axis])), axis=0)
    known = scores.shape[rules.axis] if scores.shape is not None else None
    top = g.constant(np.array([min(rules.top, known)])) if isinstance(known, int) else None
    count = top if top is not None else g.Min(g.constant(np.array([rules.top])), size)
    best, places = g.TopK(scores, count, axis=rules.axis)  # of the scores: two probabilities may round to the same
    return [g.GatherElements(values, places, axis=rules.axis) if rules.softmax else best, places]


def _detections(g: Operators, boxes: Tensor, scores: Tensor, rules: AnswerRules) -> list[Tensor]:
    by_class = scores if rules.classes_axis == 1 else g.Transpose(scores, perm=[0, 2, 1])
    limits = [g.constant(np.array([one], np.float32)) for one in (rules.overlap, rules.least_score)]
    most = g.constant(np.array([rules.most]))
    chosen = g.NonMaxSuppression(boxes, by_class, most, *limits, center_point_box=int(rules.centred))
    pictures, kinds = (g.Gather(chosen, g.constant(np.array(column)), axis=1) for column in (0, 1))
    place = g.Gather(chosen, g.constant(np.array([0, 2])), axis=1)
    return [g.GatherND(boxes, place), g.GatherND(by_class, chosen), kinds, pictures]
