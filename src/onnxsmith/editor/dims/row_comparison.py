"""Compares a model with a symbolic dimension, at other sizes, with the original of fixed size, row by row.

A model may take some sizes only: for example, a U-Net that halves its picture twice takes multiples of 4. Refused sizes
are reported. Refused sizes are an error only if the model takes no other size than the original's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.settings import Verify
from onnxsmith.editor.edited_model import Work
from onnxsmith.graph.files.load import load
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure.dim_ranges import Range, Size, one_size
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.signature import signature
from onnxsmith.graph.surgery import opset_conversion
from onnxsmith.runtimes import base as runtimes
from onnxsmith.verification.input_search import Plan, Search, Tries
from onnxsmith.verification.inputs.generate import Feed, Generator
from onnxsmith.verification.inputs.user_inputs import sizes
from onnxsmith.verification.run import run
from onnxsmith.verification.sessions import verify_models

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
        runtime, several = _runtime(original, settings), list[str]()
        found = tried(candidate, self.symbol, self.size, self.known, sizes(settings.sizes), settings.seed, runtime)
        if without:
            shapes = self._shapes(candidate, found.feeds, runtime)
            self._refuse_fixed(without, shapes, inputs)
            outputs |= {name: place for name in without if (place := _place(shapes, name)) is not None}
            without = [name for name in without if name not in outputs]
            several = [name for name in without if len(_moving([one.get(name, ()) for one in shapes.values()])) > 1]
        is_batch = self.size > 1 and all(axis == 0 for axis in inputs.values())
        if (not outputs or is_batch) and found.is_closed(self.size):
            raise _does_not_run(self.symbol, self.size, found.refused, sizes(settings.sizes).get(self.symbol))
        why = self._mixed(original, candidate, inputs, outputs, found.feeds, runtime)
        if not why and outputs and not without and found.together:
            why = "the sizes of other dimensions have to change with it"
        model = load(original)
        if not why and outputs and opset_conversion.of(model) < LEAST_OPSET:
            why, without = f"the comparison needs opset {LEAST_OPSET}", []
        if not why and without and set(without) == set(several):
            why = f"{', '.join(several)} has it on several axes"
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

    def _shapes(
        self, candidate: Path | ir.Model, feeds: Mapping[int, Feed], runtime: str | None
    ) -> dict[int, dict[str, tuple[int, ...]]]:
        """Returns the shapes of the outputs at each size that the model takes."""
        return {
            size: {name: np.shape(value) for name, value in ran_on(candidate, feed.values, runtime).items()}
            for size, feed in feeds.items()
        }

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
                    why=f"something that makes its rows holds the number {self.size}",
                    fix=f"`onnxsmith inspect MODEL {name}` shows what makes it; export the model with this dimension "
                    "dynamic, or keep it static",
                )

    def _old(self, ports: Mapping[str, str | None], name: str) -> str:
        return ports.get(name) or name

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
            if isinstance(a, np.ndarray) and not _is_near(_reversed(a, axis, each), b):
                return f"the rows of output {name} depend on their place"
        return ""

    def _ran(self, part: Verification, found: Tried, why: str, without: list[str]) -> Verification:
        """Notes the other sizes at which the edited model runs, if nothing is compared at these sizes."""
        what = why or (f"{', '.join(without)} has no axis for it" if without else "no output has an axis for it")
        said = f"{self.symbol} was compared at {self.size} only, because {what}; {found.said()}"
        return replace(part, untried=(*part.untried, said))

    def _empty(self, candidate: Path | ir.Model, settings: Verify) -> list[str]:
        """Returns a clause if the edited model does not take size 0."""
        model = load(candidate)
        generator = Generator.for_model(inferred(model)[0]).under(signature(model))
        others = _others(candidate, generator, self.known, one_size(sizes(settings.sizes)), settings.seed)
        try:
            feed = generator.feed({**self.known, **others, self.symbol: 0}, seed=settings.seed)
            ran_on(candidate, feed.values)
        except OnnxsmithError:
            return [f"the edited model refuses {self.symbol} = 0"]
        return []


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
        shapes = {size: {name: np.shape(value) for name, value in one.items()} for size, one in runs.items()}
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
                    if not _is_near(theirs[name], part):
                        return False
    except OnnxsmithError:
        return False
    return bool(larger)


def _is_near(a: Any, b: Any) -> bool:
    if not isinstance(a, np.ndarray) or a.shape != np.shape(b):
        return False
    if a.dtype.kind not in "fc":
        return bool(np.array_equal(a, b))
    scale = max(float(np.abs(np.nan_to_num(a)).max(initial=0)), 1e-30)
    return bool(np.abs(np.nan_to_num(a) - np.nan_to_num(b)).max(initial=0) <= _AGREES * scale)


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


LEAST_OPSET = 13
"""Names the first opset in which Range, Mod and Slice with operands support all dtypes that networks use."""


def chunked(
    model: ir.Model, symbol: str, size: int, inputs: Mapping[str, int], outputs: Mapping[str, tuple[int, int]]
) -> ir.Model:
    """Returns a copy of `model` that takes any number of rows, `symbol`, and runs `size` rows at a time. If the last
    chunk is short, it is filled with rows from the start. The results of these rows are cut off.

    `inputs` maps each input with rows to their axis. `outputs` maps each output with rows to their axis and to the
    number of elements of each row on this axis. All other outputs are taken from the first chunk.
    """
    made = cloned(model)
    return _Chunks(made, symbol, size).wrapped(inputs, outputs)


class _Chunks:
    def __init__(self, model: ir.Model, symbol: str, size: int) -> None:
        self._model, self._graph, self._symbol, self._size = model, model.graph, symbol, size
        self._names = Names(model)

    def wrapped(self, inputs: Mapping[str, int], outputs: Mapping[str, tuple[int, int]]) -> ir.Model:
        graph = self._graph
        ports = [value for value in graph.inputs if value.name in inputs]
        results = list(graph.outputs)
        names = [value.name or "" for value in results]
        nodes = list(graph)
        graph.outputs.clear()
        rows = []
        for port in ports:
            row = ir.Value(name=self._names.free(f"{port.name}_chunk"), type=port.type, shape=port.shape)
            port.replace_all_uses_with(row)
            results = [row if one is port else one for one in results]
            rows.append(row)
        graph.remove(nodes)
        body = ir.Graph(rows, [], nodes=nodes, name=self._names.free("chunk"), opset_imports={})
        body.outputs.extend(self._own(body, value) for value in results)
        for value in body.outputs:
            value.name = self._names.free(f"{value.name}_of_chunk")
        count = self._count(ports[0], inputs[ports[0].name or ""])
        given = [self._split(port, inputs[port.name or ""], count) for port in ports]
        scan = ir.node("Scan", given, {"body": body, "num_scan_inputs": len(given)}, num_outputs=len(results))
        for value, name in zip(scan.outputs, names, strict=True):
            value.name = self._names.free(f"{name}_stack")
        graph.append(scan)
        for value, result, name in zip(scan.outputs, body.outputs, names, strict=True):
            joined = self._joined(value, result, outputs[name], count) if name in outputs else self._first(value)
            joined.name, joined.type = name, result.type
            joined.shape = self._shape(result, outputs.get(name))
            graph.outputs.append(joined)
        for port in ports:
            self._declare(port, inputs[port.name or ""])
        return self._model

    def _own(self, body: ir.Graph, value: ir.Value) -> ir.Value:
        """Returns a value that the body itself computes. This is a copy if the value is an input of the body, an outer
        value, or an output already."""
        node = value.producer()
        if node is not None and node.graph is body and value not in body.outputs:
            return value
        copy = ir.node("Identity", [value])
        body.append(copy)
        copy.outputs[0].name, copy.outputs[0].type, copy.outputs[0].shape = value.name, value.type, value.shape
        return copy.outputs[0]

    def _declare(self, port: ir.Value, axis: int) -> None:
        assert port.shape is not None
        dims = list(port.shape)
        dims[axis] = ir.SymbolicDim(self._symbol)
        port.shape = ir.Shape(dims)

    def _shape(self, result: ir.Value, place: tuple[int, int] | None) -> ir.Shape | None:
        if result.shape is None or place is None:
            return result.shape
        dims = list(result.shape)
        axis, each = place
        dims[axis] = ir.SymbolicDim(self._symbol if each == 1 else f"{each}*{self._symbol}")
        return ir.Shape(dims)

    def _count(self, port: ir.Value, axis: int) -> ir.Value:
        shape = self._node("Shape", [port])
        return self._node("Gather", [shape, self._list([axis])], axis=0)

    def _split(self, port: ir.Value, axis: int, count: ir.Value) -> ir.Value:
        """Returns the rows of an input as chunks: (chunks, …, size, …)."""
        size, none = self._list([self._size]), self._list([])
        more = self._node("Add", [count, self._list([self._size - 1])])
        chunks = self._node("Div", [more, size])
        whole = self._node("Reshape", [self._node("Mul", [chunks, size]), none])
        counted = self._node("Range", [self._scalar(0), whole, self._scalar(1)])
        # Indices past the last row wrap around: the last chunk is filled with valid rows from the start.
        picked = self._node("Gather", [port, self._node("Mod", [counted, count])], axis=axis)
        assert port.shape is not None
        rank = len(port.shape)
        sizes = self._node("Shape", [picked])  # another dimension may be symbolic
        before, after = (
            self._node("Gather", [sizes, self._list(places)], axis=0)
            for places in (list(range(axis)), list(range(axis + 1, rank)))
        )
        target = self._node("Concat", [before, chunks, size, after], axis=0)
        # Without allowzero (before opset 14) a 0 in the target copies the input's size.
        parted = self._node("Reshape", [picked, target], allowzero=1) if self._zeros else self._reshape(picked, target)
        order = [axis, *range(axis), *range(axis + 1, rank + 1)]
        return parted if axis == 0 else self._node("Transpose", [parted], perm=order)

    @property
    def _zeros(self) -> bool:
        return self._model.opset_imports.get("", 1) >= 14

    def _reshape(self, value: ir.Value, target: ir.Value) -> ir.Value:
        return self._node("Reshape", [value, target])

    def _joined(self, stack: ir.Value, result: ir.Value, place: tuple[int, int], count: ir.Value) -> ir.Value:
        """Returns the rows of all chunks, without the rows that fill the last chunk."""
        axis, each = place
        assert result.shape is not None
        rank = len(result.shape)
        order = [*range(1, axis + 1), 0, *range(axis + 1, rank + 1)]
        moved = stack if axis == 0 else self._node("Transpose", [stack], perm=order)
        # The file may declare symbolic sizes of an output, so they are read from the stack.
        sizes = self._node("Shape", [stack])
        chunks = self._node("Gather", [sizes, self._list([0])], axis=0)
        joint = self._node("Mul", [chunks, self._node("Gather", [sizes, self._list([axis + 1])], axis=0)])
        before, after = (
            self._node("Gather", [sizes, self._list(places)], axis=0)
            for places in (list(range(1, axis + 1)), list(range(axis + 2, rank + 1)))
        )
        target = self._node("Concat", [before, joint, after], axis=0)
        whole = self._node("Reshape", [moved, target], allowzero=1) if self._zeros else self._reshape(moved, target)
        end = count if each == 1 else self._node("Mul", [count, self._list([each])])
        return self._node("Slice", [whole, self._list([0]), end, self._list([axis])])

    def _first(self, stack: ir.Value) -> ir.Value:
        return self._node("Gather", [stack, self._scalar(0)], axis=0)

    def _list(self, numbers: Sequence[int]) -> ir.Value:
        return self._constant(np.array(numbers, np.int64))

    def _scalar(self, number: int) -> ir.Value:
        return self._constant(np.array(number, np.int64))

    def _constant(self, array: np.ndarray) -> ir.Value:
        value = ir.Value(name=self._names.free("chunk_size"), const_value=ir.tensor(array))
        value.type, value.shape = ir.TensorType(ir.DataType.INT64), ir.Shape(array.shape)
        self._graph.initializers[value.name or ""] = value
        return value

    def _node(self, op: str, inputs: Sequence[ir.Value], **attributes: int | list[int]) -> ir.Value:
        node = ir.node(op, inputs, attributes)
        node.outputs[0].name = self._names.free(f"chunk_{op.lower()}")
        self._graph.append(node)
        return node.outputs[0]


_ENOUGH = 3
"""Counts the other sizes that must run before no further sizes are tried. A choice: the number of usual sizes."""


@dataclass
class Tried:
    """Holds the results of a model at the sizes of one dimension. `feeds` are inputs of the sizes that the model takes
    while other dimensions keep the original's size. `together` are the sizes that the model takes only if other
    dimensions change too. `refused` are the sizes that the model does not take, with the errors."""

    feeds: dict[int, Feed] = field(default_factory=dict)
    together: list[int] = field(default_factory=list)
    refused: dict[int, OnnxsmithError] = field(default_factory=dict)

    def said(self) -> str:
        """Returns a clause: `the edited model runs at 8, 16, 32, and not at 1, 17`."""
        taken = ", ".join(str(size) for size in sorted([*self.feeds, *self.together]))
        return f"the edited model runs at {taken}{self.restriction(', and not at ')}"

    def is_closed(self, size: int) -> bool:
        """Whether the model refuses sizes, and takes none above the original's."""
        return bool(self.refused) and max([*self.feeds, *self.together], default=0) <= size

    def restriction(self, start: str) -> str:
        """Returns the refused sizes, after the text `start`; "" if no size was refused."""
        return start + ", ".join(str(size) for size in sorted(self.refused)) if self.refused else ""


