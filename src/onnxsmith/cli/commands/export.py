"""`onnxsmith export MODEL -o model.onnx`, `onnxsmith diagnose TARGET`."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.options import argument, flag, group, option
from onnxsmith.base.report.base import Report
from onnxsmith.base.settings import Save, Verify
from onnxsmith.cli.commands.base import Command, refuse_missing


@dataclass(frozen=True)
class Export(Command):
    """Export a PyTorch model to ONNX and verify the file.

    Captures the graph, simplifies it, and compares it with the module at several sizes. Writes the file if they agree.

    MODEL is path/to/file.py:factory or package.module:factory. The factory takes no arguments and returns the module,
    (module, args) or (module, args, kwargs); args and kwargs are example inputs of forward. With --transformers or
    --task, MODEL is a local folder with config.json and weights, or a config.json alone.
    """

    name = "export"
    usual_line = "onnxsmith export net.py:build -o net.onnx --dynamic auto"
    usual_options = ("output", "dynamic", "input", "opset", "target", "task", "state", "no_verify", "tolerance", "html")
    examples = (
        ("Keep some axes dynamic, and name them", 'onnxsmith export net.py:build -o net.onnx --dynamic "x:0=batch"'),
        ("Write the file for one runtime", "onnxsmith export net.py:build -o net.onnx --target onnxruntime"),
        (
            "Write a page that shows how the module was captured and compared",
            "onnxsmith export net.py:build -o net.onnx --html report.html",
        ),
    )

    model: str = argument(
        "file.py:factory, package.module:factory, or a folder with --task", metavar="MODEL", reads=True
    )
    output: str = option("the .onnx file to write", short="-o", metavar="FILE", default="", writes=True)
    input: tuple[str, ...] = option(
        "example input: x=float32[1,1,224,224], x=array.npy or inputs.npz; repeatable",
        default=(),
        metavar="SPEC",
        reads=True,
    )
    dynamic: tuple[str, ...] = option(
        'axes to keep dynamic: "x:0=batch,2=height"; repeatable, or separated by ; or "auto"',
        default=(),
        metavar="AXES",
    )
    opset: int | None = option("the ONNX opset; an error if the model cannot be written in it")
    target: str | None = option(
        "where the model will run: uses the target's opset, IR version and operators, checks the file "
        "with the target, and rewrites nodes that the target refuses",
        metavar="NAME",
        reads=True,
    )
    input_names: str = option("names for the inputs, in forward's order: a,b", default="", metavar="NAMES")
    output_names: str = option("names for the outputs, in order: a,b", default="", metavar="NAMES")
    drop_unused: bool = flag("remove graph inputs that no node reads; default: keep them and name them in the report")
    no_weights: bool = flag("leave the parameters out of the file; they become graph inputs")
    no_simplify: bool = flag("do not simplify the captured graph")
    no_verify: bool = flag("write the file without verifying it; the report states this")
    verify: Verify = group(Verify)
    save: Save = group(Save)
    transformers: bool = flag("MODEL is a local folder, or config.json, of a model of the transformers library")
    task: str | None = option(
        "task of the transformers model: text-generation-with-past, image-classification, …", metavar="NAME"
    )
    trust_remote_code: bool = flag("run Python code that the folder of the transformers model brings along")
    strategy: str | None = option(
        "use only this strategy to capture the module: torch-export, torch-called, torch-resized, "
        "torch-joined, torch-plain, torch-recomposed, torch-branched, torch-recorded, torch-all-sides, "
        "torch-strict, torch-selected, torchscript or torchscript-script",
        metavar="NAME",
    )

    as_traced: bool = flag(
        "if a call of the module takes another code path than the trace, compare with the traced path"
    )

    state: tuple[str, ...] = option(
        "turn tensors that forward changes and reads again into inputs and outputs: names, patterns, or "
        "auto; repeatable",
        default=(),
        metavar="NAMES",
    )

    def subjects(self) -> tuple[str, ...]:
        return ()

    def shown(self) -> tuple[str, ...]:
        return (self.output,)

    def refuse(self) -> None:
        if not self.output:
            from onnxsmith.base.problem import problem

            raise problem("export/no-output", "no output file was given", fix="add -o model.onnx")
        from onnxsmith.exporter import early_refusals

        early_refusals.refuse(self.model, self.opset)
        refuse_missing("torch-eager")

    def run(self) -> Report:
        from onnxsmith.exporter.export import export

        result = export(
            self.model,
            output=self.output,
            inputs=self.input,
            dynamic=";".join(self.dynamic),
            opset=self.opset,
            target=self.target,
            input_names=_names(self.input_names),
            output_names=_names(self.output_names),
            drop_unused=self.drop_unused,
            weights=not self.no_weights,
            simplify=not self.no_simplify,
            verify=self.verify if not self.no_verify else False,
            save=self.save,
            strategy=self.strategy,
            as_traced=self.as_traced,
            state=self.state,
            task=self.task or ("auto" if self.transformers else None),
            trust_remote_code=self.trust_remote_code,
        )
        if self.target is None:
            return result.report
        from onnxsmith.deployment.checking.target_follow_up import checked_afterwards

        return checked_afterwards(result.report, self.target, self.verify, self.save)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


@dataclass(frozen=True)
class Diagnose(Command):
    """List everything in a PyTorch model that prevents an export, with the source line and code to paste.

    Reads the source, runs the model, and tries every strategy to capture it. Writes nothing. The exit status is 1 if a
    problem was found.
    """

    name = "diagnose"
    usual_line = "onnxsmith diagnose net.py:build"
    examples = (
        ("Also request dynamic axes", 'onnxsmith diagnose net.py:build --dynamic "x:0=batch"'),
        ("Diagnose for an older opset", "onnxsmith diagnose net.py:build --opset 17"),
    )

    target: str = argument("file.py:factory or package.module:factory")
    input: tuple[str, ...] = option(
        "example input: x=float32[1,1,224,224], x=array.npy or inputs.npz; repeatable", default=(), metavar="SPEC"
    )
    dynamic: tuple[str, ...] = option(
        'axes to keep dynamic: "x:0=batch,2=height"; repeatable, or separated by ;',
        default=(),
        metavar="AXES",
    )
    opset: int | None = option("the ONNX opset to diagnose for")

    def refuse(self) -> None:
        refuse_missing("torch-eager")

    def run(self) -> Report:
        from onnxsmith.exporter.diagnose import diagnose

        return diagnose(self.target, inputs=self.input, dynamic=";".join(self.dynamic), opset=self.opset).report
