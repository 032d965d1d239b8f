"""`postprocess`: puts the processing of answers behind a model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import several
from onnxsmith.editor.edited_model import Work
from onnxsmith.editor.graph_cleanup import remove_unread
from onnxsmith.editor.node_placement import operators, port
from onnxsmith.editor.processing import answer_nodes, marks
from onnxsmith.editor.processing.answer_check import AnswerCheck
from onnxsmith.editor.processing.answer_rules import METHODS, AnswerRules
from onnxsmith.editor.processing.opset_refusal import refuse_old_opset
from onnxsmith.editor.processing.picture_input import symbol
from onnxsmith.editor.steps.base import Step
from onnxsmith.graph.operators import dtypes
from onnxsmith.graph.structure import tensor_paths

_LABELS = "labels"
"""The key of the model's metadata that names the classes."""
_FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.DOUBLE)
_PROBABILITIES = ("Softmax", "Sigmoid")
_FIRST_OPSET = 13
"""The first opset whose Softmax works along one axis. NonMaxSuppression with these operands is older."""


@dataclass(frozen=True)
class Postprocess(Step):
    """Puts the processing of the graph output `output` (by default the only output) behind the model. `method` is
    "argmax" (the index of the best class), "softmax" (probabilities), "top-k" (the `top` best probabilities and their
    indices; with `softmax` false the best scores), all along `axis`, or "nms". "nms" takes `output`, the boxes [batch,
    boxes, 4], and `scores`, [batch, classes, boxes], or [batch, boxes, classes] with `classes_axis` 2. It gives the
    boxes that stay, their scores, their classes, and their pictures in the batch: for each class at most `most` boxes
    with a score above `least_score`, which overlap by at most `overlap`. `centred` boxes are [x, y, width, height].
    The new outputs, called `names`, replace the old ones, unless `keep` is true. `labels`, the names of the classes,
    become metadata of the model."""

    first = ("output", "method")

    output: Any = None
    method: str = "top-k"
    axis: int = -1
    top: int = 5
    softmax: bool = True
    scores: Any = None
    overlap: float | int = 0.5
    least_score: float | int = 0.0
    most: int = 100
    centred: bool = False
    classes_axis: int = 1
    names: list[str] | tuple[str, ...] = ()
    labels: list[Any] | tuple[Any, ...] = ()
    keep: bool = False

    def apply(self, work: Work) -> str:
        rules = self._rules()
        refuse_old_opset(work.model, _FIRST_OPSET, "Softmax computes over several axes")
        values = self._outputs(work)
        self._check(work, values, rules)
        names = self._names(work, values)
        outputs = work.model.graph.outputs
        restores = {
            "outputs": [marks.port(value, list(outputs).index(value)) for value in values],
            "results": names, "kept": self.keep, "labels": self._label(work, values, rules),
        }  # fmt: skip
        key = f"{marks.AFTER} {values[0].name}"
        make = operators(work, work.model.graph, None, values[0].name or "", values)
        with make.scope(key.replace(" ", "_")):
            made = answer_nodes.process(make, values, rules)
        rows = symbol(work.model, "detections") if rules.method == "nms" else ""
        for value, name in zip(made, names, strict=True):
            value.name = name
            if rows:
                value.shape = ir.Shape([rows, *([4] if value is made[0] else [])])
        end = made[0].producer()
        assert end is not None
        olds = self._take_place(work, values, made)
        marks.mark(remove_unread(make.made, end), end, key, restores)
        for value in made:
            work.declare(value)
        work.processing.add(key)
        work.allow_constants()
        sources = [value.name or "" for value in values]
        work.adapt_candidate.append(lambda model: marks.cut(model, key, _now(work, olds, sources)))
        work.also.append(AnswerCheck(work, key, rules, tuple(sources)))
        return f"{', '.join(sources)} → {', '.join(f'{one.name} {dtypes.shown(one.dtype)}{one.shape}' for one in made)}"

    def _rules(self) -> AnswerRules:
        limits = [("top", self.top), ("most", self.most)]
        wrong = [f"{name} cannot be {number}" for name, number in limits if number < 1]
        wrong += [f"overlap cannot be {self.overlap}"] if not 0 <= self.overlap <= 1 else []
        wrong += [f"classes_axis cannot be {self.classes_axis}"] if self.classes_axis not in (1, 2) else []
        if self.method not in METHODS:
            raise _argument(f"there is no method {self.method!r}", f"the methods are {', '.join(METHODS)}",
                            'method = "top-k"')  # fmt: skip
        if wrong:
            raise _argument(wrong[0], "counts are at least 1, overlap is from 0 to 1, classes_axis is 1 or 2",
                            f"{wrong[0].split()[0]} = 1")  # fmt: skip
        if (self.method == "nms") != (self.scores is not None):
            what = "nms needs the output with the scores" if self.method == "nms" else "only nms has two outputs"
            raise _argument(what, "its boxes are `output`, and their scores are `scores`",
                            'output = "boxes", scores = "scores", method = "nms"')  # fmt: skip
        return AnswerRules(
            self.method, self.axis, self.top, self.softmax, float(self.overlap), float(self.least_score), self.most,
            self.centred, self.classes_axis,
        )  # fmt: skip

    def _outputs(self, work: Work) -> list[ir.Value]:
        outputs = list(work.model.graph.outputs)
        if self.output is None and len(outputs) > 1:
            names = ", ".join(value.name or "" for value in outputs)
            raise problem(
                "edit/not-scores",
                f"the model has {len(outputs)} outputs, and the step names none",
                where=names,
                why="without `output`, the step takes the only output",
                fix=f'write output = "{outputs[0].name}"',
            )
        found = [port(outputs, outputs[0] if self.output is None else self.output)]
        return found if self.scores is None else [*found, port(outputs, self.scores)]

    def _check(self, work: Work, values: Sequence[ir.Value], rules: AnswerRules) -> None:
        """Refuses outputs that the method cannot take.

        Raises:
            OnnxsmithError: `edit/not-scores`, `edit/old-opset`.
        """
        for value in values:
            if value.dtype not in _FLOATS or value.shape is None:
                shown = "its shape is not known" if value.shape is None else f"it is of {dtypes.shown(value.dtype)}"
                raise _refusal(value, "holds no scores", f"{shown}; scores are floats of a known rank")
        for one in marks.found(work.model):
            if not one.is_before and any(value.producer() in one.nodes for value in values):
                raise _refusal(values[0], "is processed already", f"{one.name!r} computes it",
                               'take it out first, with a step do = "remove-processing"')  # fmt: skip
        shape = values[0].shape
        assert shape is not None
        if rules.method == "nms":
            self._check_boxes(values)
        elif not -len(shape) <= rules.axis < len(shape):
            raise _refusal(values[0], f"has no axis {rules.axis}", f"it has {several(len(shape), 'axis', 'axes')}",
                           "write axis = -1" if len(shape) else "")  # fmt: skip
        elif rules.gives_probabilities and (last := values[0].producer()) and last.op_type in _PROBABILITIES:
            raise _refusal(values[0], "holds probabilities already", f"a {last.op_type} computes it",
                           'write method = "top-k", softmax = false')  # fmt: skip

    def _check_boxes(self, values: Sequence[ir.Value]) -> None:
        boxes, scores = (list(value.shape or ()) for value in values)
        if values[0] is values[1]:
            raise _refusal(values[1], "is the output of the boxes, too", "boxes and scores are two outputs")
        if len(boxes) != 3 or (isinstance(boxes[2], int) and boxes[2] != 4):
            raise _refusal(values[0], "holds no boxes", "boxes are [batch, boxes, 4]")
        if len(scores) != 3:
            raise _refusal(values[1], "holds no scores of boxes", "scores are [batch, classes, boxes]")
        counts = boxes[1], scores[3 - self.classes_axis]
        if all(isinstance(one, int) for one in counts) and counts[0] != counts[1]:
            other = 3 - self.classes_axis
            raise _refusal(values[1], f"has scores of {counts[1]} boxes, and there are {counts[0]}",
                           f"the classes are on axis {self.classes_axis}", f"write classes_axis = {other}")  # fmt: skip

    def _names(self, work: Work, values: Sequence[ir.Value]) -> list[str]:
        first = values[0].name
        wished = {
            "argmax": [f"{first}_argmax"],
            "softmax": [f"{first}_softmax"],
            "top-k": [f"{first}_values", f"{first}_indices"],
            "nms": ["selected_boxes", "selected_scores", "selected_classes", "selected_pictures"],
        }[self.method]
        if not self.names:
            return [work.names.free(name) for name in wished]
        if len(self.names) != len(wished) or len(set(self.names)) != len(wished):
            raise _argument(f"{self.method} has {several(len(wished), 'output')}, and names has {len(self.names)}",
                            "each new output needs its own name", f"names = {json.dumps(wished)}")  # fmt: skip
        taken = {place.value.name for place in tensor_paths.places(work.model)}
        for name in self.names:
            if name in taken or not name:
                raise problem(
                    "edit/name-taken",
                    f"the new output cannot be called {name!r}",
                    why="another tensor has this name" if name else "the name is empty",
                    fix=f"choose a name that is free, such as {work.names.free(name or 'output')}",
                )
        return list(self.names)

    def _label(self, work: Work, values: Sequence[ir.Value], rules: AnswerRules) -> list[str]:
        """Writes the labels into the metadata; returns the keys that it wrote."""
        if not self.labels:
            return []
        wrong = next((one for one in self.labels if not isinstance(one, str)), None)
        if wrong is not None:
            raise _argument(f"the label {wrong!r} is not a text", "metadata holds texts only",
                            f"labels = {json.dumps([str(one) for one in self.labels[:3]])}, and so on")  # fmt: skip
        shape = values[-1].shape or ()
        classes = shape[rules.classes_axis if rules.method == "nms" else rules.axis]
        if isinstance(classes, int) and classes != len(self.labels):
            raise _refusal(values[-1], f"has {classes} classes, and there are {len(self.labels)} labels",
                           "each class has a label", "give one label for each class, in their order")  # fmt: skip
        if _LABELS in work.model.metadata_props:
            raise _argument("the model has metadata `labels` already", "the step would replace them",
                            'a step before this one: do = "metadata", remove = "labels"')  # fmt: skip
        work.model.metadata_props[_LABELS] = json.dumps(list(self.labels), ensure_ascii=False)
        return [_LABELS]

    def _take_place(self, work: Work, values: Sequence[ir.Value], made: Sequence[ir.Value]) -> list[str | None]:
        """Makes the answers outputs. Returns the original names of the outputs that they replace."""
        outputs = work.model.graph.outputs
        olds: list[str | None] = []
        at = len(outputs)
        if not self.keep:
            at = min(list(outputs).index(value) for value in values)
            rest = [value for value in outputs if value not in values]
            olds = [work.outputs.pop(value.name or "", None) for value in values]
            outputs.clear()
            outputs.extend(rest)
        for place, value in enumerate(made):
            outputs.insert(at + place, value)
            work.outputs[value.name or ""] = olds[place] if place < len(olds) else None
        return olds


def _now(work: Work, olds: Sequence[str | None], sources: Sequence[str]) -> dict[str, str]:
    """Maps the present names of the answers, in the place of which the comparison puts an old output, to its tensor."""
    by_old = {old: source for old, source in zip(olds, sources, strict=False) if old is not None}
    return {name: by_old[old] for name, old in work.outputs.items() if old in by_old}


def _refusal(value: ir.Value, what: str, why: str, fix: str = "") -> OnnxsmithError:
    return problem(
        "edit/not-scores",
        f"the output {value.name!r} {what}",
        where=f"{value.name}: {dtypes.shown(value.dtype)}{value.shape or ''}",
        why=why,
        fix=fix or "choose another output; `onnxsmith inspect MODEL` shows the outputs",
    )


def _argument(what: str, why: str, fix: str) -> OnnxsmithError:
    return problem("edit/step-argument", what, why=why, fix=f"write {fix}")
