"""Compares a model with a symbolic dimension, at other sizes, with the original of fixed size, row by row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.settings import Verify
from onnxsmith.editor.dims.batch_scan import LEAST_OPSET, chunked
from onnxsmith.editor.dims.trial_sizes import Tried, ran_on, tried
from onnxsmith.editor.edited_model import Work
from onnxsmith.graph.files.load import load
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.signature import signature
from onnxsmith.graph.surgery import opset_conversion
from onnxsmith.verification.inputs.generate import Feed, Generator
from onnxsmith.verification.inputs.user_inputs import sizes
from onnxsmith.verification.sessions import verify_models

_CLOSE = 1e-4
"""Limits the change of a row, relative to its output, that counts as rounding when another row changes. A choice."""


@dataclass
class Rows:
    """Describes the rows that are compared for one symbol. `size` is the symbol's size in the original. `inputs` maps
    inputs to the symbol's axis. `outputs` maps outputs to the symbol's axis and the number of elements of each row on
    this axis. `others` are outputs that depend on the inputs and have no rows. `known` are the sizes of all symbols of
    the step in the original."""

    work: Work
    symbol: str
    size: int
    inputs: dict[str, int]
    outputs: dict[str, tuple[int, int]]
    others: list[str]
    known: Mapping[str, int]

    def compared(
        self, part: Verification, pair: tuple[Path | ir.Model, Path | ir.Model], settings: Verify
    ) -> Verification:
        """Adds the comparison at other sizes to `part`, the comparison at the original size."""
        if not part.equal:
            return part
        original, candidate = pair
        if self.symbol not in signature(load(candidate)).symbols():
            said = f"{self.symbol} is not compared at other sizes, because a later step fixed or renamed it"
            return replace(part, untried=(*part.untried, said))
        names = {port.name for port in signature(load(original)).outputs}
        inputs = {self._old(self.work.inputs, name): axis for name, axis in self.inputs.items()}
        outputs = {self._old(self.work.outputs, name): place for name, place in self.outputs.items()}
        outputs = {name: place for name, place in outputs.items() if name in names}
        without = sorted(names & {self._old(self.work.outputs, name) for name in self.others})
        found = tried(candidate, self.symbol, self.size, self.known, sizes(settings.sizes), settings.seed)
        why = self._mixed(original, candidate, inputs, outputs, found.feeds)
        if not why and outputs and not without and found.together:
            why = "the sizes of other dimensions have to change with it"
        model = load(original)
        if not why and outputs and opset_conversion.of(model) < LEAST_OPSET:
            why, without = f"the comparison needs opset {LEAST_OPSET}", []
        if why or not outputs or without:
            part = self._ran(part, found, why, without)
        elif found.refused:
            said = f"{found.restriction(f'the edited model does not run at {self.symbol} = ')}"
            part = replace(part, untried=(*part.untried, said))
        if why or not outputs:
            return part
        rows = self._verified(model, load(candidate), inputs, outputs, found.feeds, settings)
        part = replace(part, untried=(*part.untried, *self._empty(candidate, settings)))
        if not rows.equal:
            return replace(rows, notes=(*rows.notes, f"at other sizes of {self.symbol}, each row with the original's"))
        said = f"at {self.symbol} = {', '.join(str(one) for one in sorted(found.feeds))} each row is the original's"
        return replace(
            part,
            runs=(*part.runs, *(run for run in rows.runs if run not in part.runs)),
            notes=(*part.notes, f"{said}, computed {self.size} at a time"),
        )

    def _old(self, ports: Mapping[str, str | None], name: str) -> str:
        return ports.get(name) or name

    def _original_size(self, symbol: str) -> int:
        return self.known.get(symbol, 2)

    def _verified(
        self,
        original: ir.Model,
        candidate: ir.Model,
        inputs: Mapping[str, int],
        outputs: Mapping[str, tuple[int, int]],
        feeds: Mapping[int, Feed],
        settings: Verify,
    ) -> Verification:
        reference = chunked(_with_outputs(original, outputs), self.symbol, self.size, inputs, outputs)
        names = (f"the original on {self.size} rows at a time", "the edited model")
        return verify_models(
            reference,
            _with_outputs(candidate, outputs),
            settings,
            given=tuple(feeds.values()),
            generate=False,
            names=names,
        )

    def _mixed(
        self,
        original: Path | ir.Model,
        candidate: Path | ir.Model,
        inputs: Mapping[str, int],
        outputs: Mapping[str, tuple[int, int]],
        feeds: Mapping[int, Feed],
    ) -> str:
        """Returns why rows cannot be compared: an output of the original has rows that depend on each other. The test
        changes the first row and looks for changes in the other rows. With a single row the original cannot show this
        dependence. Then the edited model decides, except along axis 0."""
        # One row cannot show it in the original, and axis 0 is trusted to be a batch.
        if self.size < 2 and all(axis == 0 for axis in inputs.values()):
            return ""
        more = min((one for one in feeds if one > 1), default=0)
        if not more:
            return ""
        source, size = (original, self.size) if self.size > 1 else (candidate, more)
        values = feeds[size].values
        first, second = (ran_on(source, one) for one in (values, _first_row_changed(values, inputs)))
        for name, (axis, each) in outputs.items():
            a, b = first.get(name), second.get(name)
            if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray) or a.dtype.kind not in "fiub":
                continue
            rest = np.arange(each, a.shape[axis])
            left, right = (np.nan_to_num(one.take(rest, axis).astype(np.float64)) for one in (a, b))
            if np.abs(left - right).max(initial=0) > _CLOSE * max(np.abs(left).max(initial=0), 1e-30):
                return f"the rows of output {name} depend on each other"
        return ""

    def _ran(self, part: Verification, found: Tried, why: str, without: list[str]) -> Verification:
        """Notes the other sizes at which the edited model runs, if nothing is compared at these sizes."""
        what = why or (f"{', '.join(without)} has no axis for it" if without else "no output has an axis for it")
        said = f"{self.symbol} was compared at {self.size} only, because {what}; {found.said()}"
        return replace(part, untried=(*part.untried, said))

    def _empty(self, candidate: Path | ir.Model, settings: Verify) -> list[str]:
        """Returns a clause if the edited model does not take size 0."""
        model = load(candidate)
        others = {name: self._original_size(name) for name in signature(model).symbols() if name != self.symbol}
        generator = Generator.for_model(inferred(model)[0]).under(signature(model))
        try:
            ran_on(candidate, generator.feed({**others, self.symbol: 0}, seed=settings.seed).values)
        except OnnxsmithError:
            return [f"the edited model refuses {self.symbol} = 0"]
        return []


def _first_row_changed(values: Mapping[str, Any], inputs: Mapping[str, int]) -> dict[str, Any]:
    """Returns the values with the first row replaced by the second row."""
    changed = dict(values)
    for name, axis in inputs.items():
        array = np.array(values[name])
        front = np.moveaxis(array, axis, 0)  # a view
        front[0] = front[1]
        changed[name] = array
    return changed


def _with_outputs(model: ir.Model, names: Mapping[str, Any]) -> ir.Model:
    copy = cloned(model)
    kept = [value for value in copy.graph.outputs if value.name in names]
    copy.graph.outputs.clear()
    copy.graph.outputs.extend(kept)
    return copy
