"""`onnxsmith compare a.onnx b.onnx`, `onnxsmith diff old.onnx new.onnx`, `onnxsmith reduce m.onnx -o folder`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxsmith.base.options import argument, flag, option
from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands.base import Command

if TYPE_CHECKING:
    from onnxsmith.comparison.outputs.single_input_layers import LayerOptions


@dataclass(frozen=True)
class Compare(Command):
    """Compare two models on the same inputs.

    Symbolic dimensions are compared at several sizes, which the report lists; --dim chooses them. The exit status is 0
    if the models agree and 1 if they differ.

    REFERENCE and CANDIDATE are each one of: m.onnx; m.onnx@reference (on that runtime); m.onnx@onnxruntime:disable
    (with that optimization level); file.py:factory (the torch module that the factory returns); m.pt2 (a program of
    torch.export). CANDIDATE may also be a folder of graphs for onnxruntime-genai, optimum, transformers.js or
    diffusers, and REFERENCE the folder of its model in transformers, or another folder of graphs: then each graph is
    compared, and generated texts, token by token. --per-layer names the first operation that is wrong on correct
    inputs, with its torch module and source line.
    """

    name = "compare"
    usual_line = "onnxsmith compare net.onnx new.onnx"
    usual_options = (
        "input",
        "only_given",
        "dim",
        "runtime",
        "per_layer",
        "tolerance",
        "free",
        "worst_input",
        "html",
        "report",
    )
    examples = (
        ("Find the first operation that is wrong", "onnxsmith compare net.onnx new.onnx --per-layer"),
        ("Compare a file with the module that it came from", "onnxsmith compare net.py:build net.onnx"),
        (
            "Compare two runtimes, on your own inputs",
            "onnxsmith compare net.onnx@reference net.onnx@onnxruntime --input inputs.npz",
        ),
    )

    reference: str = argument("the model that is known to be right", metavar="REFERENCE", reads=True)
    candidate: str = argument("the model to compare with the reference", metavar="CANDIDATE", reads=True)
    input: tuple[str, ...] = option(
        "inputs to compare on: inputs.npz, x=photo.png; repeatable; a repeated name starts the next set of inputs",
        default=(),
        metavar="SPEC",
        reads=True,
    )
    only_given: bool = flag("compare only on the given inputs; generate no other inputs")
    dim: tuple[str, ...] = option(
        "size of a symbolic dimension, or a range of sizes: batch=1, height=64..1024; repeatable",
        default=(),
        metavar="NAME=SIZE",
    )
    runtime: str | None = option(
        "runtime for .onnx files: onnxruntime, openvino, tract, iree, web or reference", metavar="NAME"
    )
    seed: int = option("seed of the generated inputs", default=0)

    steps: int = option(
        "number of successive calls of both models; each call reads the state that the previous call returned, and "
        "--input gives the inputs of each call; for graphs that generate text, the number of tokens (default 8)",
        default=0,
        metavar="COUNT",
    )
    state: tuple[str, ...] = option(
        "an input that is a state, and the output with its next value: h=hn or 'past.*=present.*'; "
        "repeatable; default: from the file's metadata or by names",
        default=(),
        metavar="INPUT=OUTPUT",
    )

    per_layer: bool = flag("compare every tensor that both models have, and name the first wrong operation")
    memory: int = option("megabytes of memory for the tensors compared at once", default=2048, metavar="MB")
    min_paired: float = option("smallest share of the tensors that must be paired", default=0.5, metavar="SHARE")
    tolerance: float | None = option(
        "largest difference allowed, relative to the output's scale; default: estimated from rounding",
        metavar="NUMBER",
    )
    free: tuple[str, ...] = option(
        "outputs whose sign or order is arbitrary: sign:vectors, order:boxes+scores; repeatable",
        default=(),
        metavar="KIND:NAME",
    )
    thorough: bool = flag(
        "test the check itself with every planted fault (a weight that is changed on purpose), even if this is slow"
    )
    worst_input: str | None = option(
        "write the input with the largest difference to this .npz", metavar="FILE", writes=True
    )

    start: tuple[str, ...] = option(
        "compare only the part of both models after this tensor, as `extract --from` cuts it; repeatable",
        default=(),
        name="from_",
        metavar="TENSOR",
    )
    end: tuple[str, ...] = option(
        "compare only the part of both models up to this tensor; repeatable",
        default=(),
        name="to",
        metavar="TENSOR",
    )

    def subjects(self) -> tuple[str, ...]:
        return (self.candidate,)

    def shown(self) -> tuple[str, ...]:
        return (self.candidate,)

    def run(self) -> Report:
        from onnxsmith.cli.commands._edit_options import selectors
        from onnxsmith.comparison.outputs.compare import compare
        from onnxsmith.verification.inputs import user_inputs

        return compare(
            self.reference,
            self.candidate,
            inputs=self.input,
            sizes=user_inputs.sizes(self.dim),
            runtime=self.runtime,
            generate=not self.only_given,
            seed=self.seed,
            per_layer=self._layers() if self.per_layer else False,
            tolerance=self.tolerance,
            worst_input=self.worst_input,
            start=selectors(self.start),
            end=selectors(self.end),
            steps=self.steps,
            state=self.state,
            free=self.free,
            thorough=self.thorough,
        ).report

    def _layers(self) -> LayerOptions:
        from onnxsmith.comparison.outputs.single_input_layers import LayerOptions

        return LayerOptions(self.memory * 2**20, self.min_paired)


@dataclass(frozen=True)
class Diff(Command):
    """Show what changed from one model to another, node by node and in numbers.

    Does not run the models. Nodes are paired by what they compute, how they are used, and their weights, not by name.
    The exit status is 0 if the models are equal (apart from inner names and the order of the nodes) and 1 if they
    differ.
    """

    name = "diff"
    usual_line = "onnxsmith diff net.onnx new.onnx"
    examples = (
        (
            "Write a page that shows both models with their differences",
            "onnxsmith diff net.onnx new.onnx --view both.html --html diff.html",
        ),
    )

    old: str = argument("an .onnx file, or ONNX text in .onnxtxt", metavar="OLD", reads=True)
    new: str = argument("the model to compare with it", metavar="NEW", reads=True)
    ignore: tuple[str, ...] = option(
        "kind of difference to ignore: names (of inputs and outputs), weights, shapes (declared), metadata, doc or "
        "versions; repeatable",
        default=(),
        metavar="PART",
    )

    def is_one_pass(self) -> bool:
        return True

    def subjects(self) -> tuple[str, ...]:
        return (self.new,)

    def shown(self) -> tuple[str, ...]:
        return (self.old, self.new)

    def run(self) -> Report:
        from onnxsmith.comparison.graphs.diff import diff

        return diff(self.old, self.new, ignore=self.ignore).report


@dataclass(frozen=True)
class Reduce(Command):
    """Make a failing model as small as possible, for a bug report.

    The small model fails the same check in the same way. The folder contains this model, its inputs, and a program that
    reproduces the failure. Before it writes the folder, `reduce` runs the program once.
    """

    name = "reduce"
    usual_line = 'onnxsmith reduce bad.onnx -o case --check "refuses onnxruntime"'
    examples = (
        (
            "Keep your names and weights out of the folder",
            'onnxsmith reduce bad.onnx -o case --check "refuses onnxruntime" --anonymise',
        ),
    )

    model: str = argument("the .onnx file", metavar="MODEL")
    output: str = option("the folder to write", short="-o", metavar="FOLDER", default="", writes=True)
    check: str | None = option(
        '"differs RUNTIME RUNTIME", "refuses RUNTIME", "crashes RUNTIME" or "slow RUNTIME SECONDS"', metavar="CHECK"
    )
    command: str | None = option(
        'a command that exits with an error if the model fails: "python check.py {model} {inputs}"', metavar="COMMAND"
    )
    status: int | None = option("the command's exit status for a failing model; default: any but 0")
    input: tuple[str, ...] = option(
        "an input on which the model fails: inputs.npz, x=array.npy, x=photo.png; repeatable",
        default=(),
        metavar="SPEC",
    )
    dim: tuple[str, ...] = option(
        "size of a symbolic dimension, or a range of sizes: batch=1, height=64..1024; repeatable",
        default=(),
        metavar="NAME=SIZE",
    )
    anonymise: bool = flag(
        "replace names and weights and remove descriptions, where the model still fails without them"
    )
    time_limit: float | None = option("time limit of each try, in seconds; default: 60", metavar="SECONDS")
    seed: int = option("seed of the generated inputs", default=0)

    def shown(self) -> tuple[str, ...]:
        return (self.model,)

    def run(self) -> Report:
        from onnxsmith.base.problem import problem
        from onnxsmith.comparison.reduction.reduce import reduce
        from onnxsmith.verification.inputs import user_inputs

        if not self.output:
            raise problem("reduce/no-output", "no output folder was given", fix="add -o reduced")
        if (self.check is None) == (self.command is None):
            raise problem(
                "reduce/unknown-check",
                "no check was given" if self.check is None else "both a check and a command were given",
                fix='give exactly one: --check "refuses onnxruntime", or --command "python check.py {model}"',
            )
        return reduce(
            self.model,
            self.output,
            check=self.check if self.check is not None else f"command {self.command}",
            inputs=self.input or None,
            sizes=user_inputs.sizes(self.dim),
            status=self.status,
            anonymise=self.anonymise,
            time_limit=self.time_limit,
            seed=self.seed,
        ).report
