"""Renames tensors for a library that makes names from theirs, such as `b_scale` or `b0`, and takes such a name for
its own even if the model has it already."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.fresh import unused
from onnxsmith.graph.structure.model_copy import cloned

_NUMBER = re.compile(r"#(\d+)#")


@dataclass(frozen=True)
class Neutral:
    """A copy of a model whose tensors are called `#0#`, `#1#` and so on, and their own names in this order. No such
    name begins with another."""

    model: ir.Model
    names: tuple[str, ...] = ()
    """Empty if the tensors are not renamed."""
    nodes: frozenset[str] = frozenset()
    """The names of the nodes, which stay."""

    def by_name(self, numbers: Mapping[str, Any]) -> dict[str, Any]:
        """Returns what is known of tensors of the main graph by their new names."""
        new = {name: f"#{number}#" for number, name in reversed(list(enumerate(self.names)))}
        return {new.get(name, name): known for name, known in numbers.items()}

    def restore(self, made: ir.Model) -> None:
        """Gives the tensors of a model that was made of the copy their own names, in place. Names that the library made
        of them, also of nodes, follow, with a number behind them if the name is taken."""
        if not self.names:
            return
        values = [value for value in dict.fromkeys(walk.values(made)) if value.name]
        own = set(self.names)
        taken = own | {value.name for value in values}
        for value in values:  # the model's own tensors come last, when no other tensor has their names any more
            name = self.text(value.name or "")
            if not _NUMBER.fullmatch(value.name or "") and (name != value.name or name in own):
                value.name = unused(name, taken)
                taken.add(value.name)
        for value in values:
            value.name = self.text(value.name or "")
        nodes = set(self.nodes)
        for node in walk.all_nodes(made):
            if node.name and node.name not in self.nodes:
                node.name = unused(self.text(node.name), nodes)
                nodes.add(node.name)

    def text(self, said: str) -> str:
        """Returns a text with the tensors' own names."""
        return _NUMBER.sub(lambda found: self.names[int(found[1])], said) if self.names else said

    def error(self, error: OnnxsmithError) -> OnnxsmithError:
        """Returns the error with the tensors' own names in its texts."""
        found = error.problem
        return OnnxsmithError(
            replace(found, what=self.text(found.what), where=self.text(found.where), why=self.text(found.why))
        )


def neutral(model: ir.Model) -> Neutral:
    """Renames the tensors of a copy of the model."""
    made = cloned(model)
    values = [value for value in dict.fromkeys(walk.values(made)) if value.name]
    names = tuple(value.name or "" for value in values)
    for number, value in enumerate(values):
        value.name = f"#{number}#"
    return Neutral(made, names, frozenset(node.name or "" for node in walk.all_nodes(made)))
