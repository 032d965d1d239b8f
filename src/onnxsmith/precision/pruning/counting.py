"""Counts parameters and multiply-adds at given sizes of the inputs."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from onnxsmith.feeds.sizes import batches
from onnxsmith.inspection.costs.costs import costs
from onnxsmith.inspection.costs.sizes import Sizes
from onnxsmith.model.graph.copying import cloned
from onnxsmith.model.graph.signature import signature
from onnxsmith.model.shapes.inferred import infer
from onnxsmith.problem import problem


class Counting:
    """The sizes at which models with the inputs of one model are counted: the given ones, and example sizes of the
    other symbols.

    Raises:
        OnnxsmithError: `inspect/unknown-dim` if no input has a dimension of a given name.
    """

    def __init__(self, model: ir.Model, given: Mapping[str, int] | None, where: str) -> None:
        interface = signature(model)
        self._sizes = Sizes(given or {}, batches(interface))
        for dim in interface.symbols():
            self._sizes.value(dim)
        unused = self._sizes.unused()
        if unused:
            raise problem(
                "inspect/unknown-dim",
                f"no dimension of the model is called {unused[0]!r}",
                where=where,
                fix=f"its symbolic dimensions are: {', '.join(self.sizes)}"
                if self.sizes
                else "leave --dim out: the model has fixed sizes only",
            )

    @property
    def sizes(self) -> dict[str, int]:
        """The size of each symbol."""
        return self._sizes.used()

    def of(self, model: ir.Model) -> tuple[int, int | None]:
        """Parameters, and multiply-adds of one run, None where a size is not known even then. Shapes with symbols are
        inferred again from the sizes of the inputs, so that a dimension with a name of its own has the size that
        follows."""
        made = cloned(model)
        for value in made.graph.inputs:
            if value.shape is not None:
                value.shape = ir.Shape([self._size(dim) for dim in value.shape])
        for node in made.graph:
            for value in node.outputs:
                if value.shape is not None and not value.shape.is_static():
                    value.shape = None
        infer(made)
        found = costs(made, {}, "the model")
        return found.parameters, None if found.sizes or found.unknown_shape else found.macs.at

    def _size(self, dim: int | ir.SymbolicDim) -> int | ir.SymbolicDim:
        if isinstance(dim, int) or dim.value is None:
            return dim
        return self._sizes.value(dim.value)
