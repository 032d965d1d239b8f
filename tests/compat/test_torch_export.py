"""`compat.torch_export` takes the calls of `torch.onnx.export`, and gives what they give."""

from __future__ import annotations

import inspect
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnxscript import opset18 as op
from torch import nn
from torch.export import Dim
from torch.onnx import OperatorExportTypes, TrainingMode

import onnxsmith
from onnxsmith import compat
from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.result import Result
from onnxsmith.compat import torch_export

pytestmark = pytest.mark.usefixtures("compared_once", "forked_traces")
X = torch.rand(2, 4)


def small() -> nn.Module:
    linear = nn.Linear(4, 3)
    for weights in linear.parameters():
        weights.data.abs_()  # no unit is dead: the check can see each weight
    return nn.Sequential(linear, nn.ReLU()).eval()


class Two(nn.Module):
    def forward(self, x: torch.Tensor, b: torch.Tensor) -> Any:
        y = x + b
        return y, y.relu()


def refused(*args: Any, **options: Any) -> Any:
    with pytest.raises(OnnxsmithError) as caught:
        torch_export(*args, **options)
    return caught.value.problem


def test_the_signature_is_torchs() -> None:
    ours, theirs = (inspect.signature(one).parameters for one in (torch_export, torch.onnx.export))
    assert list(ours) == list(theirs)
    assert [ours[name].default for name in ours] == [theirs[name].default for name in theirs]
    assert [ours[name].kind for name in ours] == [theirs[name].kind for name in theirs]


def test_a_function_is_a_file() -> None:
    assert dir(compat) == ["torch_export"]
    with pytest.raises(AttributeError, match="torch_export"):
        _ = compat.torch_exports


def test_without_a_file_a_program_is_returned(tmp_path: Path) -> None:
    model = small()
    program = torch_export(model, (X,), dynamic_shapes=({0: Dim("batch")},))
    assert isinstance(program, torch.onnx.ONNXProgram)
    assert program.report.verdict is Verdict.DONE
    assert program.model.graph.inputs[0].shape is not None
    assert program.model_proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    more = torch.rand(5, 4)
    torch.testing.assert_close(program(more)[0], model(more))
    program.save(tmp_path / "m.onnx")
    answer = onnxsmith.run(tmp_path / "m.onnx", {"input": more.numpy()}).outputs["output"]
    np.testing.assert_allclose(answer, model(more).numpy(force=True), rtol=1e-5)


@pytest.mark.parametrize("args", [X, (X,), [X]])
@pytest.mark.parametrize("dynamo", [True, False])
def test_a_file_is_written(args: Any, dynamo: bool, tmp_path: Path) -> None:
    file = tmp_path / "onnx.pb"
    program = torch_export(small(), args, str(file), dynamo=dynamo, input_names=["x"], output_names=["y"])
    assert (program is None) != dynamo
    graph = onnx.load(file).graph
    assert ([one.name for one in graph.input], [one.name for one in graph.output]) == (["x"], ["y"])
    buffer = io.BytesIO()
    torch_export(small(), args, buffer, dynamo=dynamo)
    assert len(onnx.load_from_string(buffer.getvalue()).graph.node) > 0


