"""`export` as a user calls it, from Python."""

from __future__ import annotations

import io
import itertools
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.base.report.parts.capture import Capture
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.report.parts.written_files import Written
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.settings import Save, Verify


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.drop = nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.drop(self.norm(self.conv(x))))


def exported(model: nn.Module, args: Any, **options: Any) -> onnxsmith.Result:
    result = onnxsmith.export(model, args, **options)
    assert result.ok, result.report.problems
    assert result.report.part(Verification).verified
    return result


def problem_of(*args: Any, **options: Any) -> onnxsmith.Problem:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.export(*args, **options)
    return caught.value.problem


def ports(result: onnxsmith.Result) -> tuple[dict[str, tuple[Any, ...]], dict[str, tuple[Any, ...]]]:
    capture = result.report.part(Capture)
    return {p.name: p.shape for p in capture.inputs}, {p.name: p.shape for p in capture.outputs}


@pytest.mark.usefixtures("compared_once")
def test_axes_of_outputs_may_be_named_too(tmp_path: Path) -> None:
    """As in `dynamic_axes` of PyTorch."""
    result = onnxsmith.export(
        torch.nn.Linear(4, 3),
        (torch.rand(2, 4),),
        output=tmp_path / "m.onnx",
        input_names=["x"],
        output_names=["y"],
        dynamic={"x": {0: "batch"}, "y": {0: "batch"}},
    )
    assert result.ok
    assert (
        "the name that you gave to an output axis (y) was not used: the axis follows from axes of the inputs, and has "
        "the name of those" in result.report.part(Capture).notes
    )
    shape = onnx.load(tmp_path / "m.onnx").graph.output[0].type.tensor_type.shape
    assert [dim.dim_param or dim.dim_value for dim in shape.dim] == ["batch", 3]


def test_dynamic_axes_stay_dynamic_and_are_checked_at_several_sizes(tmp_path: Path) -> None:
    result = exported(
        Small(), (torch.rand(1, 1, 8, 6),), dynamic="x:0=batch,2=height,3=width", output=tmp_path / "m.onnx"
    )
    assert ports(result) == (
        {"x": ("batch", 1, "height", "width")},
        {"output": ("batch", 4, "height", "width")},
    )
    sizes = result.report.part(Verification).sizes
    assert sizes is not None
    assert all(len(found) >= 3 for found in sizes.values())
    assert 1 in sizes["batch"]
    proto = onnx.load(tmp_path / "m.onnx")
    assert [d.dim_param or d.dim_value for d in proto.graph.input[0].type.tensor_type.shape.dim] == [
        "batch",
        1,
        "height",
        "width",
    ]
    assert list(result.report.part(Written).files) == [str(tmp_path / "m.onnx")]


@pytest.mark.usefixtures("compared_once")
def test_without_dynamic_every_axis_is_fixed_and_said() -> None:
    capture = exported(Small(), (torch.rand(2, 1, 8, 6),)).report.part(Capture)
    assert capture.inputs[0].fixed == ("0=2", "1=1", "2=8", "3=6")
    assert capture.inputs[0].dynamic == ()


@pytest.mark.usefixtures("compared_once")
def test_training_mode_is_put_aside_and_back() -> None:
    model = Small().train()
    model.drop.eval()
    before = model.norm.running_mean.clone()
    capture = exported(model, (torch.rand(2, 1, 8, 6),)).report.part(Capture)
    assert any("training mode" in note for note in capture.notes)
    assert model.training
    assert model.norm.training
    assert not model.drop.training
    assert torch.equal(model.norm.running_mean, before)


class Nested(nn.Module):
    def forward(
        self, x: torch.Tensor, state: dict[str, Any], scale: float = 1.0, extra: Any = None, *, bias: Any
    ) -> dict[str, Any]:
        a, (b, c) = state["a"], state["pair"]
        return {"total": x + a + b * scale, "pair": (c + bias, x)}


