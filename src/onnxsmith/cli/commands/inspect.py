"""`onnxsmith inspect MODEL [NAME]`, `onnxsmith view MODEL [NEW]`, `onnxsmith dump model.onnx -o values.safetensors`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import argument, flag, option
from onnxsmith.base.report.base import Report
from onnxsmith.base.words import pasted
from onnxsmith.cli.commands.base import Command


@dataclass(frozen=True)
class Inspect(Command):
    """Show a model's inputs, outputs, operators, weights and likely faults. With NAME, show everything about one node
    or tensor."""

    name = "inspect"
    usual_line = "onnxsmith inspect net.onnx"
    examples = (
        ("Show all about one node or tensor", "onnxsmith inspect net.onnx relu"),
        ("Count multiply-adds and memory", "onnxsmith inspect net.onnx --costs --dim batch=1"),
        ("Write the weights to a numpy file", "onnxsmith inspect net.onnx --weights weights.npz"),
    )

    model: str = argument(
        "an .onnx file, or ONNX text in .onnxtxt; with --program also a torch model", metavar="MODEL", reads=True
    )
    item: str = argument("the name of a node, tensor, input or output", default="", metavar="NAME")
    nodes: bool = flag("list every node, with inferred shapes, torch module and source line")
    tensors: bool = flag("list every weight, with range, mean, standard deviation and suspicious values")
    costs: bool = flag("show multiply-adds, parameters and memory by torch module")
    dim: tuple[str, ...] = option(
        "size of a symbolic dimension for --costs, or a range of sizes: batch=4, height=64..1024; repeatable",
        default=(),
        metavar="NAME=SIZE",
    )
    weights: str | None = option(
        "write all weights to this file: .safetensors or .npz", default=None, metavar="FILE", writes=True
    )
    program: bool = flag(
        "show the torch program, and beside each line the nodes that came from it; MODEL may be file.py:factory"
    )
    onnx: str | None = option(
        "with --program on a torch model: the .onnx file whose nodes are shown", metavar="FILE", reads=True
    )
    text: bool = flag("print the model as ONNX text, without weights")

    def shown(self) -> tuple[str, ...]:
        return (self.model,)

    def is_one_pass(self) -> bool:
        return not (self.program or self.costs)

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
                fix=f"`onnxsmith inspect file.py:factory --program --onnx {pasted(self.onnx)}`",
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
                fix=f"`onnxsmith inspect {pasted(self.model)} --program`",
            )

    def _is_torch(self) -> bool:
        from onnxsmith.exporter.program_listing import is_torch

        return is_torch(self.model)


@dataclass(frozen=True)
class View(Command):
    """Show a model, or the differences between two models, in one HTML page that needs no network.

    Torch modules, scopes of names, repeated blocks, branches and functions can be opened as levels. Writes MODEL.html
    in the current folder, unless another output is named. Does not run the model.
    """

    name = "view"
    usual_line = "onnxsmith view net.onnx -o net.html"
    examples = (
        ("Show what differs between two models", "onnxsmith view net.onnx new.onnx -o both.html"),
        ("Draw a picture for a document", "onnxsmith view net.onnx -o net.html --svg net.svg"),
    )

    model: str = argument("an .onnx file, or ONNX text in .onnxtxt", metavar="MODEL")
    new: str = argument("a model to compare with it", default="", metavar="NEW")
    output: str = option("the HTML file to write", short="-o", metavar="FILE", default="", writes=True)
    with_: tuple[str, ...] = option(
        "colour the nodes by a report that another command wrote with --json; repeatable",
        default=(),
        name="with_",
        metavar="REPORT",
    )
    svg: str | None = option("draw one level as an SVG picture", metavar="FILE", writes=True)
    png: str | None = option("draw one level as a PNG picture", metavar="FILE", writes=True)
    module: str = option(
        "the level to draw, and to show first on the page: the path of a torch module, scope, branch or function",
        default="",
        metavar="PATH",
    )
    serve: bool = flag("serve a page over 50 MB on a port of this machine (127.0.0.1), until Ctrl-C")

    def is_one_pass(self) -> bool:
        return not self.serve

    def run(self) -> Report:
        from pathlib import Path

        from onnxsmith.viewer.page_server import serve
        from onnxsmith.viewer.view import view

        output = self.output
        if not output and not self.svg and not self.png:
            output = f"{Path(self.new or self.model).stem}.html"
        result = view(
            self.model,
            self.new or None,
            output=output or None,
            reports=self.with_,
            svg=self.svg,
            png=self.png,
            module=self.module,
        )
        return serve(result) if self.serve else result.report


@dataclass(frozen=True)
class Dump(Command):
    """Write the values of a model's tensors on one input.

    Without --output, show their statistics and write nothing.
    """

    name = "dump"
    usual_line = "onnxsmith dump net.onnx -o values.npz"
    examples = (
        (
            "Write some tensors, on your own input",
            'onnxsmith dump net.onnx -o values.npz --tensor "relu*" --input inputs.npz',
        ),
        ("Show figures only", "onnxsmith dump net.onnx --statistics"),
    )

    model: str = argument("the .onnx file; m.onnx@reference runs it on that runtime", metavar="MODEL")
    output: str | None = option("file to write: .safetensors or .npz", short="-o", metavar="FILE", writes=True)
    tensor: tuple[str, ...] = option(
        "a tensor, or a pattern such as '*attention*'; repeatable; default: all tensors", default=(), metavar="NAME"
    )
    input: tuple[str, ...] = option(
        "inputs: x=photo.png, inputs.npz; repeatable; inputs not given are generated", default=(), metavar="SPEC"
    )
    dim: tuple[str, ...] = option(
        "size of a symbolic dimension, or a range of sizes: batch=4, height=64..1024; repeatable",
        default=(),
        metavar="NAME=SIZE",
    )
    statistics: bool = flag("also show the statistics of the written tensors")
    runtime: str | None = option("runtime: onnxruntime, openvino, tract, iree, web or reference", metavar="NAME")
    seed: int = option("seed of the generated inputs", default=0)
    memory: int = option("megabytes of tensor values in memory at once", default=1024, metavar="MB")

    def shown(self) -> tuple[str, ...]:
        return (self.model,)

    def run(self) -> Report:
        from onnxsmith.verification.by_layer.dump import dump
        from onnxsmith.verification.inputs import user_inputs

        return dump(
            self.model,
            self.output,
            tensors=self.tensor,
            inputs=self.input,
            runtime=self.runtime,
            sizes=user_inputs.sizes(self.dim),
            seed=self.seed,
            statistics=self.statistics,
            budget=self.memory * 10**6,
        ).report
