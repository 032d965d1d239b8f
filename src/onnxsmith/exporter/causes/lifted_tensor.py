"""`lifted_tensor_4`, and `type … is not a registered pytree node`: an input that is not a tensor."""

from __future__ import annotations

import re

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.causes.base import Cause

_TOLD = re.compile(r"lifted_tensor_\d+|Unsupported input type|not.{0,20}registered.{0,20}pytree|register_pytree_node")


class LiftedTensor(Cause):
    """A cache is an object: torch sees its tensors as constants, or cannot split it into tensors."""

    def read(self, text: str) -> Problem | None:
        if not _TOLD.search(text):
            return None
        return Problem(
            "export/object-input",
            "an argument of forward is an object that torch cannot split into tensors",
            why="a graph takes only tensors, numbers, None, and lists, tuples and dictionaries of them; tensors inside "
            "another object become constants of the graph, called lifted_tensor_…, or cannot be traced",
            fix="wrap the module: let forward take the tensors of the object one by one, and build the object inside",
        )
