"""`onnxsmith inspect MODEL [NAME]`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import argument, flag, option
from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands.base import Command


@dataclass(frozen=True)
class Inspect(Command):
    """Show a model's inputs, outputs, operators, weights and likely faults. With NAME, show everything about one node
    or tensor."""

    name = "inspect"

    model: str = argument("an .onnx file, or ONNX text in .onnxtxt; with --program also a torch model", metavar="MODEL")
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
    program: bool = flag(
        "show the torch program beside the nodes that came from each line; MODEL may be file.py:factory"
    )
    onnx: str | None = option("with --program on a torch model: the .onnx file whose nodes are shown", metavar="FILE")
    text: bool = flag("print the model as ONNX text, without weights")

    def shown(self) -> tuple[str, ...]:
        return (self.model,)

    def run(self) -> Report:
        if self.program and self._is_torch():
            from onnxsmith.exporter.program_listing import program_report

            self._refuse_options_of_files()
            return program_report(self.model, self.onnx)
        if self.onnx is not None:
            from onnxsmith.base.problem import problem

            raise problem(
                "inspect/program-target",
                "--onnx is for a torch model with --program",
                where=self.model,
                fix=f"onnxsmith inspect file.py:factory --program --onnx {self.onnx}",
            )
        from onnxsmith.verification.inputs import user_inputs as given
        from onnxsmith.viewer.inspection.inspect import inspect

        return inspect(
            self.model,
            nodes=self.nodes,
            tensors=self.tensors,
            text=self.text,
            name=self.item or None,
            costs=self.costs,
            sizes=given.sizes(self.dim),
            weights=self.weights,
            program=self.program,
        )

    def _refuse_options_of_files(self) -> None:
        """Raises if an option was given that applies only to model files, because ignoring it silently would
        mislead."""
        from onnxsmith.base.problem import problem

        others = ("item", "nodes", "tensors", "costs", "dim", "weights", "text")
        given = [name for name in others if getattr(self, name)]
        if given:
            names = ", ".join("NAME" if name == "item" else f"--{name}" for name in given)
            raise problem(
                "inspect/program-target",
                f"{names}: for an ONNX model, not for a torch model",
                where=self.model,
                fix=f"onnxsmith inspect {self.model} --program",
            )

    def _is_torch(self) -> bool:
        from onnxsmith.exporter.program_listing import is_torch

        return is_torch(self.model)
