"""`onnxsmith inspect MODEL [NAME]`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.commands.base import Command
from onnxsmith.options import argument, flag, option
from onnxsmith.report.base import Report


@dataclass(frozen=True)
class Inspect(Command):
    """Show a model's inputs, outputs, operators, weights and likely faults. With NAME, show everything about one node
    or tensor."""

    name = "inspect"

    model: str = argument("an .onnx file, or ONNX text in .onnxtxt", metavar="MODEL")
    item: str = argument("the name of a node, tensor, input or output", default="", metavar="NAME")
    nodes: bool = flag("list every node, with inferred shapes, torch module and source line")
    tensors: bool = flag("list every weight, with range, mean, standard deviation and suspicious values")
    costs: bool = flag("show multiply-adds, parameters and memory by torch module")
    dim: tuple[str, ...] = option(
        "size of a symbolic dimension for --costs: batch=4; repeatable", default=(), metavar="NAME=SIZE"
    )
    weights: str | None = option(
        "write all weights to this file: .safetensors or .npz", default=None, metavar="FILE", writes=True
    )
    text: bool = flag("print the model as ONNX text, without weights")

    def run(self) -> Report:
        from onnxsmith.feeds import given
        from onnxsmith.inspection.inspect import inspect

        return inspect(
            self.model,
            nodes=self.nodes,
            tensors=self.tensors,
            text=self.text,
            name=self.item or None,
            costs=self.costs,
            sizes=given.sizes(self.dim),
            weights=self.weights,
        )