@pytest.mark.usefixtures("compared_once")
def test_nested_inputs_and_outputs_get_readable_names() -> None:
    t = torch.rand(3, 4)
    result = exported(
        Nested(),
        (t, {"a": t + 1, "pair": [t + 2, t + 3]}, 2.5, None),
        kwargs={"bias": t},
        dynamic={"x": [0]} | {n: {0: "x.0"} for n in ("state.a", "state.pair.0", "state.pair.1", "bias")},
    )
    inputs, outputs = ports(result)
    assert list(inputs) == ["x", "state.a", "state.pair.0", "state.pair.1", "bias"]
    assert list(outputs) == ["total", "pair.0", "pair.1"]
    assert result.report.part(Capture).constants == ("2.5",)


class LastDict(nn.Module):
    def forward(self, x: torch.Tensor, options: dict[str, torch.Tensor]) -> torch.Tensor:
        return x + options["shift"]


@pytest.mark.usefixtures("compared_once")
def test_a_last_dict_argument_is_an_argument() -> None:
    result = exported(LastDict(), (torch.rand(2), {"shift": torch.rand(2)}))
    assert list(ports(result)[0]) == ["x", "options.shift"]


class Heads(NamedTuple):
    boxes: torch.Tensor
    scores: torch.Tensor


class TwoHeads(nn.Module):
    def forward(self, x: torch.Tensor, unused: torch.Tensor) -> Heads:
        return Heads(x * 2, x.sum(-1))


@pytest.mark.usefixtures("compared_once")
def test_two_heads_are_compared_each_and_unused_inputs_are_kept_and_said() -> None:
    result = exported(TwoHeads(), (torch.rand(2, 3), torch.rand(5)))
    inputs, outputs = ports(result)
    assert list(inputs) == ["x", "unused"]
    assert list(outputs) == ["boxes", "scores"]
    assert [port.used for port in result.report.part(Capture).inputs] == [True, False]
    assert [output.name for output in result.report.part(Verification).outputs] == ["boxes", "scores"]


@pytest.mark.usefixtures("compared_once")
def test_names_are_what_was_asked_for() -> None:
    result = exported(
        TwoHeads(), (torch.rand(2, 3), torch.rand(5)), input_names=["image", "mask"], output_names=["b", "s"]
    )
    assert tuple(map(list, ports(result))) == (["image", "mask"], ["b", "s"])
    problem = problem_of(TwoHeads(), (torch.rand(2, 3), torch.rand(5)), input_names=["image"])
    assert problem.id == "export/names"
    assert "x, unused" in problem.fix


