"""`onnxsmith compare a.onnx b.onnx`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.commands.base import Command
from onnxsmith.options import argument, flag, option
from onnxsmith.report.base import Report


@dataclass(frozen=True)
class Compare(Command):
    """Compare two models on the same inputs.

    The exit status is 0 when they agree and 1 when they differ.

    A side is m.onnx, m.onnx@reference (that runtime), m.onnx@onnxruntime:disable (with that option), or
    file.py:factory (the torch module it gives), or m.pt2 (a program of torch.export). With --per-layer the first
    operation that errs by itself is named, with its torch module and line.
    """

    name = "compare"

    reference: str = argument("the side that is right", metavar="REFERENCE")
    candidate: str = argument("the side that is compared with it", metavar="CANDIDATE")
    input: tuple[str, ...] = option(
        "inputs to compare on: inputs.npz, x=photo.png; several times; a name that comes again begins the next input",
        default=(),
        metavar="SPEC",
    )
    only_given: bool = flag("compare on the given inputs alone")
    dim: tuple[str, ...] = option(
        "size of a symbolic dimension: batch=1; several times", default=(), metavar="NAME=SIZE"
    )
    runtime: str | None = option("runtime for .onnx files: onnxruntime, openvino or reference", metavar="NAME")
    seed: int = option("seed of the generated inputs", default=0)

    per_layer: bool = flag("compare every tensor that both sides have, and name the first operation that errs")
    memory: int = option("megabytes for the tensors that are compared together", default=2048, metavar="MB")
    min_paired: float = option("least part of the tensors that has to be paired", default=0.5, metavar="SHARE")
    tolerance: float | None = option(
        "largest difference allowed, relative to scale, instead of what rounding explains", metavar="NUMBER"
    )
    worst_input: str | None = option(
        "write the input on which they are furthest apart to this .npz", metavar="FILE", writes=True
    )

    def run(self) -> Report:
        from onnxsmith.comparing.by_layer import LayerOptions
        from onnxsmith.comparing.compare import compare
        from onnxsmith.feeds import given

        layers = LayerOptions(self.memory * 2**20, self.min_paired)

        return compare(
            self.reference,
            self.candidate,
            inputs=self.input,
            sizes=given.sizes(self.dim),
            runtime=self.runtime,
            generate=not self.only_given,
            seed=self.seed,
            per_layer=layers if self.per_layer else False,
            tolerance=self.tolerance,
            worst_input=self.worst_input,
        ).report
