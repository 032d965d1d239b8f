"""A fixed axis: an export gives the line and the code that a diagnosis gives, and offers code that was tried."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.parts.capture import Diagnosis
from onnxsmith.exporter.factory import TorchModel
from onnxsmith.exporter.inputs import module_program as programs
from onnxsmith.exporter.lint._numbers_of_sizes import FOLLOW_SIZES
from onnxsmith.exporter.module.run_observation import observe
from onnxsmith.exporter.rewrites import symbolic_sizes
from onnxsmith.exporter.strategies.torchscript import Torchscript
from onnxsmith.exporter.tracing import frozen_code
from onnxsmith.exporter.tracing.frozen_code import suspicions


class Literal(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(5, 3) + 1


class Number(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = int(x.shape[0])
        return x.reshape(n, 3, 1)


class OtherShapes(nn.Module):
    """The sides have different shapes, so that torch.where computes something else."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() < 2:
            return x[:, :1]
        return x * 2


class TwoLiterals(nn.Module):
    """Only the first 2 is the size of the axis."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(2, 4, 2, 4).sum(2)


class SecondLiteral(nn.Module):
    """Only the second 2 is the size of the axis."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.transpose(0, 1).reshape(2, 4, 2).sum(0)


class LiteralsOfTwoLines(nn.Module):
    """The first number of two lines is the size of the axis, and those of the last line are not."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.view(2, 8) * 2
        z = y.reshape(2, 4, 2)
        return z.repeat(1, 2, 1)


class LiteralAndTable(nn.Module):
    """The number of elements of a table fixes the axis, too."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.ones(16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(2, 4, 2) + self.table.reshape(2, 4, 2)


@pytest.mark.parametrize(
    ("module", "size", "codes"),
    [
        (TwoLiterals(), 32, ["return x.reshape(x.shape[0], 4, 2, 4).sum(2)"]),
        (SecondLiteral(), 8, ["return x.transpose(0, 1).reshape(2, 4, x.shape[0]).sum(0)"]),
        (LiteralsOfTwoLines(), 8, ["y = x.view(x.shape[0], 8) * 2", "z = y.reshape(x.shape[0], 4, 2)"]),
    ],
)
def test_only_the_numbers_that_fix_the_axis_are_replaced(module: nn.Module, size: int, codes: list[str]) -> None:
    model = TorchModel(module, (torch.randn(2, size),))
    built = programs.build(model, {"x": {0: "n"}})
    found = [one for one in suspicions(model, built, observe(model)) if one.freezes]
    assert [one.finding.code.strip() for one in found] == codes


def test_a_line_with_several_numbers_has_no_code_if_no_choice_of_them_follows_the_size() -> None:
    model = TorchModel(LiteralAndTable(), (torch.randn(2, 8),))
    built = programs.build(model, {"x": {0: "n"}})
    (found,) = (one for one in suspicions(model, built, observe(model)) if one.literals)
    assert found.finding.code == ""
    assert found.finding.problem.fix == "take the size from the input: x.shape[0]"


class Numbers(nn.Module):
    """Adds what a function makes of a size, two lines after the size has left the tensors."""

    def __init__(self, call: Callable[[int], Any]) -> None:
        super().__init__()
        self.call = call

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made = self.call(x.shape[0])
        y = torch.relu(x)
        return y + torch.as_tensor(made, dtype=y.dtype)[..., None]


def counted(n: int) -> Any:
    return np.arange(n)


def weighted(n: int) -> Any:
    return torch.from_numpy(np.linspace(0, 1, n)[::1])


def triangular(n: int) -> Any:
    return np.tril(np.ones((n, n), dtype=np.float32)).sum(0)


def turned(n: int) -> Any:
    return torch.zeros(len(range(n)))


