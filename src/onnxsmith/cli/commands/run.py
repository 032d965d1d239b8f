"""`onnxsmith run model.onnx --input x=photo.png`, `onnxsmith bench m.onnx`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import argument, flag, option
from onnxsmith.base.report.base import Report
from onnxsmith.cli.commands.base import Command


@dataclass(frozen=True)
class Run(Command):
    """Run a model once and show its outputs."""

    name = "run"
    usual_line = "onnxsmith run net.onnx --input x=photo.png"
    examples = (
        ("Write the outputs", "onnxsmith run net.onnx --input inputs.npz -o outputs.npz"),
        ("On random inputs, with another runtime", "onnxsmith run net.onnx --random --runtime reference"),
    )

    model: str = argument("the .onnx file, or FILE@RUNTIME", metavar="MODEL")
    input: tuple[str, ...] = option(
        "inputs: x=photo.png, x=array.npy, inputs.npz, or x=float32[1,3,8,8] for generated values; repeatable",
        default=(),
        metavar="SPEC",
    )
    output: str | None = option(
        "file for the outputs: .npz for all outputs, or an image file for the first output",
        short="-o",
        metavar="FILE",
        writes=True,
    )
    random: bool = flag("generate the inputs that were not given")
    dim: tuple[str, ...] = option(
        "size of a symbolic dimension for --random, or a range of sizes: batch=4, height=64..1024; repeatable",
        default=(),
        metavar="NAME=SIZE",
    )
    runtime: str | None = option("runtime: onnxruntime, openvino, tract, iree, web or reference", metavar="NAME")
    provider: str = option("execution provider: cpu, cuda or tensorrt; an error if it is missing", default="cpu")
    seed: int = option("seed of the generated inputs", default=0)

    def shown(self) -> tuple[str, ...]:
        return (self.model,)

    def run(self) -> Report:
        from onnxsmith.verification.inputs import user_inputs
        from onnxsmith.verification.run import run

        return run(
            self.model,
            self.input,
            runtime=self.runtime,
            provider=self.provider,
            output=self.output,
            random=self.random,
            sizes=user_inputs.sizes(self.dim),
            seed=self.seed,
        ).report


@dataclass(frozen=True)
class Bench(Command):
    """Measure how long models take to run, and which one is faster.

    Each MODEL is one of: m.onnx; m.onnx@openvino (on that runtime); file.py:factory (the torch module that the factory
    returns); m.pt2 (a program of torch.export). Several models are measured alternately, and compared with the first. A
    model is reported as faster only if the difference is larger than the noise and the outputs agree.
    """

    name = "bench"
    usual_line = "onnxsmith bench net.onnx --dim batch=1"
    examples = (
        ("Show which of two models is faster", "onnxsmith bench net.onnx new.onnx --dim batch=1"),
        ("See which layers take the time", "onnxsmith bench net.onnx --dim batch=1 --profile"),
        ("Keep the figures, and compare with them later", "onnxsmith bench net.onnx --dim batch=1 --save before.json"),
    )

    models: tuple[str, ...] = argument("models to measure", metavar="MODEL…")
    subject: tuple[str, ...] = option(
        "runtimes to measure: onnxruntime, onnxruntime:basic, onnxruntime:cuda, openvino:threads=2, "
        "reference, torch, torch-compile; repeatable",
        default=(),
        metavar="RUNTIME",
    )
    input: tuple[str, ...] = option(
        "inputs: x=photo.png, x=array.npy, inputs.npz; the others are generated; repeatable",
        default=(),
        metavar="SPEC",
    )
    dim: tuple[str, ...] = option(
        "size of a symbolic dimension, or a range of sizes: batch=8, height=64..1024; repeatable",
        default=(),
        metavar="NAME=SIZE",
    )
    batch: str = option(
        "batch sizes to measure throughput with: 1,4,16, or NAME=1,4,16 for another dimension", default=""
    )
    threads: str = option("numbers of threads to measure throughput with: 1,2", default="")
    profile: bool = flag("show the time of operators, torch modules and kernels; on onnxruntime only")
    save: str | None = option(
        "write the measurements to this JSON file, for a later --against", metavar="FILE", writes=True
    )
    against: str | None = option(
        "compare with measurements of --save; the exit status is 1 if a model is slower beyond the noise",
        metavar="FILE",
    )
    allow: str = option("how much slower than in --against a model may be", default="5%", metavar="SHARE")
    any_machine: bool = flag("compare even with measurements of another machine or of other versions")
    seconds: float = option(
        "seconds to measure all models together; starting the processes can make it about this long for each model",
        default=20.0,
    )
    tolerance: float | None = option(
        "largest difference allowed, relative to the output's scale; default: estimated from rounding",
        metavar="NUMBER",
    )
    seed: int = option("seed of the generated inputs and of the order of measuring", default=0)

    def shown(self) -> tuple[str, ...]:
        return self.models[:1]

    def run(self) -> Report:
        from onnxsmith.deployment.benching.bench import bench
        from onnxsmith.deployment.benching.bench_options import counts, share
        from onnxsmith.verification.inputs import user_inputs

        name, _, batches = self.batch.rpartition("=")
        return bench(
            *self.models,
            subjects=self.subject,
            inputs=self.input,
            sizes=user_inputs.sizes(self.dim),
            batches=counts(batches, "--batch 1,4,16"),
            batch_name=name,
            threads=counts(self.threads, "--threads 1,2"),
            profile=self.profile,
            save=self.save,
            against=self.against,
            allow=share(self.allow, "--allow 5%"),
            any_machine=self.any_machine,
            seconds=self.seconds,
            tolerance=self.tolerance,
            seed=self.seed,
        ).report