class Echo(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        y = x + 1
        return x, y, y


@pytest.mark.usefixtures("compared_once")
def test_inputs_as_outputs_and_one_value_twice() -> None:
    result = exported(Echo(), (torch.rand(2, 3),), dynamic={"x": [0, 1]})
    assert list(ports(result)[1]) == ["output.0", "output.1", "output.2"]


class Tokens(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(17, 8)
        self.rnn = nn.LSTM(8, 5, batch_first=True)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.rnn(self.table(ids) * mask.unsqueeze(-1))[0]


def test_token_ids_are_fed_within_their_table() -> None:
    ids, mask = torch.randint(0, 17, (2, 6)), torch.ones(2, 6, dtype=torch.bool)
    result = exported(Tokens(), (ids, mask), dynamic="ids:0=batch;mask:0=batch")
    assert result.report.part(Verification).refused == 0


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_other_float_dtypes(dtype: torch.dtype) -> None:
    model = nn.Linear(6, 4).to(dtype)
    result = exported(model, (torch.rand(3, 6).to(dtype),), dynamic={"input": {0: "n"}})
    assert result.report.part(Verification).outputs[0].tolerance < (1e-1 if dtype == torch.float16 else 1e-12)


@pytest.mark.usefixtures("compared_once")
def test_a_scalar_and_a_model_without_inputs() -> None:
    class Scalar(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    class Nothing(nn.Module):
        def forward(self) -> torch.Tensor:
            return torch.arange(4.0)

    assert ports(exported(Scalar(), (torch.tensor(3.0),)))[0] == {"x": ()}
    assert ports(exported(Nothing(), ()))[0] == {}


@pytest.mark.usefixtures("compared_once")
@pytest.mark.parametrize("opset", [17, 18, 20, 21, 23])
def test_the_opset_is_what_was_asked_for(opset: int) -> None:
    capture = exported(Small(), (torch.rand(2, 1, 8, 6),), opset=opset).report.part(Capture)
    assert capture.opset_got == capture.opset_asked == opset


@pytest.mark.parametrize("opset", [1, 99])
def test_an_opset_that_cannot_be_had_is_refused_with_the_reason(opset: int) -> None:
    class Einsum(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.gelu(torch.einsum("ij,kj->ik", x, x))

    problem = problem_of(Einsum(), (torch.rand(2, 3),), opset=opset)
    assert problem.id == "export/opset"
    assert problem.why


class Frozen(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(2, 3, int(x.shape[1]) // 3) * 1.0


def test_an_axis_that_the_model_froze_is_an_error() -> None:
    problem = problem_of(Frozen(), (torch.rand(2, 12),), dynamic="x:0=batch")
    assert problem.id == "export/frozen-axis"
    assert problem.what == "axis 0 of input 'x' (batch) is fixed to 2 by the model"
    assert "test_export.py:" in problem.where
    line = int(problem.where.rpartition(":")[2])
    assert "reshape(2, 3" in Path(__file__).read_text().splitlines()[line - 1]


class Branch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return x + 1
        return x - 1


def test_a_branch_on_data_is_refused_with_the_line() -> None:
    problem = problem_of(Branch(), (torch.rand(2, 3),), strategy="torch-export")
    assert problem.id == "forward/branch-on-data"
    assert "test_export.py:" in problem.where
    assert "torch.cond" in problem.fix


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.add_(1)
        return x + self.seen


@pytest.mark.usefixtures("compared_once")
def test_state_that_a_model_keeps_is_said() -> None:
    model = Counter()
    result = onnxsmith.export(model, (torch.rand(2, 3),))
    assert any("buffer 'seen'" in note for note in result.report.part(Capture).notes)
    assert float(model.seen) == 0


def test_inputs_that_forward_rejects_name_the_line() -> None:
    problem = problem_of(Small(), (torch.rand(2, 3, 8, 6),))
    assert problem.id == "export/forward-failed"
    assert "test_export.py:" in problem.where
    assert "channels" in problem.why


def test_an_unknown_input_and_an_axis_too_many() -> None:
    x = torch.rand(2, 1, 8, 6)
    assert problem_of(Small(), (x,), dynamic="image:0=batch").id == "export/unknown-input"
    assert problem_of(Small(), (x,), dynamic="x:4=batch").id == "export/dynamic-syntax"
    assert problem_of(Small(), (x,), dynamic={"x": 0}).id == "export/dynamic-syntax"
    assert problem_of(Small(), (x,), dynamic=True).id == "export/dynamic-syntax"


def test_one_name_for_two_sizes() -> None:
    problem = problem_of(Small(), (torch.rand(2, 1, 8, 6),), dynamic="x:2=side,3=side")
    assert problem.id == "export/dimension-conflict"
    assert "8" in problem.what
    assert "6" in problem.what


def test_no_inputs() -> None:
    problem = problem_of(Small())
    assert problem.id == "export/no-inputs"
    assert "x" in problem.where


def test_what_is_no_module() -> None:
    assert problem_of(42).id == "export/target-factory"
    assert problem_of(Small).id == "export/target-factory"


def test_a_wrong_export_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from onnxsmith.exporter import strategy_run as module

    honest = module.simplified

    def sabotaged(*args: Any, **kwargs: Any) -> Any:
        model, part = honest(*args, **kwargs)
        value = next(v for v in model.graph.initializers.values() if len(v.const_value.shape) > 1)
        value.const_value = onnx_tensor(value.const_value.numpy() * 1.01)
        return model, part

    monkeypatch.setattr(module, "simplified", sabotaged)
    result = onnxsmith.export(Small(), (torch.rand(2, 1, 8, 6),), output=tmp_path / "m.onnx")
    assert result.report.verdict.exit_code == 1
    assert not list(tmp_path.iterdir())
    unchecked = onnxsmith.export(Small(), (torch.rand(2, 1, 8, 6),), output=tmp_path / "m.onnx", verify=False)
    assert unchecked.ok
    assert not unchecked.report.part(Verification).verified


def onnx_tensor(array: np.ndarray[Any, Any]) -> Any:
    import onnx_ir as ir

    return ir.tensor(array.astype(np.float32))


def test_the_module_is_not_changed() -> None:
    model = Small().eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    exported(model, (torch.rand(2, 1, 8, 6),))
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


@pytest.mark.usefixtures("compared_once")
def test_weights_in_a_second_file(tmp_path: Path) -> None:
    model = nn.Linear(64, 64)
    result = exported(model, (torch.rand(2, 64),), output=tmp_path / "m.onnx", save=Save(external_data=True))
    assert set(result.report.part(Written).files) == {str(tmp_path / "m.onnx"), str(tmp_path / "m.onnx.data")}
    assert (tmp_path / "m.onnx").stat().st_size < 8000
    assert onnxsmith.run(tmp_path / "m.onnx", {"input": np.zeros((2, 64), np.float32)}).ok


def test_a_number_among_the_results_is_refused() -> None:
    class Numbers(nn.Module):
        def forward(self, x: torch.Tensor) -> dict[str, Any]:
            return {"a": x * 2, "n": 3, "none": None}

    problem = problem_of(Numbers(), (torch.rand(2),))
    assert problem.id == "export/no-outputs"
    assert "3, a int" in problem.what


class Noise(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x + torch.rand_like(x), x * 2


def test_what_is_drawn_at_random_is_said_and_held_by_its_shape() -> None:
    result = exported(Noise(), (torch.rand(2, 3),))
    drawn, other = result.report.part(Verification).outputs
    assert (drawn.drawn, drawn.compared, other.drawn) == (True, 0, False)
    assert "drawn at random, so not compared: output.0" in result.report.headline
    assert any("test_export.py" in note and "random" in note for note in result.report.part(Capture).notes)


class Counted(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x + torch.full_like(x, next(_NUMBERS)), x * 2


def test_noise_that_became_a_constant_is_a_difference() -> None:
    assert onnxsmith.export(Counted(), (torch.rand(2, 3),)).report.verdict is Verdict.DIFFERENT


_NUMBERS = itertools.count()


class Cancels(nn.Module):
    """A distance by way of a product of matrices, which loses digits for near rows; its graph has the difference."""

    def __init__(self, factor: float = 1.0) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x + 0.01
        if torch.compiler.is_exporting():
            return (x - y).square().sum(-1) * self.factor
        return (x * x).sum(-1) - 2 * (x * y).sum(-1) + (y * y).sum(-1)


def test_a_reference_that_loses_digits_does_not_fail_a_graph_that_keeps_them() -> None:
    result = exported(Cancels(), (torch.rand(5, 64),), strategy="torch-export")
    (check,) = result.report.part(Verification).outputs
    assert result.ok
    assert "float64" in check.weak
    wrong = onnxsmith.export(Cancels(1.01), (torch.rand(5, 64),), strategy="torch-export")
    assert wrong.report.verdict is Verdict.DIFFERENT


def test_an_operator_without_a_kernel_is_named_or_another_runtime_judges() -> None:
    layer, example = nn.Linear(4, 3).bfloat16(), (torch.rand(2, 4).bfloat16(),)
    problem = problem_of(layer, example, verify=Verify(runtime="onnxruntime"))
    assert problem.id == "runtime/no-kernel"
    assert "Gemm" in problem.what
    assert exported(layer, example, verify=Verify(runtime="reference")).ok
    other = exported(nn.Linear(4, 3).bfloat16(), (torch.rand(2, 4).bfloat16(),))
    assert "onnxruntime" not in other.report.part(Verification).candidate


@pytest.mark.usefixtures("compared_once")
def test_unused_inputs_are_dropped_when_asked() -> None:
    result = exported(TwoHeads(), (torch.rand(2, 3), torch.rand(5)), drop_unused=True, dynamic={"x": [0]})
    assert list(ports(result)[0]) == ["x"]
    assert result.report.part(Capture).dropped == ("unused",)


@pytest.mark.usefixtures("compared_once")
def test_a_binary_file_is_written_to() -> None:
    buffer = io.BytesIO()
    result = exported(nn.Linear(3, 3), (torch.rand(2, 3),), output=buffer)
    assert onnx.load_from_string(buffer.getvalue()).graph.node
    assert result.report.part(Written).files == {"the given file": len(buffer.getvalue())}


@pytest.mark.usefixtures("compared_once")
def test_weights_can_be_left_out(tmp_path: Path) -> None:
    model = nn.Linear(64, 64)
    exported(model, (torch.rand(2, 64),), output=tmp_path / "m.onnx", weights=False)
    proto = onnx.load(tmp_path / "m.onnx")
    assert [value.name for value in proto.graph.input] == ["input", "weight", "bias"]
    assert not proto.graph.initializer
    assert any(prop.key == "onnxsmith.weights" for prop in proto.metadata_props)
    x = np.ones((2, 64), np.float32)
    feeds = {"input": x, **{name: tensor.numpy() for name, tensor in model.state_dict().items()}}
    outputs = onnxsmith.run(tmp_path / "m.onnx", feeds).outputs
    np.testing.assert_allclose(outputs["output"], model(torch.from_numpy(x)).detach(), rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("compared_once")
def test_what_was_asked_for_is_in_the_file() -> None:
    result = exported(nn.Linear(3, 3), (torch.rand(2, 3),), dynamic={"input": {0: "n"}}, opset=18)
    assert result.model is not None
    assert json.loads(result.model.metadata_props["onnxsmith.export"]) == {
        "target": "Linear",
        "dynamic": {"input": {"0": "n"}},
        "opset": 18,
    }


@pytest.mark.usefixtures("compared_once")
def test_the_report_maps_names_to_arguments() -> None:
    names = {"input_names": ["image", "mask"], "output_names": ["b", "s"]}
    result = exported(TwoHeads(), (torch.rand(2, 3), torch.rand(5)), **names)
    capture = result.report.part(Capture)
    assert [(port.name, port.argument) for port in capture.inputs] == [("image", "x"), ("mask", "unused")]
    assert [(port.name, port.argument) for port in capture.outputs] == [("b", "boxes"), ("s", "scores")]


@pytest.mark.usefixtures("compared_once")
def test_the_file_tells_nobody_where_it_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent)
    exported(Small(), (torch.rand(2, 1, 8, 6),), output=tmp_path / "m.onnx")
    data = (tmp_path / "m.onnx").read_bytes()
    assert b"test_export.py" in data
    assert str(Path(__file__).parent).encode() not in data
    assert b"site-packages" not in data


class Window(nn.Module):
    """Keeps the newest 32 steps."""

    def forward(self, x: torch.Tensor, past: torch.Tensor) -> torch.Tensor:
        kept = torch.cat([past, x], 1)
        if past.shape[1] + x.shape[1] >= 32:
            kept = kept[:, -31:]
        return kept


def test_sizes_beyond_what_the_trace_compared_with_are_tried() -> None:
    args = (torch.randn(2, 1, 3), torch.randn(2, 5, 3))
    axes = {"x": {0: "batch", 1: "new"}, "past": {0: "batch", 1: "past"}}
    result = onnxsmith.export(Window(), args, dynamic=axes, strategy="torch-export")
    assert result.report.verdict is Verdict.DIFFERENT
    sizes = result.report.part(Verification).sizes
    assert sizes is not None
    assert max(sizes["past"]) > 31


def test_a_branch_on_a_size_that_changes_nothing_is_no_difference() -> None:
    class Contiguous(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x.contiguous() if x.shape[0] >= 64 else x) * 2

    result = exported(Contiguous(), (torch.randn(2, 3),), dynamic={"x": {0: "batch"}})
    sizes = result.report.part(Verification).sizes
    assert sizes is not None
    assert max(sizes["batch"]) >= 64


def test_a_graph_that_cannot_be_folded_is_taken_as_it_was_translated() -> None:
    """The optimiser of onnxscript stops at a split into parts whose sizes it does not know."""

    class Chunks(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat([part * 2 for part in x.chunk(math.ceil(x.shape[0] / 128), 0)], 0)

    exported(Chunks(), (torch.randn(4, 8),), dynamic={"x": {0: "batch"}}, strategy="torch-export")
