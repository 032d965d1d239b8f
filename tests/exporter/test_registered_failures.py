"""Operators without a translation, and registered translations that raise or compute something else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.base import clock
from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.parts.capture import Capture, Diagnosis
from onnxsmith.base.seams.torch import translator
from onnxsmith.exporter.factory import TorchModel
from onnxsmith.exporter.inputs.module_program import build
from onnxsmith.exporter.module import translation_trial
from onnxsmith.exporter.strategy_run import Maker
from onnxsmith.exporter.translating.register import DELIVERIES, forget, registered


@torch.library.custom_op("failures::cheb", mutates_args=())
def cheb(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Computes Chebyshev distances."""
    return torch.from_numpy(np.abs(a.detach().numpy()[:, None] - b.detach().numpy()[None]).max(-1))


@cheb.register_fake
def _(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.new_empty(a.shape[0], b.shape[0])


@torch.library.custom_op("failures::unsaid", mutates_args=())
def unsaid(a: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(a.detach().numpy() * 2)


@torch.library.custom_op("failures::shapeless", mutates_args=())
def shapeless(a: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(a.detach().numpy() * 2)


@torch.library.custom_op("failures::decided", mutates_args=())
def decided(a: torch.Tensor) -> torch.Tensor:
    return a * 2 if a.sum() > 0 else a * 3


@torch.library.custom_op("failures::plain", mutates_args=())
def plain(a: torch.Tensor) -> torch.Tensor:
    return a * 2


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * x


class Distances(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.centres = nn.Parameter(torch.randn(5, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return cheb(x * 2, self.centres) + 1


class Unsaid(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return unsaid(x) + 1


class Squares(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = Square.apply(x)  # type: ignore[no-untyped-call]
        return found + 1


X = (torch.rand(4, 3),)


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    yield
    for one in registered():
        forget(one.target)


@pytest.fixture
def strategies(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The titles of the strategies that are run."""
    titles: list[str] = []
    make = Maker.make

    def counting(self: Maker, strategy: Any, *rest: Any) -> Any:
        titles.append(strategy.title)
        return make(self, strategy, *rest)

    monkeypatch.setattr(Maker, "make", counting)
    return titles


def refusal(module: nn.Module, **options: Any) -> Problem:
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.export(module, X, dynamic="auto", **options)
    return caught.value.problem


def line_of(text: str) -> str:
    """`file:line` of the only line of this file that ends with `text`."""
    lines = Path(__file__).read_text().splitlines()
    (number,) = (number for number, line in enumerate(lines, 1) if line.endswith(f"  {text}"))
    return f"{__file__}:{number}"


@pytest.mark.parametrize(
    ("module", "target"), [(Distances(), "failures::cheb"), (Unsaid(), "failures::unsaid")], ids=["cheb", "unsaid"]
)
def test_an_operator_without_a_translation_ends_after_one_capture(
    module: nn.Module, target: str, strategies: list[str]
) -> None:
    found = refusal(module)
    assert (found.id, found.what) == ("export/no-translation", f"no ONNX translation for {target}")
    assert strategies == ["torch.export + torch.onnx"]


def test_an_operator_of_torch_in_the_trace_ends_after_one_capture(strategies: list[str]) -> None:
    class Eigenvalues(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.linalg.eigvals(x.T @ x).real

    assert refusal(Eigenvalues()).what == "no ONNX translation for aten::linalg_eig"
    assert strategies == ["torch.export + torch.onnx"]


def test_another_strategy_is_tried_for_an_operator_that_it_knows(
    strategies: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translator, "has_symbolic", lambda name, opset: True)
    refusal(Distances())
    assert "torch.jit.trace + torch.onnx (TorchScript)" in strategies


def test_progress_names_the_strategy() -> None:
    stages: list[str] = []
    with clock.listening(lambda name, _done, _total: stages.append(name)):
        onnxsmith.export(nn.ReLU(), X, verify=None)
    assert "capture: torch.export + torch.onnx" in stages


def in_numpy(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return helped(a, b)


def helped(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(np.abs(a.numpy()[:, None] - b.numpy()[None]).max(-1))  # the helper


def of_unsaid(a: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(a.numpy() * 2)  # of unsaid


def of_square(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:  # of Square
        return x * x
    return -x


@pytest.mark.parametrize(
    ("module", "target", "translation", "line", "said"),
    [
        (Distances(), "failures::cheb", in_numpy, "# the helper", "in_numpy computes with numpy"),
        (Unsaid(), "failures::unsaid", of_unsaid, "# of unsaid", "of_unsaid computes with numpy"),
        (Squares(), Square, of_square, "# of Square", "an `if` tests the value of a tensor"),
    ],
    ids=["operator", "shapeless", "function"],
)
@pytest.mark.parametrize("deliver", DELIVERIES)
def test_an_error_in_a_registered_translation_names_it(
    module: nn.Module, target: Any, translation: Callable[..., Any], line: str, said: str, deliver: str
) -> None:
    onnxsmith.register(target, translation, deliver=deliver)
    found = refusal(module, strategy="torch-export")
    assert found.id == "export/translation-failed"
    assert f"the translation {translation.__name__} that you registered for" in found.what
    assert found.where == line_of(line)
    assert said in found.why
    assert f"correct the translation at {found.where}" in found.fix


def test_a_translation_that_raises_ends_after_one_capture(strategies: list[str]) -> None:
    onnxsmith.register("failures::cheb", in_numpy)
    assert refusal(Distances()).id == "export/translation-failed"
    assert strategies == ["torch.export + torch.onnx"]


def test_a_diagnosis_reports_a_translation_that_raises() -> None:
    onnxsmith.register("failures::cheb", in_numpy)
    (found,) = onnxsmith.diagnose(Distances(), X).report.problems
    assert (found.id, found.where) == ("export/translation-failed", line_of("# the helper"))


def nearest(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:  # nearest
    return (a[:, None] - b[None]).abs().amin(-1)


def right(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a[:, None] - b[None]).abs().amax(-1)


def in_a_node(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return onnxsmith.onnx_op("ReduceMin", (a[:, None] - b[None]).abs().transpose(0, 2), keepdims=0)


@pytest.mark.parametrize("deliver", DELIVERIES)
def test_a_translation_that_computes_something_else_is_named(deliver: str, strategies: list[str]) -> None:
    onnxsmith.register("failures::cheb", nearest, deliver=deliver)
    (found,) = onnxsmith.export(Distances(), X, dynamic="auto").report.problems
    assert found.id == "verify/different"
    assert "the translation nearest that you registered for failures::cheb" in found.why
    assert "the translation's results differ by up to" in found.why
    assert found.fix == f"correct the translation at {line_of('# nearest')}"
    assert strategies == ["torch.export + torch.onnx"]


def test_a_wrong_translation_of_a_function_is_named() -> None:
    onnxsmith.register(Square, lambda x: x * 3)
    (found,) = onnxsmith.export(Squares(), X, strategy="torch-export").report.problems
    assert "that you registered for Square" in found.why
    assert "computes other results than the operator" in found.why


def test_a_wrong_translation_is_named_where_a_strategy_without_translations_agrees() -> None:
    onnxsmith.register(Square, lambda x: x * 3)
    report = onnxsmith.export(Squares(), X).report
    assert report.verdict is onnxsmith.Verdict.DONE
    assert "that you registered for Square" in report.part(Capture).tried[0]


def test_a_diagnosis_names_a_wrong_translation() -> None:
    onnxsmith.register("failures::cheb", nearest)
    (found,) = onnxsmith.diagnose(Distances(), X).report.problems
    assert "the translation nearest that you registered for failures::cheb" in found.why


def test_a_right_translation_is_not_blamed() -> None:
    built = build(TorchModel(Distances(), X), {})
    onnxsmith.register("failures::cheb", right)
    (trial,) = translation_trial.tried(registered(), built.program, built.example)
    assert trial.was_compared
    assert not trial.difference
    said = translation_trial.with_trials(Problem("verify/different", "it differs", why="as it is", fix="look"), [trial])
    assert "agrees with the operator" in said.why
    assert "as it is" in said.why


def test_a_translation_with_a_node_of_onnx_is_not_compared() -> None:
    built = build(TorchModel(Distances(), X), {})
    onnxsmith.register("failures::cheb", in_a_node)
    (trial,) = translation_trial.tried(registered(), built.program, built.example)
    assert not trial.was_compared
    assert "was not compared with the operator alone" in str(trial)


def code_for(module: nn.Module) -> str:
    return onnxsmith.diagnose(module, X).report.part(Diagnosis).findings[0].code


class Shapeless(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return shapeless(x) + 1


class Decided(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return decided(x) + 1


class Plain(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return plain(x)


@pytest.mark.parametrize(
    ("module", "why"),
    [(Distances(), "it computes with numpy"), (Shapeless(), "it computes with numpy"), (Decided(), "an `if` tests")],
    ids=["numpy", "shapeless", "branch"],
)
def test_code_that_a_trace_cannot_follow_is_left_to_the_reader(module: nn.Module, why: str) -> None:
    code = code_for(module)
    assert "with functions of torch here: the code of the operator cannot be traced" in code
    assert why in code
    assert "numpy()" not in code
    compile(code, "code", "exec")


def test_code_that_a_trace_can_follow_is_offered() -> None:
    assert code_for(Plain()).endswith("    return a * 2")


def test_the_report_says_what_an_operator_without_a_form_in_onnx_is_composed_of() -> None:
    class Bessel(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.special.i0(x) + torch.special.i0(x + 1)

    notes = onnxsmith.export(Bessel(), X, verify=None).report.part(Capture).notes
    (said,) = (note for note in notes if "special_i0" in note)
    why = "PyTorch's exporter has no translation for this operator; onnxsmith composes it of "
    assert said.startswith(f"aten::special_i0 (2 calls): {why}")
    assert said.endswith("operators each: Bessel and Airy functions, computed in float64")


def test_operators_that_onnx_has_are_not_in_the_report() -> None:
    notes = onnxsmith.export(nn.Sequential(nn.Linear(3, 4), nn.GELU()), X, verify=None).report.part(Capture).notes
    assert not [note for note in notes if "composed of" in note]