def test_weights_go_to_a_second_file_as_torch_has_it(tmp_path: Path) -> None:
    model = nn.Linear(64, 64).eval()
    torch_export(model, torch.rand(2, 64), tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx.data").exists()
    torch_export(model, torch.rand(2, 64), tmp_path / "one.onnx", external_data=False)
    assert not (tmp_path / "one.onnx.data").exists()


@pytest.mark.parametrize(
    ("args", "options"),
    [
        ((X, {"b": X}), {}),
        ((X,), {"kwargs": {"b": X}}),
        ((), {"kwargs": {"b": X, "x": X}}),
        ((X, X, {}), {}),
    ],
)
def test_arguments_in_every_form(args: Any, options: Any) -> None:
    program = torch_export(Two().eval(), args, dynamic_axes={"x": [0], "b": {0: "n"}}, **options)
    assert {value.name for value in program.model.graph.inputs} == {"x", "b"}
    assert all(isinstance(value.shape[0].value, str) for value in program.model.graph.inputs)


def test_fewer_names_than_inputs() -> None:
    program = torch_export(Two().eval(), (X, X), input_names=["first"])
    assert [value.name for value in program.model.graph.inputs] == ["first", "b"]
    said = refused(Two().eval(), (X, X), input_names=["first", "second", "weight"])
    assert said.id == "compat/argument"
    assert "['first', 'second']" in said.fix


def added(x: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return x + b * 2


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # a deprecated way, whose results are still there
@pytest.mark.parametrize("way", ["function", "trace"])
def test_what_torchscript_compiled(way: str, tmp_path: Path) -> None:
    model = torch.jit.script(added) if way == "function" else torch.jit.trace(Two().eval(), (X, X))
    axes = {"x": {0: "n"}, "b": {0: "n"}}
    torch_export(model, (X, X), tmp_path / "m.onnx", dynamo=False, input_names=["x", "b"], dynamic_axes=axes)
    assert onnx.load(tmp_path / "m.onnx").graph.input[1].type.tensor_type.shape.dim[0].dim_param == "n"


def test_a_program_of_torch_export() -> None:
    exported = torch.export.export(Two().eval(), (X, X), dynamic_shapes=({0: (n := Dim("n", max=9))}, {0: n}))
    program = torch_export(exported)
    assert program.exported_program is exported
    assert len({str(value.shape[0]) for value in program.model.graph.inputs}) == 1
    assert not program.model.graph.inputs[0].shape.is_static(0)


def test_a_module_that_says_how_it_is_exported() -> None:
    class Exportable(torch.onnx.ExportableModule):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        def example_arguments(self) -> Any:
            return (X,), None

        def input_names(self) -> Any:
            return ("image",)

        def output_names(self) -> Any:
            return ("score",)

        def dynamic_shapes(self) -> Any:
            return ({0: "batch"},)

    program = torch_export(Exportable().eval())
    assert program.model.graph.inputs[0].name == "image"
    assert program.model.graph.inputs[0].shape[0] == "batch"
    assert program.model.graph.outputs[0].name == "score"


def test_a_table_of_translations_is_used_and_verified() -> None:
    def right(self):  # type: ignore[no-untyped-def]
        return op.Max(self, op.CastLike(op.Constant(value_float=0.0), self))

    table = {torch.ops.aten.relu.default: right}
    program = torch_export(small(), X, custom_translation_table=table, optimize=False)
    assert "Max" in {node.op_type for node in program.model.graph}
    said = refused(small(), X, custom_translation_table={torch.ops.aten.relu.default: lambda self: op.Neg(self)})
    assert said.id == "verify/different"


def test_what_differs_is_not_written(tmp_path: Path) -> None:
    table = {torch.ops.aten.relu.default: lambda self: op.Neg(self)}
    refused(small(), X, tmp_path / "m.onnx", custom_translation_table=table)
    assert not list(tmp_path.iterdir())


def test_what_the_check_cannot_tell_says_how_to_write_it_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    unsure = Problem(
        "verify/cannot-tell", ("the check cannot decide whether the two models are equal"), fix="give inputs"
    )
    result = Result(Report("export", Verdict.CANNOT_TELL, problems=(unsure,)))
    monkeypatch.setattr("onnxsmith.compat.functions.torch_export.export", lambda *args, **options: result)
    said = refused(small(), X)
    assert said.id == "verify/cannot-tell"
    assert said.fix.startswith("give inputs; or ")
    assert "write_unsure" in said.fix


def test_reports_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch_export(small(), X, report=True, artifacts_dir=tmp_path / "reports", verbose=True)
    assert json.loads((tmp_path / "reports" / "onnx_export_report.json").read_text("utf-8"))["verdict"] == "done"
    assert (tmp_path / "reports" / "onnx_export_report.html").exists()
    assert "verified on" in capsys.readouterr().out


def test_a_model_in_training_mode_is_told(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.Dropout()).train()
    with pytest.warns(UserWarning, match="evaluation mode"):
        program = torch_export(model, X)
    assert model.training
    assert "Dropout" not in {node.op_type for node in program.model.graph}


def test_weights_as_inputs(tmp_path: Path) -> None:
    options = {"export_params": False, "keep_initializers_as_inputs": True}
    torch_export(small(), X, tmp_path / "m.onnx", **options)
    graph = onnx.load(tmp_path / "m.onnx").graph
    assert {one.name for one in graph.input} == {"input", "0.weight", "0.bias"}
    assert not graph.initializer


@pytest.mark.parametrize(
    ("options", "fix"),
    [
        ({"export_params": False}, "keep_initializers_as_inputs=True"),
        ({"keep_initializers_as_inputs": True}, "program.save(path, keep_initializers_as_inputs=True)"),
        ({"export_params": False, "keep_initializers_as_inputs": True}, "give f"),
        ({"training": TrainingMode.TRAINING}, "dropout(x, training=True)"),
        ({"operator_export_type": OperatorExportTypes.ONNX_FALLTHROUGH}, "onnxsmith.register"),
        ({"operator_export_type": OperatorExportTypes.ONNX_ATEN}, "onnxsmith.register"),
        ({"custom_opsets": {"my": 2}}, 'domain="my.domain"'),
        ({"export_modules_as_functions": True}, "onnxsmith outline"),
        ({"export_modules_as_functions": {nn.Linear}}, "onnxsmith outline"),
        ({"autograd_inlining": False}, 'deliver="function"'),
        ({"dump_exported_program": True}, "torch.export.save"),
        ({"dynamo": False}, "give f"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(options: Any, fix: str) -> None:
    said = refused(small(), X, **options)
    assert said.id == "compat/argument"
    assert said.where.split()[0] in options
    assert fix in said.fix


def test_values_that_change_nothing_are_taken() -> None:
    options = {"training": TrainingMode.PRESERVE, "operator_export_type": OperatorExportTypes.ONNX, "custom_opsets": {}}
    assert torch_export(small(), X, **options, export_modules_as_functions=set(), do_constant_folding=False)


def test_models_without_values_are_refused() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    real = small()
    with FakeTensorMode() as mode:
        model = small()
        for one, args in ((model, X), (real, mode.from_tensor(X))):
            said = refused(one, args)
            assert said.id == "compat/argument"
            assert "values" in said.why
