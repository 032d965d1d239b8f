"""Eigenvectors, singular vectors and the factors of QR are compared up to their signs; a wrong graph still differs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import onnxsmith
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.exporter.tracing.free_signs import free_signs
from onnxsmith.verification.free_values import of_model

Forward = Callable[[torch.Tensor], Any]


class Module(torch.nn.Module):
    def __init__(self, forward: Forward) -> None:
        super().__init__()
        self.compute = forward

    def forward(self, a: torch.Tensor) -> Any:
        return self.compute(a)


def _eigh(a: torch.Tensor) -> Any:
    return torch.linalg.eigh(a @ a.mT)


def _svd(a: torch.Tensor) -> Any:
    return torch.linalg.svd(a, full_matrices=False)


def _principal(a: torch.Tensor) -> torch.Tensor:
    return a @ torch.linalg.eigh(a.mT @ a)[1][:, -2:]


def _mixed(a: torch.Tensor) -> Any:
    vectors = torch.linalg.eigh(a @ a.mT)[1]
    return vectors, vectors[:, -1]


CASES: list[tuple[Forward, tuple[int, ...], list[str]]] = [
    (_eigh, (4, 4), ["sign:1:-2"]),
    (_eigh, (2, 4, 4), ["sign:1:-2"]),
    (_svd, (5, 3), ["sign:0:-2+2:-1"]),
    (torch.svd, (5, 3), ["sign:0:-2+2:-2"]),
    (torch.linalg.svd, (3, 3), ["sign:0:-2+2:-1"]),
    (torch.linalg.svd, (5, 3), []),
    (torch.linalg.qr, (5, 3), ["sign:0:-2+1:-1"]),
    (_principal, (6, 4), ["sign:0:-2"]),
    (lambda a: -_eigh(a)[1].mT * 2, (4, 4), ["sign:0:-1"]),
    (lambda a: _eigh(a)[1].mT @ a, (4, 4), ["sign:0:-1"]),
    (lambda a: _eigh(a)[1][:, -1], (4, 4), ["sign:0:-1"]),
    (lambda a: _eigh(a)[1].unsqueeze(0).permute(2, 1, 0), (4, 4), ["sign:0:-2,-1"]),
    (_mixed, (4, 4), []),
    (lambda a: _eigh(a)[1].abs(), (4, 4), []),
    (lambda a: _eigh(a)[1] + 1, (4, 4), []),
    (lambda a: _eigh(a)[1] @ a, (4, 4), []),
    (lambda a: torch.linalg.eigvalsh(a), (4, 4), []),
]


@pytest.mark.parametrize(("forward", "shape", "found"), CASES)
def test_the_captured_program_says_what_is_free(forward: Forward, shape: tuple[int, ...], found: list[str]) -> None:
    program = torch.export.export(Module(forward), (torch.rand(shape),))
    assert [str(one) for one in free_signs(program)] == found


@pytest.mark.parametrize("number", [0, 2, 7])
def test_a_right_graph_passes(number: int, tmp_path: Path) -> None:
    forward, shape, _ = CASES[number]
    torch.manual_seed(0)
    result = onnxsmith.export(Module(forward), (torch.randn(shape),), output=tmp_path / "m.onnx")
    assert result.report.verdict.exit_code == 0, result.report.headline
    assert "free up to sign" in [output.free for output in result.report.part(Verification).outputs]
    assert of_model(onnxsmith.load(tmp_path / "m.onnx"))
    again = onnxsmith.compare((Module(forward), (torch.randn(shape),)), tmp_path / "m.onnx").report
    assert again.verdict.exit_code == 0, again.headline


WRONG: dict[str, Forward] = {
    "a magnitude": lambda v: v * torch.tensor([1.0, 1.01, 1.0, 1.0]),
    "another column": lambda v: v[:, [1, 0, 2, 3]],
    "a sign inside": lambda v: v * torch.tensor([[1.0], [-1.0], [1.0], [1.0]]),
    "no sign at all": lambda v: v.abs(),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_graph_is_refused(wrong: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    example = (torch.randn(4, 4),)
    spoilt = Module(lambda a: WRONG[wrong](_eigh(a)[1]))
    onnxsmith.export(spoilt, example, output=tmp_path / "m.onnx", verify=False)
    right = (Module(lambda a: _eigh(a)[1]), example)
    found = onnxsmith.compare(right, tmp_path / "m.onnx", free=["sign:output"]).report
    assert found.part(Verification).differs
