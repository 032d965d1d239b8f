"""`onnxsmith export TARGET -o model.onnx`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.commands.base import Command
from onnxsmith.options import argument, flag, group, option
from onnxsmith.report.base import Report
from onnxsmith.settings import Save, Verify


@dataclass(frozen=True)
class Export(Command):
    """Export a PyTorch model to ONNX, verified.

    The graph is captured, simplified, and compared with the module at several sizes before the file is written.

    TARGET is path/to/file.py:factory or package.module:factory. The factory is called without arguments and returns the
    module, or (module, args), or (module, args, kwargs), args being example inputs of forward. With
    --transformers or --task, TARGET is a local folder with config.json and
    weights, or a config.json alone.
    """

    name = "export"

    target: str = argument("file.py:factory, package.module:factory, or a folder with --task")
    output: str = option("the .onnx file to write", short="-o", metavar="FILE", default="", writes=True)
    input: tuple[str, ...] = option(
        "example input: x=float32[1,1,224,224], x=array.npy or inputs.npz; several times", default=(), metavar="SPEC"
    )
    dynamic: tuple[str, ...] = option(
        'axes that stay dynamic: "x:0=batch,2=height", several times or separated by ; or "auto"',
        default=(),
        metavar="AXES",
    )
    opset: int | None = option("the ONNX opset; honoured or refused, never changed in silence")
    input_names: str = option("names for the inputs, in forward's order: a,b", default="", metavar="NAMES")
    output_names: str = option("names for the outputs, in order: a,b", default="", metavar="NAMES")
    drop_unused: bool = flag("remove graph inputs that nothing reads; kept and named in the report otherwise")
    no_weights: bool = flag("leave the parameters out of the file: they become inputs of the graph")
    no_simplify: bool = flag("leave the graph as it was captured")
    no_verify: bool = flag("write without checking; the report says so")
    verify: Verify = group(Verify)
    save: Save = group(Save)
    transformers: bool = flag("TARGET is a local folder, or config.json, of a model of the transformers library")
    task: str | None = option(
        "what such a model is exported for: text-generation-with-past, image-classification, …", metavar="NAME"
    )
    strategy: str | None = option(
        "the only way to capture that is tried: torch-export, torch-plain, torch-recomposed, torch-strict, torchscript "
        "or torchscript-script",
        metavar="NAME",
    )

    as_traced: bool = flag(
        "accept the path in which the module is traced where the module as called gives other results"
    )

    def run(self) -> Report:
        from onnxsmith.exporter.export import export
        from onnxsmith.problem import problem

        if not self.output:
            raise problem("export/no-output", "no file to write was named", fix="add -o model.onnx")
        result = export(
            self.target,
            output=self.output,
            inputs=self.input,
            dynamic=";".join(self.dynamic),
            opset=self.opset,
            input_names=_names(self.input_names),
            output_names=_names(self.output_names),
            drop_unused=self.drop_unused,
            weights=not self.no_weights,
            simplify=not self.no_simplify,
            verify=self.verify if not self.no_verify else False,
            save=self.save,
            strategy=self.strategy,
            as_traced=self.as_traced,
            task=self.task or ("auto" if self.transformers else None),
        )
        return result.report


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
