"""Where torch misleads, or says nothing: what `export` says there, with the line and what helps."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.base.report.parts.capture import Capture, Diagnosis
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.report.verdict import Verdict


def refusal(*args: Any, **options: Any) -> onnxsmith.Problem:
    """Of the first way alone, which is what all of them together say as well."""
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.export(*args, **options, strategy="torch-export")
    return caught.value.problem


def line_of(where: str) -> str:
    file, _, number = where.rpartition(":")
    assert Path(file) == Path(__file__)
    return Path(file).read_text().splitlines()[int(number) - 1]


@torch.library.custom_op("messages::halved", mutates_args=())
def halved(x: torch.Tensor) -> torch.Tensor:
    return x / 2


@halved.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


@torch.library.custom_op("messages::unsaid", mutates_args=())
def unsaid(x: torch.Tensor) -> torch.Tensor:
    return x / 2


class Custom(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        return halved(y)


class CustomAfterANumber(nn.Module):
    def forward(self, x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        number = rows.max().item()
        check: Any = torch._check
        check(number >= 0)
        check(number <= x.shape[0])
        return halved(x)[:number]


class Shapeless(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return unsaid(x) + 1


class Eigenvalues(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.eigvals(x).abs()


@pytest.mark.parametrize(
    ("net", "target", "code"),
    [
        (Custom(), "messages::halved", "return halved(y)"),
        (Shapeless(), "messages::unsaid", "return unsaid(x) + 1"),
        (Eigenvalues(), "aten::linalg_eig", "torch.linalg.eigvals(x).abs()"),
    ],
)
def test_submit_a_pull_request(net: nn.Module, target: str, code: str) -> None:
    problem = refusal(net, (torch.rand(3, 3),))
    assert problem.id == "export/no-translation"
    assert problem.what == f"no ONNX translation for {target}"
    assert code in line_of(problem.where)
    assert f"@onnxsmith.register('{target}')" in problem.fix


def test_a_missing_operator_is_named_beside_a_number_taken_from_a_tensor() -> None:
    problem = refusal(CustomAfterANumber(), (torch.rand(5, 3), torch.tensor([1, 2])), dynamic="x:0=rows")
    assert problem.what == "no ONNX translation for messages::halved"


class Leaves(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * x.data.sum()


def test_a_lifted_tensor() -> None:
    problem = refusal(Leaves(), (torch.rand(3),))
    assert problem.id == "forward/data-attribute"
    assert "lifted_tensor" in problem.why


def test_a_packed_weight_of_another_kind() -> None:
    with warnings.catch_warnings(action="ignore"):  # torch is about to drop it; models that have it are there
        net = nn.Sequential(torch.ao.nn.quantized.dynamic.LSTM(4, 4))
        problem = refusal(net, (torch.rand(2, 3, 4),))
    assert problem.id == "export/quantized-module"
    assert "0._all_weight_values.0" in problem.what
    assert "onnxsmith quantize" in problem.fix


class Sampled(nn.Module):
    def forward(self, x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
        return nn.functional.grid_sample(x, grid, align_corners=False)


def test_an_opset_without_an_operator() -> None:
    problem = refusal(Sampled(), (torch.rand(1, 2, 4, 4), torch.rand(1, 3, 3, 2)), opset=12)
    assert problem.id == "export/opset"
    assert "GridSample" in problem.where
    assert "opset 15 has no such operator" in problem.why
    assert "12" in problem.what


@pytest.mark.usefixtures("compared_once")
def test_an_opset_before_that_of_an_operator_with_a_body() -> None:
    result = onnxsmith.export(nn.LayerNorm(4), (torch.rand(2, 4),), opset=12)
    assert result.model.opset_imports[""] == 12
    assert result.ok


class Options(nn.Module):
    def forward(self, x: torch.Tensor, options: dict[str, torch.Tensor]) -> torch.Tensor:
        return x + options["shift"]


def test_a_missing_argument() -> None:
    found = onnxsmith.diagnose(Options(), (torch.rand(2),)).report.part(Diagnosis).findings
    assert [(one.problem.id, one.problem.what) for one in found] == [
        ("export/missing-argument", "forward did not get its argument 'options'")
    ]


def test_a_class_that_could_not_be_imported(tmp_path: Path) -> None:
    lines = (
        "def build():",
        "    try:",
        "        raise RuntimeError('operator torchvision::nms does not exist')",
        "    except RuntimeError as error:",
        "        raise ModuleNotFoundError(\"Could not import module 'BertForSequenceClassification'.\") from error",
    )
    (tmp_path / "net.py").write_text("\n".join(lines))
    problem = refusal(f"{tmp_path / 'net.py'}:build")
    assert problem.id == "export/transformers-import"
    assert "torchvision::nms" in problem.why
    assert "torchvision" in problem.fix


class Baked(nn.Module):
    def forward(self, x: torch.Tensor, factor: torch.Tensor, unused: torch.Tensor) -> torch.Tensor:
        return x * float(factor)


def test_an_input_that_became_a_constant_is_named() -> None:
    args = (torch.rand(3), torch.rand(()), torch.rand(2))
    report = onnxsmith.export(Baked(), args, strategy="torchscript").report
    assert report.verdict is Verdict.DIFFERENT
    assert [one.id for one in report.problems] == ["export/constant-input", "verify/different"]
    assert report.problems[0].what == "input 'factor' became a constant: no output of the graph depends on it"
    assert "float(factor)" in line_of(report.problems[0].where)
    unverified = onnxsmith.export(Baked(), args, strategy="torchscript", verify=False).report
    assert unverified.notes == ("input 'factor' became a constant: no output of the graph depends on it",)
    assert [port.name for port in report.part(Capture).inputs if not port.used] == ["factor", "unused"]


class Slots:
    """It is called like a function: nobody knows whether what it holds are its inputs."""

    __slots__ = ("keys", "rest")

    def __init__(self, keys: torch.Tensor) -> None:
        self.keys = keys

    def __call__(self) -> torch.Tensor:
        return self.keys


class Attends(nn.Module):
    def forward(self, x: torch.Tensor, cache: Slots) -> torch.Tensor:
        return x @ cache.keys


@pytest.mark.usefixtures("compared_once")
def test_an_object_that_cannot_be_taken_apart_is_said() -> None:
    result = onnxsmith.export(Attends(), (torch.rand(2, 3), Slots(torch.rand(3, 3))))
    said = "an argument of class Slots cannot be unpacked: its tensors (keys) are constants of the graph"
    assert said in result.report.part(Capture).notes


class FirstCall(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.factor: torch.Tensor | None = None
        self.table: dict[int, torch.Tensor] = {}
        self.calls: list[int] = []

    def forward(self, x: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
        if self.factor is None:
            self.factor = factor.clone()
        if 0 not in self.table:
            self.table[0] = factor + 1
        self.calls.append(1)
        return x * self.factor + self.table[0]


@pytest.mark.usefixtures("compared_once")
def test_what_the_first_call_keeps_is_no_constant_and_is_not_left_behind() -> None:
    net = FirstCall()
    result = onnxsmith.export(net, (torch.rand(3), torch.rand(3)))
    assert result.ok
    assert all(port.used for port in result.report.part(Capture).inputs)
    assert (net.factor, net.table, net.calls) == (None, {}, [])


class ForThree(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.arange(3.0).unsqueeze(1) @ torch.ones(1, 4)


def test_a_module_that_takes_one_size_only_is_not_silent() -> None:
    x = torch.rand(3, 4)
    assert refusal(ForThree(), (x,), dynamic="x:0=n").id == "export/frozen-axis"


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.lstm(x, (torch.zeros(1, 3, 5), torch.zeros(1, 3, 5)))[0]
        return result


def test_an_axis_that_the_module_itself_does_not_move_is_said() -> None:
    result = onnxsmith.export(Layer(), (torch.rand(7, 3, 4),), dynamic="x:0=time,1=batch")
    assert any("batch was checked at size 3 only" in note for note in result.report.part(Verification).notes)


class Sparse(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("adjacency", torch.eye(4).to_sparse())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sparse.mm(self.adjacency, x)  # type: ignore[no-any-return]


def test_a_sparse_tensor_is_to_be_made_dense() -> None:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.export(Sparse(), (torch.randn(4, 3),))
    assert "sparse" in caught.value.problem.why
    assert "to_dense()" in caught.value.problem.fix
