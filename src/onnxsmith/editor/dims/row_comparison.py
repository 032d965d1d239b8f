"""Compares a model with a symbolic dimension, at other sizes, with the original of fixed size, row by row.

A model may take some sizes only: for example, a U-Net that halves its picture twice takes multiples of 4. Refused sizes
are reported. Refused sizes are an error only if the model takes no other size than the original's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.settings import Verify
from onnxsmith.base.words import first_few, pasted
from onnxsmith.editor.dims.row_chunks import LEAST_OPSET, chunked
from onnxsmith.editor.dims.tried_sizes import Tried, does_not_run, other_sizes, ran_on, tried
from onnxsmith.editor.edited_model import Work
from onnxsmith.graph.files.load import load
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure.dim_ranges import one_size
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.signature import signature
from onnxsmith.graph.surgery import opset_conversion
from onnxsmith.runtimes import base as runtimes
from onnxsmith.verification.inputs.generate import Feed, Generator
from onnxsmith.verification.inputs.user_inputs import sizes
from onnxsmith.verification.output_declarations import Declarations
from onnxsmith.verification.sessions import verify_models
from onnxsmith.verification.value_comparison import near

_CLOSE = 2e-6
"""Limits the change of a row, relative to its output, that counts as rounding when another row changes. A choice: both
runs have the same sizes, so that kernels round alike; float32 rounds to 6e-8."""
_FAR = 64
"""The factor of the second change of a row. A choice: a softmax over nearly equal numbers hardly shows the first."""


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
    kept: Sequence[str] = ()
    """Says which constants of the model may hold the size, and stay."""

    def compared(
        self,
        part: Verification,
        pair: tuple[Path | ir.Model, Path | ir.Model],
        settings: Verify,
        given: Sequence[Feed] = (),
    ) -> Verification:
        """Adds the comparison at other sizes to `part`, the comparison at the original size. The rows of the `given`
        inputs are compared, too."""
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
        runtime, several = _runtime(original, settings), list[str]()
        found = tried(candidate, self.symbol, self.size, self.known, sizes(settings.sizes), settings.seed, runtime)
        runs = {size: ran_on(candidate, feed.values, runtime) for size, feed in found.feeds.items()}
        part = _declared(part, candidate, found.feeds, runs)
        shapes = _shapes(runs)
        # The places behind operators without rules are guesses: the runs decide.
        outputs |= {name: place for name in outputs if (place := _place(shapes, name)) is not None}
        if without:
            self._refuse_fixed(without, shapes, inputs)
            outputs |= {name: place for name in without if (place := _place(shapes, name)) is not None}
            without = [name for name in without if name not in outputs]
            several = [name for name in without if len(_moving([one.get(name, ()) for one in shapes.values()])) > 1]
        is_batch = self.size > 1 and all(axis == 0 for axis in inputs.values())
        if (not outputs or is_batch) and found.is_closed(self.size):
            raise does_not_run(self.symbol, self.size, found.refused, sizes(settings.sizes).get(self.symbol))
        why = self._mixed(original, candidate, inputs, outputs, found.feeds, runtime)
        if not why and outputs and not without and found.together:
            why = "the sizes of other dimensions have to change together with this dimension"
        model = load(original)
        if not why and outputs and opset_conversion.of(model) < LEAST_OPSET:
            why, without = f"the comparison needs opset {LEAST_OPSET}", []
        if not why and without and set(without) == set(several):
            why = f"{', '.join(several)} has this dimension on several axes"
        if why or not outputs or without:
            part = self._ran(part, found, why, without)
        elif found.refused:
            said = f"{found.restriction(f'the edited model does not run at {self.symbol} = ')}"
            part = replace(part, untried=(*part.untried, said))
        if why or not outputs:
            return part
        feeds = [*found.feeds.values(), *self._rows_of(given, inputs)]
        rows = self._verified(model, load(candidate), inputs, outputs, feeds, settings)
        part = replace(part, untried=(*part.untried, *self._empty(candidate, settings)))
        if not rows.equal:
            return replace(
                rows,
                notes=(*rows.notes, f"at other sizes of {self.symbol}, each row was compared with the original's row"),
            )
        said = (
            f"at {self.symbol} = {', '.join(str(one) for one in sorted(found.feeds))} each row agrees with the original"
        )
        return replace(
            part,
            runs=(*part.runs, *(run for run in rows.runs if run not in part.runs)),
            notes=(*part.notes, f"{said}, which ran at {self.symbol} = {self.size}"),
        )

    def _refuse_fixed(
        self, names: Sequence[str], shapes: Mapping[int, Mapping[str, tuple[int, ...]]], inputs: Mapping[str, int]
    ) -> None:
        """Refuses an output whose first axis keeps the size of the old batch, or whose rank follows the size.

        Raises:
            OnnxsmithError: `edit/frozen-dim`.
        """
        if any(axis != 0 for axis in inputs.values()) or len(shapes) < 2:
            return
        for name in names:
            found = {size: one[name] for size, one in shapes.items() if name in one}
            first = next(iter(found.values()), ())
            ranks = {len(shape) for shape in found.values()}
            keeps = len(set(found.values())) == 1 and len(first) > (self.size == 1) and first[0] == self.size
            if keeps or len(ranks) > 1:
                told = ", ".join(f"{list(shape)} at {self.symbol} = {size}" for size, shape in sorted(found.items()))
                raise problem(
                    "edit/frozen-dim",
                    f"the output {name} keeps the size of {self.symbol}" if keeps else f"the rank of {name} changes",
                    where=f"its shape is {told}",
                    why=f"a node or constant that computes it contains the number {self.size}",
                    fix=f"`onnxsmith inspect MODEL {pasted(name)}` shows the nodes that compute it; export the model "
                    "with this dimension dynamic, or keep it static",
                )

    def _old(self, ports: Mapping[str, str | None], name: str) -> str:
        return ports.get(name) or name

    def _verified(
        self,
        original: ir.Model,
        candidate: ir.Model,
        inputs: Mapping[str, int],
        outputs: Mapping[str, tuple[int, int]],
        feeds: Sequence[Feed],
        settings: Verify,
    ) -> Verification:
        reference = chunked(_with_outputs(original, outputs), self.symbol, self.size, inputs, outputs)
        names = (f"the original on {self.size} rows at a time", "the edited model")
        return verify_models(
            reference,
            _with_outputs(candidate, outputs),
            settings,
            given=tuple(feeds),
            generate=False,
            names=names,
        )

    def _rows_of(self, given: Sequence[Feed], inputs: Mapping[str, int]) -> list[Feed]:
        """Returns an input of all rows of the given inputs, beside whose other inputs are those of the first. A single
        row gets a second one, with its elements in the opposite order."""
        fitting = [one for one in given if inputs.keys() <= one.values.keys()]
        rows: dict[str, Any] = {}
        for name, axis in inputs.items() if fitting else ():
            arrays = [np.asarray(one.values[name]) for one in fitting]
            if len({one.ndim for one in arrays}) > 1 or axis >= arrays[0].ndim:
                return []
            apart = {(*one.shape[:axis], *one.shape[axis + 1 :]) for one in arrays}
            if len(apart) > 1:
                return []
            whole = np.concatenate(arrays, axis)
            whole = whole.take(range(min(whole.shape[axis], _MOST_ROWS)), axis)
            if whole.shape[axis] == 1:
                other = whole.ravel()[::-1].reshape(whole.shape)
                whole = np.concatenate([whole, other], axis)
            rows[name] = whole
        counts = {array.shape[inputs[name]] for name, array in rows.items()}
        if len(counts) != 1 or (count := counts.pop()) == self.size:
            return []
        sizes = {**fitting[0].sizes, self.symbol: count}
        return [Feed(f"{count} rows of the given inputs", sizes, {**fitting[0].values, **rows})]

    def _mixed(
        self,
        original: Path | ir.Model,
        candidate: Path | ir.Model,
        inputs: Mapping[str, int],
        outputs: Mapping[str, tuple[int, int]],
        feeds: Mapping[int, Feed],
        runtime: str | None,
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
        first = ran_on(source, values, runtime)
        for factor in (1, _FAR):
            second = ran_on(source, _first_row_changed(values, inputs, factor), runtime)
            for name, (axis, each) in outputs.items():
                a, b = first.get(name), second.get(name)
                if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray) or a.dtype.kind not in "fiub":
                    continue
                rest = np.arange(each, a.shape[axis])
                left, right = (np.nan_to_num(one.take(rest, axis).astype(np.float64)) for one in (a, b))
                if np.abs(left - right).max(initial=0) > _CLOSE * max(np.abs(left).max(initial=0), 1e-30):
                    return f"the rows of output {name} depend on each other"
        if any(axis != 0 for axis in inputs.values()):
            for model, at in ((source, size), (candidate, max(feeds))):
                values = feeds[at].values
                found = self._placed(model, values, inputs, outputs, ran_on(model, values, runtime), runtime)
                if found:
                    return found
        return ""

    def _placed(
        self,
        source: Path | ir.Model,
        values: Mapping[str, Any],
        inputs: Mapping[str, int],
        outputs: Mapping[str, tuple[int, int]],
        first: Mapping[str, Any],
        runtime: str | None,
    ) -> str:
        """Returns why rows cannot be compared, if they depend on their place, as with positions and masks: the rows are
        turned round, and have to be turned round in the outputs. The rows of a batch never depend on it."""
        second = ran_on(source, {name: _reversed(values[name], inputs.get(name), 1) for name in values}, runtime)
        for name, (axis, each) in outputs.items():
            a, b = first.get(name), second.get(name)
            if isinstance(a, np.ndarray) and not near(_reversed(a, axis, each), b, _AGREES):
                return f"the rows of output {name} depend on their position"
        return ""

    def _ran(self, part: Verification, found: Tried, why: str, without: list[str]) -> Verification:
        """Notes the other sizes at which the edited model runs, if nothing is compared at these sizes."""
        what = why or f"no axis of {', '.join(without) or 'an output'} has the size {self.symbol}"
        said = f"{self.symbol} was compared at {self.size} only, because {what}; {found.said()}"
        said += f"; {first_few(self.kept, _MOST_KEPT)}" if self.kept else ""
        return replace(part, untried=(*part.untried, said))

    def _empty(self, candidate: Path | ir.Model, settings: Verify) -> list[str]:
        """Returns a clause if the edited model does not take size 0."""
        model = load(candidate)
        generator = Generator.for_model(inferred(model)[0]).under(signature(model))
        others = other_sizes(candidate, generator, self.known, one_size(sizes(settings.sizes)), settings.seed)
        try:
            feed = generator.feed({**self.known, **others, self.symbol: 0}, seed=settings.seed)
            ran_on(candidate, feed.values)
        except OnnxsmithError:
            return [f"the edited model refuses {self.symbol} = 0"]
        return []


_MOST_KEPT = 3
"""Limits the constants that a clause names. A choice."""
_MOST_ROWS = 8
"""Limits the rows of the given inputs that are compared. A choice."""
_AGREES = 1e-3
"""Limits the difference, relative to the largest magnitude, at which one of several choices is taken. A choice: the
comparison that follows has tolerances of its own."""


def agrees(original: ir.Model, candidate: ir.Model, rows: Rows, seed: int) -> bool:
    """Whether a model runs at other sizes, and its first and last rows there are those of the original. This only
    chooses between edits, and is no verification."""
    try:
        runtime = _runtime(original, Verify())
        found = tried(candidate, rows.symbol, rows.size, rows.known, {}, seed, runtime)
        runs = {size: ran_on(candidate, feed.values, runtime) for size, feed in found.feeds.items()}
        shapes = _shapes(runs)
        places = rows.outputs | {name: at for name in rows.others if (at := _place(shapes, name)) is not None}
        if any(name not in places for name in rows.others):
            return False  # another choice may lead the rows to each output
        larger = [size for size in found.feeds if size > rows.size]
        for size in larger:
            for start in (0, size - rows.size):
                feed = {
                    name: value.take(range(start, start + rows.size), rows.inputs[name])
                    if name in rows.inputs
                    else value
                    for name, value in found.feeds[size].values.items()
                }
                theirs = ran_on(original, feed, runtime)
                for name, (axis, each) in places.items():
                    part = runs[size][name].take(range(start * each, (start + rows.size) * each), axis)
                    if not near(theirs[name], part, _AGREES):
                        return False
    except OnnxsmithError:
        return False
    return bool(larger)


def _declared(
    part: Verification, candidate: Path | ir.Model, feeds: Mapping[int, Feed], runs: Mapping[int, Mapping[str, Any]]
) -> Verification:
    """Adds the outputs whose declared shapes the runs at other sizes contradict."""
    found = Declarations(signature(load(candidate)))
    for size, outputs in runs.items():
        found.add(feeds[size].values, outputs)
    known = {one.name for one in part.misdeclared}
    return replace(part, misdeclared=(*part.misdeclared, *(one for one in found.wrong() if one.name not in known)))


def _shapes(runs: Mapping[int, Mapping[str, Any]]) -> dict[int, dict[str, tuple[int, ...]]]:
    """Returns the shapes of the outputs that are tensors, at each size."""
    return {
        size: {name: value.shape for name, value in one.items() if isinstance(value, np.ndarray)}
        for size, one in runs.items()
    }


def _moving(shapes: Sequence[tuple[int, ...]]) -> list[int]:
    """Returns the axes along which shapes of one rank differ."""
    if len({len(shape) for shape in shapes}) != 1:
        return []
    return [axis for axis in range(len(shapes[0])) if len({shape[axis] for shape in shapes}) > 1]


def _reversed(array: Any, axis: int | None, each: int) -> Any:
    """Returns an array whose rows of `each` elements along an axis are in the opposite order."""
    if axis is None or not isinstance(array, np.ndarray) or array.shape[axis] % each:
        return array
    order = np.arange(array.shape[axis]).reshape(-1, each)[::-1].ravel()
    return array.take(order, axis)


def _runtime(original: Path | ir.Model, settings: Verify) -> str | None:
    """Returns the runtime on which sizes are tried: another one may take a size that this one refuses. Returns None if
    the usual runtime does not take the original."""
    name = settings.runtime or runtimes.default()
    try:
        with runtimes.get(name).prepare(original):
            return name
    except OnnxsmithError:
        return None


def _place(shapes: Mapping[int, Mapping[str, tuple[int, ...]]], name: str) -> tuple[int, int] | None:
    """Returns the axis of an output that follows the size, with the elements for each row; None unless exactly one axis
    does."""
    found = {size: one[name] for size, one in shapes.items() if name in one}
    moving = _moving(list(found.values()))
    if len(moving) != 1:
        return None
    each = {shape[moving[0]] / size for size, shape in found.items()}
    number = next(iter(each))
    return (moving[0], int(number)) if len(each) == 1 and number == int(number) > 0 else None


def _first_row_changed(values: Mapping[str, Any], inputs: Mapping[str, int], factor: int) -> dict[str, Any]:
    """Returns the values with the first row replaced by the second row, in floats times a factor."""
    changed = dict(values)
    for name, axis in inputs.items():
        array = np.array(values[name])
        front = np.moveaxis(array, axis, 0)  # a view
        front[0] = front[1] * np.asarray(factor, front.dtype) if front.dtype.kind == "f" else front[1]
        changed[name] = array
    return changed


def _with_outputs(model: ir.Model, names: Mapping[str, Any]) -> ir.Model:
    copy = cloned(model)
    kept = [value for value in copy.graph.outputs if value.name in names]
    copy.graph.outputs.clear()
    copy.graph.outputs.extend(kept)
    return copy