def tried(
    candidate: Path | ir.Model,
    symbol: str,
    size: int,
    known: Mapping[str, int],
    given: Mapping[str, Size],
    seed: int,
    runtime: str | None = None,
) -> Tried:
    """Runs the edited model at the original's `size` of `symbol`, and at other sizes. The other sizes are the size in
    `given`, if any; else the usual sizes, and multiples if the model takes none of the usual sizes, all in the range of
    `given` or of the file. `known` are the original's sizes of all symbols.

    Raises:
        OnnxsmithError: `edit/does-not-run` if the model takes no other size than the original's.
    """
    model = load(candidate)
    generator = Generator.for_model(inferred(model)[0]).under(signature(model))
    others = {name: one for name, one in known.items() if name != symbol}
    others |= _others(candidate, generator, {**known, symbol: size}, one_size(given), seed)
    found = Tried()

    def fits(one: int, beside: Mapping[str, int]) -> bool:
        at = {**others, **beside, symbol: one}
        try:
            feed = generator.feed(at, seed=seed + one)
            ran_on(candidate, feed.values, runtime)
        except OnnxsmithError as error:
            fitting = _with_other_integers(candidate, generator, at, seed + one, runtime)
            if fitting is None:
                found.refused.setdefault(one, error)
                return False
            feed = fitting
        found.refused.pop(one, None)
        if beside:
            found.together.append(one)
        else:
            found.feeds[one] = feed
        return True

    fits(size, {})
    asked = given.get(symbol, generator.signature.ranges.get(symbol, Range()))
    if isinstance(asked, int):
        beside = {name: one for name, one in one_size(given).items() if name in others}
        _ = fits(asked, {}) or (beside and fits(asked, beside))
    else:
        ends = [] if asked.most is None else [asked.least or 1, asked.most]
        for one in dict.fromkeys(one for one in (*usual(size), *ends) if asked.holds(one)):
            fits(one, {})
        # Only the original's size ran: the model may take multiples only.
        for one in filter(asked.holds, _further(size)) if len(found.feeds) < 2 else ():
            fits(one, {})
            if len(found.feeds) > _ENOUGH:
                break
    if size in found.refused or (found.refused and len(found.feeds) + len(found.together) < 2):
        raise _does_not_run(symbol, size, found.refused, given.get(symbol))
    return found


