"""The reference of an export is the module as its user calls it: in evaluation mode, without gradients, by the kernels
that torch takes by default."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.exporter.factory import TorchModel
from onnxsmith.exporter.inputs import module_program
from onnxsmith.exporter.module.called_paths import Reference, without_kernels
from onnxsmith.exporter.rewrites import attention_modules

pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
AXES = {"src": {0: "batch", 1: "time"}, "src_key_padding_mask": {0: "batch", 1: "time"}}
LEFT = torch.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 0, 1], [0, 0, 0, 0, 0]]).bool()


def layer(**options: Any) -> nn.TransformerEncoderLayer:
    return nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, **options)


def encoder(**options: Any) -> nn.TransformerEncoder:
    return nn.TransformerEncoder(layer(), 2, **options)


def test_a_padded_encoder_gives_what_its_user_gets(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module, x = encoder(norm=nn.LayerNorm(8)).eval(), torch.randn(3, 5, 8)
    file = tmp_path / "m.onnx"
    result = onnxsmith.export(module, (x,), {"src_key_padding_mask": LEFT}, dynamic=AXES, output=file)
    assert result.ok, result.report.problems
    ragged = torch.tensor([[1, 0, 0, 1, 1], [0, 1, 0, 0, 1], [0, 0, 0, 0, 0]]).bool()
    for mask in (LEFT, ragged, LEFT.flip(0)):
        with torch.no_grad():
            expected = module(x, src_key_padding_mask=mask).numpy()
        got = onnxsmith.run(file, {"src": x.numpy(), "src_key_padding_mask": mask.numpy()}).outputs["output"]
        assert np.allclose(np.asarray(got), expected, atol=1e-4)


@pytest.mark.parametrize("check", [True, False])
def test_a_nested_encoder_is_written_as_torch_computes_it(check: bool) -> None:
    torch.manual_seed(0)
    for number in range(60):
        module = encoder(mask_check=check, norm=nn.LayerNorm(8) if number % 3 else None).eval()
        batch, time = (int(size) for size in torch.randint(1, 5, (2,)))
        mask = torch.rand(batch, time) < torch.rand(())
        if number % 5 == 0:
            mask = torch.arange(time) >= torch.randint(0, time + 1, (batch, 1))
        given = torch.where(mask, -torch.inf, 0.0) if number % 7 == 0 else mask
        x = torch.randn(batch, time, 8)
        if mask.all():
            continue  # torch itself refuses it
        with torch.no_grad():
            called = module(x, src_key_padding_mask=given)
            with without_kernels():
                traced = attention_modules._encoded(module, x, src_key_padding_mask=given)
        assert torch.allclose(torch.where(called.isnan(), traced, called), traced, atol=1e-4)


def test_an_encoder_whose_user_switched_the_kernel_off_is_its_formula() -> None:
    with without_kernels():
        result = onnxsmith.export(encoder(), (torch.randn(3, 5, 8),), {"src_key_padding_mask": LEFT}, dynamic=AXES)
    assert result.ok
    assert not any("zeros at padded places" in note for note in result.report.parts[0].notes)  # type: ignore[attr-defined]


def test_a_query_that_may_attend_to_nothing_is_left_out_and_said() -> None:
    x, mask = torch.randn(3, 5, 8), LEFT.clone()
    built = module_program.build(TorchModel(layer().eval(), (x,), {"src_key_padding_mask": mask}), {})
    with Reference(built.program) as reference:
        assert not np.isnan(np.asarray(reference.run(built.example)["output"])).any()
        assert reference.untried == ()
        mask[1] = True
        with pytest.raises(onnxsmith.OnnxsmithError) as caught:
            reference.run({"src": x.numpy(), "src_key_padding_mask": mask.numpy()})
        assert caught.value.problem.id == "export/other-path"
        assert reference.untried == ("1 input left out: on it, only torch's fused kernels return NaN",)


def bias() -> torch.Tensor:
    return torch.tril(torch.full((5, 5), -0.3)) - 0.1


def test_a_float_mask_that_the_kernel_reads_as_boolean_is_a_problem_with_its_line(tmp_path: Path) -> None:
    axes = {"src": {0: "batch"}}
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.export(layer(), (torch.randn(3, 5, 8), bias()), dynamic=axes, output=tmp_path / "m.onnx")
    assert caught.value.problem.id == "export/other-path"
    assert "transformer.py:" in caught.value.problem.where
    assert not (tmp_path / "m.onnx").exists()
    accepted = onnxsmith.export(
        layer(), (torch.randn(3, 5, 8), bias()), dynamic=axes, output=tmp_path / "m.onnx", as_traced=True
    )
    assert accepted.ok
    assert "compared with the traced module" in accepted.report.headline


class Branch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + 1
        if torch.compiler.is_exporting():
            return x * 2
        return x * 3


class Outer(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.scale = nn.Linear(4, 4)
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(self.scale(x))  # type: ignore[no-any-return]


def test_another_branch_while_exporting_is_named_with_its_line() -> None:
    result = onnxsmith.export(Outer(Branch()), (torch.randn(3, 4),), strategy="torch-export")
    assert result.report.verdict is Verdict.DIFFERENT
    first = result.report.problems[0]
    assert first.id == "export/other-path"
    assert first.what.startswith("inner (Branch) returns other results")
    line = Branch.forward.__code__.co_firstlineno + 2
    assert first.where == f"{__file__}:{line}"


def test_branches_on_exporting_go_as_when_called_where_that_can_be_traced() -> None:
    result = onnxsmith.export(Outer(Branch()), (torch.randn(3, 4),), dynamic={"x": {0: "n"}})
    assert result.ok
    assert "as when called" in result.report.parts[0].how  # type: ignore[attr-defined]
    assert result.report.part(Verification).untried == ()


def test_accepting_the_traced_path_says_so_only_where_it_differs() -> None:
    differs = onnxsmith.export(Outer(Branch()), (torch.randn(3, 4),), strategy="torch-export", as_traced=True)
    assert differs.ok
    assert "whose results differ from those of a call" in differs.report.headline
    alike = onnxsmith.export(Outer(nn.ReLU()), (torch.randn(3, 4),), as_traced=True)
    assert alike.ok
    assert "as called" not in alike.report.headline


class AsksForGradients(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.scale(x) * (2 if torch.is_grad_enabled() else 3)
        return -y if y.requires_grad else y  # type: ignore[no-any-return]


def test_a_branch_on_gradients_goes_as_without_them() -> None:
    assert onnxsmith.export(AsksForGradients(), (torch.randn(3, 4),), strategy="torch-export").ok
    assert onnxsmith.export(AsksForGradients(), (torch.randn(3, 4),), strategy="torchscript").ok


class AsksOnnx(nn.Module):
    """Takes another branch while torch exports to ONNX."""

    def __init__(self, more: float) -> None:
        super().__init__()
        self.more = more

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.more - x if torch.onnx.is_in_onnx_export() else -x


@pytest.mark.parametrize(("more", "kind"), [(0.0, "Sub"), (2.0, "Neg")])
def test_the_branch_for_an_export_to_onnx_is_traced_and_compared_with_the_call(more: float, kind: str) -> None:
    result = onnxsmith.export(AsksOnnx(more), (torch.rand(2, 3),), simplify=False)
    assert result.ok
    assert result.model is not None
    assert kind in {node.op_type for node in result.model.graph}
    assert not torch.onnx.is_in_onnx_export()
