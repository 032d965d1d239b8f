"""`onnxsmith bundle MODEL -o FOLDER --for FORM`, `onnxsmith check m.onnx --target openvino`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import argument, flag, group, option
from onnxsmith.base.report.base import Report
from onnxsmith.base.settings import Save, Verify
from onnxsmith.cli.commands.base import Command


@dataclass(frozen=True)
class Bundle(Command):
    """Write a folder that runs a model without torch: the model, code, recorded inputs and outputs, documents.

    If the program that will load the folder is on this machine, it computes the recorded outputs again.
    """

    name = "bundle"
    usual_line = "onnxsmith bundle net.onnx -o bundle --for python"
    examples = (
        (
            "Add the processing of pictures, and the names of the classes",
            "onnxsmith bundle net.onnx -o bundle --for python --task image-classification --labels labels.txt",
        ),
        ("For C++", "onnxsmith bundle net.onnx -o bundle --for cpp"),
        (
            "For onnxruntime, with a smaller file for CUDA",
            "onnxsmith bundle net.onnx -o package --for onnxruntime-package --variant half.onnx@cuda",
        ),
    )

    model: str = argument("the .onnx file", metavar="MODEL", reads=True)
    output: str = option("the folder to write", short="-o", metavar="FOLDER", default="")
    for_: str = option(
        "the program that will load the folder: python, web, triton, tensorrt, cpp, transformers-js, genai or "
        "onnxruntime-package",
        default="",
        name="for_",
        metavar="FORM",
    )
    task: str = option(
        "what the model is for: tensors (no processing), image-classification, super-resolution, ocr, "
        "text-classification or text-generation",
        default="tensors",
    )
    size: str | None = option("height and width of the picture that the model gets: 224x224", metavar="HxW")
    mean: str | None = option("mean of each channel, of values in 0..1: 0.485,0.456,0.406", metavar="NUMBERS")
    std: str | None = option("standard deviation of each channel: 0.229,0.224,0.225", metavar="NUMBERS")
    colour: str | None = option("order of the channels: rgb, bgr or grey", metavar="NAME")
    labels: str | None = option(
        "file with one name of a class per line; for ocr, one character per line", metavar="FILE", reads=True
    )
    tokenizer: str | None = option("folder with tokenizer.json and config.json", metavar="FOLDER", reads=True)
    settings: str | None = option(
        "TOML file with parameters of the processing: the parameters of --size to --tokenizer, and others",
        metavar="FILE",
        reads=True,
    )
    licence: str | None = option("file with the licence of the model", metavar="FILE", reads=True)
    name_: str | None = option(
        "name of the model in servers and build files; default: the name of the file", name="name"
    )
    dim: tuple[str, ...] = option(
        "size of a symbolic dimension, or a range of sizes: batch=4, batch=1..16, batch=1:4:16; repeatable",
        default=(),
        metavar="NAME=SIZE",
    )
    dim_range: tuple[str, ...] = option(
        "least, usual and largest size of a symbolic dimension", default=(), metavar="NAME=MIN:OPT:MAX", now="--dim"
    )
    input: tuple[str, ...] = option(
        "inputs to record: x=photo.png, inputs.npz; repeatable; others are generated",
        default=(),
        metavar="SPEC",
        reads=True,
    )
    runtime: str | None = option(
        "runtime that computes the recorded outputs: onnxruntime, openvino or reference", metavar="NAME"
    )
    seed: int = option("seed of the generated inputs", default=0)
    tolerance: float | None = option(
        "largest difference allowed, relative to the output's largest magnitude; default: estimated from rounding",
        metavar="NUMBER",
    )
    onnxruntime_root: str | None = option(
        "folder with onnxruntime's include/ and lib/, to compile and run the C++ code here", metavar="FOLDER"
    )
    node_modules: str | None = option(
        "folder node_modules with onnxruntime-web or @huggingface/transformers, to run the JavaScript here",
        metavar="FOLDER",
    )
    variant: tuple[str, ...] = option(
        "for onnxruntime-package: a file for another execution provider, compared with MODEL: fp16.onnx@cuda; "
        "repeatable; MODEL is for cpu unless a --variant names it",
        default=(),
        metavar="FILE@PROVIDER",
        reads=True,
    )
    force: bool = flag("replace an older bundle even if its files were changed")

    def subjects(self) -> tuple[str, ...]:
        return ()

    def shown(self) -> tuple[str, ...]:
        return (self.model,)

    def run(self) -> Report:
        from onnxsmith.base.problem import problem
        from onnxsmith.deployment.bundles.bundle import bundle

        if not self.output:
            raise problem("bundle/folder", "no output folder was given", fix="add -o bundle")
        processing = {name: getattr(self, name) for name in ("size", "mean", "std", "colour", "labels", "tokenizer")}
        clients = {"onnxruntime": self.onnxruntime_root, "node_modules": self.node_modules}
        return bundle(
            self.model,
            self.output,
            form=self.for_,
            task=self.task,
            processing=processing,
            settings=self.settings,
            licence=self.licence,
            name=self.name_,
            inputs=self.input,
            dim_ranges=(*self.dim, *self.dim_range),
            runtime=self.runtime,
            seed=self.seed,
            tolerance=self.tolerance,
            clients={name: path for name, path in clients.items() if path is not None},
            variants=self.variant,
            force=self.force,
        ).report


@dataclass(frozen=True)
class Check(Command):
    """Check whether targets accept a model, and name the nodes that they refuse.

    The exit status is 0 if all targets accept the model, and 1 if a target refuses it, computes other numbers, or
    cannot be judged.
    """

    name = "check"
    usual_line = "onnxsmith check net.onnx"
    usual_options = ("target", "fix", "output", "input", "dim", "time_limit", "tolerance", "html", "report", "json")
    examples = (
        ("Ask one target", "onnxsmith check net.onnx --target onnxruntime"),
        ("Check the model against the published tables of TensorRT", "onnxsmith check net.onnx --target tensorrt-10"),
        (
            "Rewrite the model until the target accepts it",
            "onnxsmith check net.onnx --target coreml-mlprogram --fix -o fixed.onnx",
        ),
    )

    model: str = argument("the .onnx file", metavar="MODEL", reads=True)
    target: tuple[str, ...] = option(
        "targets to check: onnxruntime, openvino, coreml-mlprogram, profile:FILE.toml, …; repeatable; default: all",
        default=(),
        metavar="NAME",
        reads=True,
    )
    fix: bool = flag("rewrite the model until the targets accept it, and compare it with the original model")
    output: str = option("the file for the rewritten model", short="-o", metavar="FILE", default="", writes=True)
    input: tuple[str, ...] = option(
        "inputs to run and compare on: inputs.npz, x=photo.png; repeatable",
        default=(),
        metavar="SPEC",
        reads=True,
    )
    time_limit: float = option(
        "time limit for all targets together, in seconds; 0 for no limit; the report names targets that "
        "were not checked",
        default=60,
        metavar="SECONDS",
    )
    verify: Verify = group(Verify)
    save: Save = group(Save)

    def subjects(self) -> tuple[str, ...]:
        return (self.model,)

    def shown(self) -> tuple[str, ...]:
        return (self.model,)

    def refuse(self) -> None:
        from onnxsmith.base import rooms
        from onnxsmith.base.problem import OnnxsmithError
        from onnxsmith.runtimes.base import Runtime

        runtimes = rooms.members("onnxsmith.runtimes", Runtime)
        missing = [runtimes[name].missing() if name in runtimes else None for name in self.target]
        if missing and missing[0] is not None and all(missing):
            raise OnnxsmithError(missing[0])

    def run(self) -> Report:
        from onnxsmith.base.problem import problem
        from onnxsmith.deployment.checking.check import check
        from onnxsmith.deployment.checking.target_selection import ALL

        if self.fix and not self.output:
            raise problem("edit/no-output", "no output file was given", fix="add -o fixed.onnx")
        return check(
            self.model,
            self.target or (ALL,),
            self.output or None,
            fix=self.fix,
            inputs=self.input,
            verify=self.verify,
            save=self.save,
            time_limit=self.time_limit,
        ).report