def _with_other_integers(
    candidate: Path | ir.Model, generator: Generator, at: Mapping[str, int], seed: int, runtime: str | None
) -> Feed | None:
    """Returns an input of these sizes that the model takes: lengths and row numbers have to be small. Returns None if
    there is none, or if no input has integers."""
    if not any("int" in port.dtype for port in generator.signature.required()):
        return None
    try:
        with runtimes.get(runtime or runtimes.default()).prepare(candidate) as session:
            found = Search(Tries(session, Plan(generator, known=at, seed=seed))).base()
    except OnnxsmithError:
        return None
    return None if found is None else found.feed


def _others(
    candidate: Path | ir.Model, generator: Generator, known: Mapping[str, int], given: Mapping[str, int], seed: int
) -> dict[str, int]:
    """Returns sizes of all symbols but those that are opened, at which the edited model runs: the given ones, else 2,
    else the first usual ones that it takes."""
    names = [name for name in generator.signature.symbols() if name not in known]
    sizes = {name: given.get(name, 2) for name in names}
    if not names:
        return sizes
    plan = Plan(generator, known={**given, **known}, start={**sizes, **known}, seed=seed)
    try:
        with runtimes.get(runtimes.default()).prepare(candidate) as session:
            found = Search(Tries(session, plan)).base()
    except OnnxsmithError:  # another runtime may run it
        return sizes
    return sizes if found is None else {name: found.feed.sizes.get(name, sizes[name]) for name in names}


