"""`export`: a torch module becomes an ONNX file that was checked against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from onnxsmith.clock import Clock, stage
from onnxsmith.exporter.foreseen_errors import foreseen
from onnxsmith.exporter.inputs.dynamic import Dynamic
from onnxsmith.exporter.settings import Settings
from onnxsmith.model.files.outputs import refuse_loss
from onnxsmith.problem import problem
from onnxsmith.result import Result
from onnxsmith.runtimes import base as runtimes
from onnxsmith.settings import Save, Verify, verifying
from onnxsmith.sources import factory


def export(
    model: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    output: str | Path | BinaryIO | None = None,
    inputs: Sequence[str] = (),
    dynamic: Dynamic = None,
    opset: int | None = None,
    input_names: Sequence[str] = (),
    output_names: Sequence[str] = (),
    drop_unused: bool = False,
    weights: bool = True,
    simplify: bool = True,
    strategy: str | None = None,
    as_traced: bool = False,
    task: str | None = None,
    verify: Verify | bool = True,
    save: Save = Save(),
) -> Result:
    """Exports a torch module to ONNX and verifies the file against eager PyTorch.

    `model` is a module, or a target (`file.py:factory`, `package.module:factory`). `args` and `kwargs` are example
    inputs of `forward`, nested as it takes them; `inputs` are examples as the command line takes them. A module in
    training mode is exported in evaluation mode and put back.

    With `output`, a path or a binary file to write to, the model is written if it agrees; `save` says how. Without
    `weights` the parameters become inputs without a value; the check is made before. `drop_unused` removes inputs that
    nothing reads. `verify` says how the file is compared with the module; with False the report says that nothing was
    verified.

    `dynamic` names the axes that stay dynamic: `"x:0=batch,2=height"`, `{"x": {0: "batch"}}`, a mapping or a list with
    `torch.export.Dim`s as torch takes it, or `"auto"`: every axis that the module takes at other sizes and the graph
    can follow. `opset` is honoured or refused; None leaves it to the exporter.

    Ways to capture are tried one after the other until one gives a graph that agrees with the module; the report says
    which were left and why. Among them is one that writes the lines at which a trace stops otherwise while it traces;
    the report has those lines. `strategy` names the only one to try, by its file in `exporter/strategies`:
    `torch-export`, or `torchscript`, which fixes what Python takes from the value of a tensor and is otherwise refused
    for that.

    The module is run as its users call it: in evaluation mode, without gradients, by torch's fused kernels where it has
    some. Where it computes something else while it is traced (the formula in place of a kernel, a branch on
    `torch.compiler.is_exporting()`), and the difference is seen, nothing is written; with `as_traced` the graph is then
    held to the path that is traced.

    With `task` (`text-generation-with-past`, `image-classification`, … or `auto`), `model` is a local folder that a
    model of the transformers library was saved to, or a `config.json` alone. Example inputs, names and dynamic axes
    follow from the task; `dynamic` takes the place of those axes.

    Raises:
        OnnxsmithError: and nothing else. `export/…` for what cannot be captured in any way, which is the first way's
            problem; `verify/…` and `runtime/…` when the check could not be made; `save/…` when the result could not be
            written.
    """
    chosen = Settings(
        dynamic, opset, tuple(input_names), tuple(output_names), drop_unused, weights, simplify, strategy, as_traced,
        verifying(verify), save,
    )  # fmt: skip
    runtimes.get("torch-eager")  # says what to install when torch is not here
    from onnxsmith.exporter.export_run import Job, evaluating
    from onnxsmith.exporter.inputs.examples import with_inputs

    refuse_loss([output] if isinstance(output, str | Path) else (), [model, inputs])
    with Clock() as clock, foreseen():
        with stage("load"):
            if task is None:
                target, torch_model = factory.resolve(model, args, kwargs)
            else:
                target, torch_model, chosen = _pretrained(model, args, kwargs, task, chosen)
            torch_model = with_inputs(torch_model, inputs)
        with evaluating(torch_model.module) as was_training:
            return Job(target, torch_model, chosen, was_training).run(output, clock)


def _pretrained(
    model: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None, task: str, chosen: Settings
) -> tuple[str, factory.TorchModel, Settings]:
    from onnxsmith.exporter.pretrained import folder

    if factory.is_module(model):
        raise problem(
            "export/task",
            "a task was given, and a module",
            fix="leave the task out, or give the folder that the model was saved to",
        )
    found = folder.load(str(model), task)
    torch_model, dynamic = found.model, found.dynamic
    if args or kwargs:
        torch_model = replace(torch_model, args=tuple(args), kwargs=dict(kwargs or {}))
        dynamic = {name: axes for name, axes in dynamic.items() if name in (kwargs or {})}
    return str(model), torch_model, chosen if chosen.dynamic else replace(chosen, dynamic=dynamic)
