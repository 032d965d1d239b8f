"""Counts parameters and multiply-adds at given sizes of the inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.graph.shapes.symbolic_inference import infer
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.signature import signature
from onnxsmith.verification.inputs.size_proposals import batches
from onnxsmith.viewer.inspection.costs.cost_report import costs
from onnxsmith.viewer.inspection.costs.cost_sizes import Sizes


@dataclass(frozen=True)
class Counted:
    """The parameters, and the multiply-adds of one run. Unknown multiply-adds are None, and `why` says why. `without`
    are operators of unknown costs, which are not counted."""

    parameters: int
    macs: int | None
    why: str = ""
    without: str = ""


class Counting:
    """Counts models at fixed sizes of the inputs: the given sizes, and example sizes for all other symbolic dimensions.

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
        """Returns the size of each symbolic dimension."""
        return self._sizes.used()

    def of(self, model: ir.Model) -> Counted:
        """Counts the costs of a model. Symbolic shapes are inferred again from the sizes of the inputs, so that inner
        symbolic dimensions get sizes too."""
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
        why = ""
        if found.unknown_shape:
            why = f"the shapes of {_listed(found.unknown_shape)} are not known"
        elif found.sizes:
            why = f"the size {', '.join(found.sizes)} does not follow from those of the inputs"
        return Counted(found.parameters, None if why else found.macs.at, why, _listed(found.uncounted))

    def _size(self, dim: int | ir.SymbolicDim) -> int | ir.SymbolicDim:
        if isinstance(dim, int) or dim.value is None:
            return dim
        return self._sizes.value(dim.value)


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())
