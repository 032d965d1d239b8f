"""`onnxsmith compare a.onnx b.onnx`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.commands.base import Command, argument, flag, option
from onnxsmith.report.base import Report


@dataclass(frozen=True)
class Compare(Command):
    """Compare two models on the same inputs.

    The exit status is 0 when they agree and 1 when they differ.

    A side is m.onnx, m.onnx@reference (that runtime), m.onnx@onnxruntime:disable (with that option), or
    file.py:factory (the torch module it gives).
    """

    name = "compare"

    reference: str = argument("the side that is right", metavar="REFERENCE")
    candidate: str = argument("the side that is held to it", metavar="CANDIDATE")
    input: tuple[str, ...] = option(
        "an input to compare on: inputs.npz, x=photo.png; several times", default=(), metavar="SPEC"
    )
    only_given: bool = flag("compare on the given inputs alone")
    dim: tuple[str, ...] = option(
        "size of a symbolic dimension: batch=1; several times", default=(), metavar="NAME=SIZE"
    )
    runtime: str | None = option("runtime for .onnx files: onnxruntime, openvino or reference", metavar="NAME")
    seed: int = option("seed of the generated inputs", default=0)

    def run(self) -> Report:
        from onnxsmith.exporter.compare import compare
        from onnxsmith.feeds import given

        return compare(
            self.reference,
            self.candidate,
            inputs=self.input,
            sizes=given.sizes(self.dim),
            runtime=self.runtime,
            generate=not self.only_given,
            seed=self.seed,
        ).report