def usual(size: int) -> list[int]:
    """Returns the sizes that are tried first: 1, the next size after `size`, and a size above twice `size`."""
    return [one for one in (1, size + 1, 2 * size + 1) if one != size]


def _further(size: int) -> Iterator[int]:
    """Yields sizes for a model that takes only multiples of a number: powers of two above `size`, and multiples of
    `size`."""
    step = 2
    while step < size:
        yield size + step
        step *= 2
    yield from (2 * size, 3 * size)


def _does_not_run(symbol: str, size: int, refused: Mapping[int, OnnxsmithError], given: Size | None) -> OnnxsmithError:
    listed = ", ".join(str(one) for one in sorted(refused))
    first = next(iter(refused.values())).problem
    return problem(
        "edit/does-not-run",
        f"the edited model runs at no other {symbol} than {size}"
        if size not in refused
        else f"the edited model does not run at {symbol} = {size}",
        where=f"{symbol} = {listed}",
        why=f"at {symbol} = {next(iter(refused))}: {first.what}. {first.why}".strip(". "),
        fix=f"leave --dim {symbol}={given} out: then usual sizes are tried; or leave the dimension at {size}; nothing "
        "was written"
        if given is not None
        else f"leave the dimension at {size}, without the name {symbol}, unless the model takes another size than "
        f"those that were tried, which --dim {symbol}=SIZE gives; nothing was written",
    )


def ran_on(source: Path | ir.Model, values: Mapping[str, Any], runtime: str | None = None) -> dict[str, Any]:
    """Runs a model and returns its outputs."""
    return dict(run(source, values, runtime=runtime).outputs)
