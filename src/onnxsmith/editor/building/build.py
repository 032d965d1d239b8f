"""Defines `build`, which makes a model from Python calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.base.report.base import Table
from onnxsmith.base.report.card import Card, to_html
from onnxsmith.base.result import Result
from onnxsmith.base.settings import Save
from onnxsmith.base.words import several
from onnxsmith.editor.building import build_completion, input_declarations
from onnxsmith.graph.files.output_paths import refuse_loss
from onnxsmith.graph.files.save import staged
from onnxsmith.graph.operators import dtypes
from onnxsmith.graph.operators.operator_methods import Operators
from onnxsmith.graph.operators.results import EXPLICIT
from onnxsmith.graph.operators.tensor import Tensor
from onnxsmith.graph.operators.user_line import user_line
from onnxsmith.graph.structure import versions


def build(
    output: str | Path | None = None,
    *,
    opset: int = 21,
    imports: Mapping[str, int] | None = None,
    name: str | None = None,
    verify: bool = True,
    save: Save = Save(),
) -> Builder:
    """Builds a model in a `with` block, and writes it to `output` when the block ends.

        with onnxsmith.build("model.onnx") as g:
            x = g.input("x", "float32", ["batch", 3])
            g.output("y", g.Relu(x) * 2 + 1)

    Every operator of the opset is a method. Each call infers dtype and shape and refuses operands that do not fit, at
    the line of the call. When the block ends, the model is checked and run once on generated inputs, on the first
    runtime that can run it. Only then the model is written. `g.model` is the model, `g.result` the result with its
    report. An error in the block leaves the file at `output` as it was.

    `opset` is the version of ONNX's own operators, `imports` has the versions of other domains (default: the newest).
    `name` is the name of the graph. Without `verify`, the model is checked but not run.

    Raises:
        OnnxsmithError: `build/…` at the line that does not fit, `save/…` when the model cannot be written.
    """
    return Builder(output, opset=opset, imports=imports or {}, name=name, verify=verify, save=save)


class Builder(Operators):
    """Builds a model in a `with` block. See `onnxsmith.build`, and `Operators` for the methods."""

    def __init__(
        self,
        output: str | Path | None,
        *,
        opset: int,
        imports: Mapping[str, int],
        name: str | None,
        verify: bool,
        save: Save,
    ) -> None:
        input_declarations.refuse_opset(opset, imports, user_line())
        if output is not None:
            with staged(output, durable=False):  # an impossible target is refused before the work
                pass
        title = name or (Path(output).stem if output is not None else "model")
        graph = ir.Graph([], [], nodes=[], name=title, opset_imports={"": opset, **imports})
        super().__init__(ir.Model(graph, ir_version=versions.newest().ir, producer_name="onnxsmith"))
        self._output, self._verify, self._save = output, verify, save
        self._result: Result | None = None
        self._closed = False
        self._notes: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closed = True
        if kind is None:
            self._finish()

    def close(self) -> Result:
        """Finishes the model without a `with` block: checks, runs and writes it. Returns the result."""
        self.begin()
        self._closed = True
        self._finish()
        return self.result

    @property
    def model(self) -> ir.Model:
        """Returns the finished model.

        Raises:
            OnnxsmithError: `build/open` before the block has ended.
        """
        model = self.result.model
        assert model is not None
        return model

    @property
    def result(self) -> Result:
        """Returns the result: report, model, path."""
        if self._result is None:
            failed = self._closed
            raise problem(
                "build/open",
                "there is no finished model" if failed else "the model is not finished",
                where=self.blame(),
                why="the block ended with an error"
                if failed
                else "the model is complete only at the end of the `with` block, where it is checked and run",
                fix="correct the error that the block raised" if failed else "read the result after the `with` block",
            )
        return self._result

    def input(self, name: str, dtype: Any, shape: Sequence[int | str | None] | None = None) -> Tensor:
        """Adds an input. `shape` has a size, a name of a symbolic dimension, or None for each dimension; [] is a
        scalar. `dtype` may be a list or an optional: `"seq(float32)"`, `"optional(float32)"`.

        Raises:
            OnnxsmithError: `build/name`, `build/dtype`, `build/input`.
        """
        where = self.begin()
        type_ = input_declarations.read_type(dtype, where)
        dims = input_declarations.read_shape(name, shape, where, needed=isinstance(type_, ir.TensorType))
        if self.is_inside:
            raise problem(
                "build/input",
                f"the input {name!r} is made inside a branch or a body",
                where=where,
                why="inputs belong to the whole model",
                fix="move g.input before the If, Loop, Scan or function; the branch can read the tensor",
            )
        value = ir.Value(name=self.exact_name(name), type=type_, shape=dims)
        self._model.graph.inputs.append(value)
        return Tensor(value, self)

    def output(self, name: str | Tensor, tensor: Tensor | None = None) -> Tensor:
        """Makes a tensor an output of the model: `g.output("y", y)`, or `g.output(y)` under the tensor's own name.
        Returns the handle of the output.

        Raises:
            OnnxsmithError: `build/output` if the name or the tensor cannot be an output, `build/name` if the name is
                taken.
        """
        where = self.begin()
        wanted, given = (name.name, name) if isinstance(name, Tensor) and tensor is None else (name, tensor)
        value = input_declarations.output_value(self, wanted, given, where)
        name = str(wanted)
        is_own = value.producer() is not None and not value.is_graph_output() and EXPLICIT not in value.meta
        if value.name == name and value.producer() is not None and not value.is_graph_output():
            pass  # the tensor has that name already
        elif is_own:
            value.name = self.exact_name(name, scoped=False)
        else:
            if value.is_graph_input():
                self._notes.append(f"the output {name!r} is the input {value.name!r}, unchanged")
            value = self.call("Identity", [value], {}, None, [name]).value
        value.meta[EXPLICIT] = True
        self._model.graph.outputs.append(value)
        return Tensor(value, self)

    def begin(self) -> str:
        """Refuses a call after the end of the block; returns the user's line."""
        where = super().begin()
        if self._closed:
            raise problem(
                "build/closed",
                "the model is finished, and this line would change it",
                where=where,
                why="the model was checked, run and written when the block ended",
                fix="move the line into the `with` block",
            )
        return where

    def _finish(self) -> None:
        output = self._output
        if output is not None:
            refuse_loss([output], [])
        self._result = build_completion.finished(
            self._model, output, notes=self._notes, verify=self._verify, save=self._save, where=self.blame()
        )

    def _repr_html_(self) -> str:
        """Returns a table of inputs, nodes and outputs for a notebook."""
        graph = self._model.graph
        rows = [("input", value.name or "", repr(Tensor(value, self))) for value in graph.inputs]
        for node in graph:
            operands = ", ".join(value.name or "" for value in node.inputs if value is not None)
            made = "; ".join(repr(Tensor(value, self)) for value in node.outputs if value.name)
            rows.append((node.op_type, operands, made))
        rows += [("output", value.name or "", dtypes.shown(value.dtype) or "") for value in graph.outputs]
        table = Table(("node", "operands", "results"), tuple(rows))
        title = f"model in construction: {graph.name}" if graph.name else "model in construction"
        return to_html(Card(title, several(len(graph), "node"), parts=(("Inputs, nodes and outputs", (table,)),)))