def logarithm(n: int) -> Any:
    return math.lgamma(n)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (counted, "torch.arange(n)"),
        (weighted, "torch.linspace(0, 1, n, dtype=torch.float64)[::1]"),
        (triangular, "torch.tril(torch.ones((n, n), dtype=torch.float32)).sum(0)"),
        (turned, "torch.zeros(n)"),
        (logarithm, "torch.lgamma(torch.full((), n, dtype=torch.float64))"),
    ],
)
def test_a_size_that_leaves_the_tensors_is_named_where_it_leaves_them(call: Callable[[int], Any], code: str) -> None:
    """numpy fixes no size at its line: torch fixes it where the array meets another tensor."""
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.export(Numbers(call), (torch.rand(6, 4),), dynamic="x:0=n", strategy="torch-export")
    said = caught.value.problem
    assert said.id == "export/frozen-axis"
    assert said.where == f"{__file__}:{call.__code__.co_firstlineno + 1}"
    assert said.fix.endswith(f"\n    return {code}")
    assert "tried: torch.export then captures the module" in said.fix
    assert onnxsmith.export(Numbers(call), (torch.rand(6, 4),), dynamic="x:0=n").ok


class LiteralAndRoot(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(6, 4, 1) / math.sqrt(x.shape[0])


def test_a_function_of_math_that_follows_the_size_is_not_blamed() -> None:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.export(LiteralAndRoot(), (torch.rand(6, 4),), dynamic="x:0=n", strategy="torch-export")
    assert "the number 6 is the example's size" in caught.value.problem.why
    assert caught.value.problem.fix.endswith("return x.view(x.shape[0], 4, 1) / math.sqrt(x.shape[0])")
    assert symbolic_sizes.FUNCTIONS.keys() <= FOLLOW_SIZES


def backwards(n: int) -> Any:
    return np.array(list(range(n))[::-1])


def test_code_that_fails_is_not_offered_for_a_size() -> None:
    """A tensor has no negative steps."""
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.export(Numbers(backwards), (torch.rand(6, 4),), dynamic="x:0=n", strategy="torch-export")
    said = caught.value.problem
    assert said.where == f"{__file__}:{backwards.__code__.co_firstlineno + 1}"
    assert said.fix.startswith("compute it without np.array: functions of torch accept sizes (not tried); or ")


def test_an_export_offers_only_the_number_that_fixes_the_axis() -> None:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.export(TwoLiterals(), (torch.rand(2, 32),), dynamic="x:0=n", strategy="torch-export")
    assert caught.value.problem.fix.endswith("\n        return x.reshape(x.shape[0], 4, 2, 4).sum(2)")


@pytest.mark.parametrize("module", [Literal(), Number()])
def test_an_export_says_what_a_diagnosis_says(module: nn.Module) -> None:
    example = (torch.randn(5, 3),)
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.export(module, example, dynamic="x:0=n", strategy="torch-export")
    said = caught.value.problem
    assert said.id == "export/frozen-axis"
    found = onnxsmith.diagnose(module, example, dynamic="x:0=n").report.part(Diagnosis).findings[0]
    assert said.where == found.problem.where
    assert found.code.strip() in said.fix
    assert found.problem.what in said.why


@pytest.mark.parametrize("positive", [True, False])
def test_code_that_computes_something_else_is_not_offered(positive: bool) -> None:
    model = TorchModel(OtherShapes(), (torch.ones(5, 3) * (1 if positive else -1),))
    built = programs.build(model, {})
    (found,) = (one for one in suspicions(model, built, observe(model)) if "branch" in one.finding.problem.id)
    assert found.finding.code == ""


class Rows(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = []
        for row in x:
            if True:
                y = row * 2
            rows.append(y + 1)
        return torch.stack(rows)


class TwoLines(nn.Module):
    """The trace stops at each of the lines, one after the other."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.view(5, 3, 1)

        # the lines between stay
        z = (y + 1).reshape(5, 1, 3)
        return z * 2


class Later(nn.Module):
    """No code of this module keeps the axis: after the first line, another one fixes it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.view(5, 3, 1)
        return y * torch.arange(5.0)[:, None, None]


class Eigenvalues(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = int(x.shape[0])
        return torch.linalg.eigvals(x.reshape(n, 2, 2)).real


class EigenvaluesByRow(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = []
        for i in range(int(x.shape[0])):
            values = torch.linalg.eigvals(x[i].view(2, 2))
            rows.append(values.real)
        return torch.stack(rows)


class EigenvaluesOfLiteral(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.eigvals(x.view(5, 2, 2)).real


def _refusal(module: nn.Module, **options: Any) -> Problem:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.export(module, (torch.randn(5, _width(module)),), dynamic="x:0=n", **options)
    assert "⏎" not in str(caught.value)
    return caught.value.problem


def _width(module: nn.Module) -> int:
    return 4 if "Eigenvalues" in type(module).__name__ else 3


def test_code_keeps_its_lines_and_their_indentation() -> None:
    found = _refusal(Rows(), strategy="torch-export")
    before, *code = found.fix.splitlines()
    assert before.startswith("write lines ")
    assert before.endswith("(tried: torch.export then captures the module), or leave x:0 out of --dynamic:")
    assert found.tried == ("\n".join(code),)
    assert code[0] == "        def turn(row):"
    assert code[1].startswith("            ")
    assert code[-1].startswith("        ")
    compile("def forward(self, x):\n" + "\n".join(code), "pasted", "exec")


def test_lines_that_stop_a_trace_one_after_the_other_are_offered_together() -> None:
    found = _refusal(TwoLines(), strategy="torch-export")
    assert "(tried: torch.export then captures the module)" in found.fix
    assert found.fix.splitlines()[1:] == [
        "        y = x.view(x.shape[0], 3, 1)",
        "",
        "        # the lines between stay",
        "        z = (y + 1).reshape(x.shape[0], 1, 3)",
    ]


def test_code_after_which_another_line_fixes_the_axis_is_not_offered() -> None:
    assert "write line" not in _refusal(Later(), strategy="torch-export").fix


@pytest.mark.parametrize("module", [Eigenvalues(), EigenvaluesByRow(), EigenvaluesOfLiteral()])
def test_an_operator_without_a_translation_comes_before_a_fixed_axis(module: nn.Module) -> None:
    found = _refusal(module, strategy="torch-export")
    assert found.id == "export/no-translation"
    assert "aten::linalg_eig" in found.what
    assert found.where.startswith(f"{__file__}:")
    assert "axis 0 of input 'x' (n) is fixed to 5" in found.why


def test_no_dear_strategy_is_tried_for_an_operator_that_it_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    def capture(*_: Any) -> None:
        raise AssertionError("a dear strategy was tried")

    monkeypatch.setattr(Torchscript, "capture", capture)
    assert _refusal(Eigenvalues()).id == "export/no-translation"
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.export(Eigenvalues(), (torch.randn(5, 4),), dynamic="auto")
    assert caught.value.problem.id == "export/no-translation"


def test_a_diagnosis_lists_the_operator_beside_the_fixed_axis() -> None:
    report = onnxsmith.diagnose(Eigenvalues(), (torch.randn(5, 4),), dynamic="x:0=n").report
    assert {"export/no-translation", "forward/size-as-number"} <= {one.id for one in report.problems}


def test_without_time_for_a_further_trial_the_outcome_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frozen_code, "_LEAST_SECONDS", -1.0)
    model = TorchModel(TwoLines(), (torch.randn(5, 3),))
    built = programs.build(model, {"x": {0: "n"}})
    found = suspicions(model, built, observe(model))
    trial = frozen_code._trial(found[0], found, built, -1.0)
    assert trial is not None
    assert trial.outcome == "not tried: a trial would take longer than the export"
    assert not trial.helped
    assert len(trial.suspicions) == 2


class TwoAxes(nn.Module):
    """The trace stops at the batch; the number 10 fixes the other axis."""

    def __init__(self) -> None:
        super().__init__()
        self.queries = nn.Linear(32, 64)
        self.result = nn.Linear(32, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b = 5
        q, k = self.queries(x).chunk(2, -1)
        q = q.view(b, 10, 4, -1).transpose(1, 2)
        k = k.view(x.shape[0], x.shape[1], 4, -1).transpose(1, 2)
        a = (q @ k.transpose(-1, -2) / q.shape[-1]).softmax(-1) @ k
        return x + self.result(a.transpose(1, 2).reshape(x.shape[0], x.shape[1], -1))


class TwoAxesAtOnce(nn.Module):
    """The trace fixes both axes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b = 5
        return x.view(b, 10, 8) + x


class EqualSizes(nn.Module):
    """The number 4 is the size of both axes, and stands for the second one."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(-1, 4, 6) + x


class Heads(nn.Module):
    """The number 2 counts heads; it only equals the example's size of axis 1."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b = 5
        return x.view(b, x.shape[1], 2, 4) + 1


def _of_two_axes(module: nn.Module, *shape: int) -> Problem:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.export(module, (torch.randn(*shape),), dynamic="x:0=n,1=m", strategy="torch-export")
    return caught.value.problem


def test_a_finding_about_another_axis_adds_this_axis_to_the_error() -> None:
    found = _of_two_axes(TwoAxes(), 5, 10, 32)
    fixed = "axis 0 of input 'x' (n) is fixed to 5 by the model; axis 1 of input 'x' (m) is fixed too, to 10"
    assert found.what == fixed
    assert "10 is the example's size of axis 1 of 'x'" in found.why
    assert found.fix.endswith("; or leave x:0, x:1 out of --dynamic")


def test_all_axes_that_a_trace_fixed_are_named() -> None:
    found = _of_two_axes(TwoAxesAtOnce(), 5, 10, 8)
    assert "axis 1 of input 'x' (m) is fixed to 10 by the model" in found.what
    assert "axis 0 of input 'x' (n) is fixed too, to 5" in found.what


def test_a_number_that_is_the_size_of_two_axes_names_both() -> None:
    found = _of_two_axes(EqualSizes(), 4, 4, 6)
    assert "4 is the example's size of axis 0 of 'x' and axis 1 of 'x'" in found.why


def test_a_number_that_fixes_no_axis_is_not_blamed() -> None:
    found = _of_two_axes(Heads(), 5, 2, 8)
    assert found.what == "axis 0 of input 'x' (n) is fixed to 5 by the model"
    assert "the number 2" not in found.why
    assert "x:1" not in found.fix


class Packed(nn.Module):
    """Sorts sequences by length, packs them, and restores their order."""

    def __init__(self, *, as_list: bool) -> None:
        super().__init__()
        self.rnn, self.as_list = nn.GRU(3, 4, batch_first=True), as_list

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        order = torch.sort(lengths, descending=True).indices
        lengths = lengths[order]
        if self.as_list:
            lengths = list(lengths)  # type: ignore[assignment]
        packed = nn.utils.rnn.pack_padded_sequence(x[order], lengths, batch_first=True)
        out = nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0], batch_first=True, total_length=x.shape[1])[0]
        return out[torch.sort(order).indices]


def test_a_list_of_a_tensor_is_told_to_stay_a_tensor() -> None:
    given = (torch.randn(3, 5, 3), torch.tensor([2, 5, 3]))
    axes = "x:0=batch;lengths:0=batch"
    with pytest.raises(OnnxsmithError) as raised:
        onnxsmith.export(Packed(as_list=True), given, dynamic=axes)
    assert "a Python value from each element" in raised.value.problem.why
    assert "pass the tensor itself" in raised.value.problem.fix
    assert onnxsmith.export(Packed(as_list=False), given, dynamic=axes).ok
