"""`torch_export`: `torch.onnx.export` of torch 2.13, with the verification of `onnxsmith.export`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch.onnx import OperatorExportTypes, TrainingMode

from onnxsmith.base.folders import replacing
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.base import Report
from onnxsmith.base.result import Result
from onnxsmith.base.settings import Save
from onnxsmith.compat.functions import _torch_models as models
from onnxsmith.compat.functions._argument_refusals import refuse
from onnxsmith.compat.functions._torch_unsupported import trains, unsupported
from onnxsmith.exporter.export import export

_CALL = "torch_export"


class Program(torch.onnx.ONNXProgram):
    """The result of `torch.onnx.export`: `model`, `model_proto`, `save(path)`, and a call with torch's tensors.

    `report` is the report of the verification. `exported_program` is None, unless the model was one.
    """

    def __init__(self, result: Result, exported: torch.export.ExportedProgram | None) -> None:
        assert result.model is not None
        super().__init__(result.model, exported)
        self.report: Report = result.report

    def __repr__(self) -> str:
        return f"Program({self.report.headline})"


def torch_export(
    model: torch.nn.Module | torch.export.ExportedProgram | Any,
    args: Any = (),
    f: str | os.PathLike[str] | BinaryIO | None = None,
    *,
    kwargs: dict[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool = True,
    dynamic_shapes: dict[str, Any] | tuple[Any, ...] | list[Any] | None = None,
    custom_translation_table: dict[Callable[..., Any], Any] | None = None,
    report: bool = False,
    optimize: bool = True,
    verify: bool = False,
    profile: bool = False,
    dump_exported_program: bool = False,
    artifacts_dir: str | os.PathLike[str] = ".",
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    dynamic_axes: Mapping[str, Mapping[int, str]] | Mapping[str, Sequence[int]] | None = None,
    training: TrainingMode = TrainingMode.EVAL,
    operator_export_type: OperatorExportTypes = OperatorExportTypes.ONNX,
    do_constant_folding: bool = True,
    custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: bool | Collection[type[torch.nn.Module]] = False,
    autograd_inlining: bool = True,
) -> Program | None:
    """Exports a model as `torch.onnx.export` does, and compares the graph with the model, whatever `verify` says.

    The arguments are those of torch 2.13; `f` may also be a binary file. Returns an `ONNXProgram` with the report of
    the verification; None with `dynamo=False`, as torch does. With `dynamo=False` the same ways to capture are tried.
    The graph of the first that agrees with the model is taken. A graph that differs is neither written nor returned.

    A model in training mode is exported in evaluation mode, with a warning. `export_params=False` together with
    `keep_initializers_as_inputs=True` makes the weights inputs of the file. `report` and `profile` write the report,
    with the seconds of each stage, as a page and as JSON to `artifacts_dir`. `optimize=False` and
    `do_constant_folding=False` leave out the simplification.

    Raises:
        OnnxsmithError: `compat/argument` for an argument that cannot be honoured; `verify/different` or
            `verify/cannot-tell` for a graph that did not pass; those of `onnxsmith.export`.
    """
    refuse(_CALL, unsupported(locals()))
    given = models.asked(model, args, kwargs, dynamic_axes if dynamic_shapes is None else dynamic_shapes)
    if trains(model):
        warnings.warn("the model is in training mode; it is exported in evaluation mode", UserWarning, stacklevel=2)
    given = models.named(given, _CALL, input_names, output_names)
    result = export(
        given.module,
        given.args,
        given.kwargs,
        output=os.fspath(f) if isinstance(f, str | os.PathLike) else f,
        dynamic=given.dynamic,
        opset=opset_version,
        input_names=given.input_names,
        output_names=given.output_names,
        weights=export_params,
        simplify=optimize and do_constant_folding,
        custom_translation_table=custom_translation_table,
        save=Save(external_data=external_data and not hasattr(f, "write")),
    )
    if report or profile:
        _write(result.report, Path(artifacts_dir))
    if verbose:
        _print(result.report)
    if not result.ok:
        raise _not_passed(result)
    return Program(result, given.program) if dynamo or given.program is not None else None


def _not_passed(result: Result) -> OnnxsmithError:
    found = OnnxsmithError(result.report.problems[0])
    if found.problem.id != "verify/cannot-tell":
        return found
    return found.at("", "write the file anyway: onnxsmith.export(…, save=onnxsmith.Save(write_unsure=True))")


def _write(report: Report, folder: Path) -> None:
    from onnxsmith.cli.render.html_report import to_html

    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("onnx_export_report.html", to_html(report)), ("onnx_export_report.json", report.to_json())):
        with replacing(folder / name) as aside:
            aside.write_text(text, encoding="utf-8")


def _print(report: Report) -> None:
    from onnxsmith.cli.render.terminal import console, show

    show(report, console())
