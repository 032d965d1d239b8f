"""Compares the nodes of a postprocessing with numpy, on generated outputs of the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.settings import Verify
from onnxsmith.base.words import several
from onnxsmith.editor.edited_model import Work
from onnxsmith.editor.processing import answer_reference, marks, run_part
from onnxsmith.editor.processing.answer_rules import AnswerRules
from onnxsmith.verification.inputs.generate import Feed

_SIZES = (1, 3, 8)
"""The sizes of symbolic dimensions that are tried. A choice: one, odd and even."""
_PIXELS = 96
"""The side of the picture in which boxes are generated. A choice: small, so that many of them overlap."""


@dataclass(frozen=True)
class AnswerCheck:
    """Compares one postprocessing of an edited model, if it is still there after the last step. `values` are the
    tensors that were the outputs."""

    work: Work
    name: str
    rules: AnswerRules
    values: tuple[str, ...]

    def __call__(
        self,
        part: Verification,
        pair: tuple[Path | ir.Model, Path | ir.Model],
        settings: Verify,
        given: Sequence[Feed] = (),
    ) -> Verification:
        """Adds what was compared to the notes of the edit.

        Raises:
            OnnxsmithError: `edit/processing-differs` if an answer differs by more than rounding.
        """
        model = self.work.model
        held = next((one for one in marks.found(model) if one.name == self.name), None)
        values = {value.name: value for node in model.graph for value in node.outputs}
        values |= {value.name: value for value in model.graph.inputs}
        if held is None or part.differs or not all(name in values for name in self.values):
            return part
        starts = [values[name] for name in self.values]
        ends = [value for value in model.graph.outputs if value.producer() in held.nodes]
        inner = run_part.part(model, starts, ends)
        feeds = list(self._feeds(starts, settings.seed))
        worst = 0.0
        for feed, found in run_part.answers(inner, feeds, settings):
            expected = answer_reference.answers([feed[name] for name in self.values], self.rules)
            by_end = dict(zip([value.name for value in _results(held)], expected, strict=True))
            for value, array in zip(ends, found, strict=True):
                worst = max(worst, self._difference(value.name or "", array, by_end[value.name], feed))
        said = f"{self.name}: compared with numpy on {several(len(feeds), 'generated output')} of the model"
        exact = f"; the largest difference is {worst:.2g}" if worst else ": equal"
        self.work.notes.append(said + exact)
        return part

    def _feeds(self, starts: Sequence[ir.Value], seed: int) -> Iterator[dict[str, Any]]:
        random = np.random.default_rng(seed)
        for size in _SIZES:
            names: dict[str | None, int] = {}
            shapes = [_shape(value, size, names) for value in starts]
            if self.rules.method == "nms":
                yield dict(zip(self.values, self._boxes(random, shapes, starts), strict=True))
                continue
            dtype = starts[0].type.dtype.numpy()  # type: ignore[union-attr]
            for scale in (1.0, 20.0):
                yield {self.values[0]: (random.normal(0, scale, shapes[0])).astype(dtype)}
            yield {self.values[0]: np.round(random.normal(0, 1, shapes[0])).astype(dtype)}  # with equal scores

    def _boxes(self, random: np.random.Generator, shapes: list[Any], starts: Sequence[ir.Value]) -> Iterator[Any]:
        """Yields boxes of whole, even sizes, whose areas have no rounding error, and scores without equals."""
        batch, count, _ = shapes[0]
        middle = random.integers(_PIXELS // 4, _PIXELS, (batch, count, 2))
        half = random.integers(1, _PIXELS // 4, (batch, count, 2))
        boxes = [middle, 2 * half] if self.rules.centred else [middle - half, middle + half]
        scores = random.permutation(int(np.prod(shapes[1]))).reshape(shapes[1]) / np.prod(shapes[1])
        for array, value in zip((np.concatenate(boxes, -1), scores), starts, strict=True):
            yield array.astype(value.type.dtype.numpy())  # type: ignore[union-attr]

    def _difference(self, name: str, found: Any, expected: Any, feed: Mapping[str, Any]) -> float:
        """Returns the largest difference of an answer.

        Raises:
            OnnxsmithError: `edit/processing-differs`.
        """
        found = np.asarray(found)
        if found.shape != expected.shape:
            raise self._differs(name, f"the graph gives the shape {list(found.shape)}, not {list(expected.shape)}")
        apart = np.abs(found.astype(np.float64) - expected.astype(np.float64))
        bounds = np.zeros(apart.shape)
        if self.rules.gives_probabilities and not np.issubdtype(found.dtype, np.integer):
            scores = feed[self.values[0]].astype(np.float64)
            # Each term of the sum rounds, and so does the argument of exp, in proportion to its size.
            terms = scores.shape[self.rules.axis] + float(np.ptp(scores)) + 8
            limits = np.finfo(found.dtype)
            bounds = terms * float(limits.eps) * expected + float(limits.tiny)
        worst = float(apart.max(initial=0.0))
        if not np.all(apart <= bounds):
            most = float(bounds.max(initial=0.0))
            raise self._differs(name, f"the largest difference is {worst:.3g}, at most {most:.2g} is allowed")
        return worst

    def _differs(self, output: str, why: str) -> OnnxsmithError:
        return problem(
            "edit/processing-differs",
            f"the nodes of {self.name!r} do not give what numpy gives",
            where=output,
            why=why,
            fix="compare on onnxruntime, `--runtime onnxruntime`: another runtime may round otherwise; nothing was "
            "written",
        )


def _results(held: marks.Processing) -> list[ir.Value]:
    """Returns the answers in the order of the reference."""
    names = held.restores["results"]
    values = {value.name: value for node in held.nodes for value in node.outputs}
    return [values.get(name) or ir.Value(name=name) for name in names]


def _shape(value: ir.Value, size: int, names: dict[str | None, int]) -> tuple[int, ...]:
    """Returns a shape with sizes for the symbols. Equal names have one size."""
    found = []
    for dim in value.shape or ():
        if not isinstance(dim, int):
            dim = names.setdefault(dim.value, size + len(names)) if dim.value else size
        found.append(dim)
    return tuple(found)
