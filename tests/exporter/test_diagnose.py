"""`diagnose`: planted faults are named with their line, and what it says to paste works."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.base.report.parts.capture import Diagnosis, Finding, Weight
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.exporter.translating.register import forget, registered

PLANTED = sorted((Path(__file__).parent / "planted").glob("*.py"))
SAMPLE = ("branch_return", "device_cuda", "loop_rows", "several", "view_int")
"""Those that every run of the tests takes; all of them take minutes."""


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """What a test registers holds for the test."""
    yield
    for one in registered():
        forget(one.target)


def imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"planted_{path.stem}_{abs(hash(path))}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # torch.while_loop and scan look there for the functions that they follow
    spec.loader.exec_module(module)
    return module


def pasted(path: Path, findings: tuple[Finding, ...]) -> str:
    """The file with every suggestion in its place, from the last line to the first."""
    lines = path.read_text().splitlines()
    own = {(f.first, f.last): f.code for f in findings if f.first and f.problem.where.startswith(f"{path}:")}
    for (first, last), code in sorted(own.items(), reverse=True):
        lines[first - 1 : last] = code.splitlines()
    return "\n".join(lines) + "\n"


def exported(module: ModuleType, built: tuple[Any, Any]) -> onnxsmith.Result:
    net, args = built
    if hasattr(module, "after"):
        args = module.after(net, args)
    return onnxsmith.export(
        net,
        args,
        dynamic=getattr(module, "DYNAMIC_AFTER", module.DYNAMIC) or None,
        opset=getattr(module, "OPSET_AFTER", module.OPSET),
    )


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.stem, marks=() if path.stem in SAMPLE else (pytest.mark.whole,)) for path in PLANTED],
)
def test_a_planted_fault_is_named_and_mended(path: Path, tmp_path: Path) -> None:
    module = imported(path)
    net, args = module.build()
    result = onnxsmith.diagnose(net, args, dynamic=module.DYNAMIC or None, opset=module.OPSET)
    found = result.report.part(Diagnosis).findings
    marked = [number for number, line in enumerate(path.read_text().splitlines(), 1) if "# <- here" in line]
    wanted = {(module.EXPECTED, f"{path}:{number}") for number in marked}
    named = {(f.problem.id, f.problem.where) for f in found}
    assert wanted <= named, named
    assert module.EXPECTED in {f.problem.id for f in found}, named
    if hasattr(module, "mended"):
        mended, built = module, module.mended()
    else:
        (tmp_path / "mended.py").write_text(pasted(path, found))
        mended = imported(tmp_path / "mended.py")
        built = mended.build()
    assert exported(mended, built).ok


class Plain(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) + x.shape[0]


def test_a_module_that_comes_through_has_nothing_found() -> None:
    result = onnxsmith.diagnose(Plain(), (torch.rand(3, 4),), dynamic="x:0=batch")
    assert result.ok
    assert result.report.problems == ()
    assert result.report.part(Diagnosis).axes[0].together == "stays dynamic"
    assert onnxsmith.Report.from_json(result.report.to_json()) == result.report


class Counts(torch.nn.Module):
    """No capture reaches the end: the number of different values is a Python number."""

    def __init__(self, *, fixed: bool) -> None:
        super().__init__()
        self.fixed = fixed

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.fixed:
            x = x + torch.zeros(int(x.shape[0]), 1)
        return x * len(set(x[:, 0].unique().tolist()))


@pytest.mark.parametrize("fixed", [False, True])
def test_an_axis_is_not_known_if_no_capture_reached_the_end(fixed: bool) -> None:
    axes = {"x": {0: "batch", 1: "features"}}
    result = onnxsmith.diagnose(Counts(fixed=fixed), (torch.rand(3, 4),), dynamic=axes)
    assert not result.ok
    batch, features = result.report.part(Diagnosis).axes
    stopped = f"not known: the trace stopped at {__file__}:"
    assert [one.startswith(stopped) for one in (features.together, features.alone)] == [True, True]
    wanted = f"fixed to 3 at {__file__}:" if fixed else stopped
    assert [one.startswith(wanted) for one in (batch.together, batch.alone)] == [True, True]


class Draws(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.rand_like(x)


def test_random_numbers_are_a_note() -> None:
    result = onnxsmith.diagnose(Draws(), (torch.rand(3, 4),))
    (finding,) = result.report.part(Diagnosis).findings
    assert (finding.problem.id, finding.weight) == ("forward/random", Weight.NOTE)
    assert result.ok


def test_numbers_to_pass_in_get_the_dynamic_axes_too() -> None:
    """Without them the new module, which adds them to x, would accept one size of x only."""
    fixed = onnxsmith.diagnose(Draws(), (torch.rand(3, 4),)).report.problems[0].fix
    said = "(pass the random numbers as an input: add a last argument noise to forward, for example torch.rand_like(x)"
    assert f"{said}):\n    def forward(self, x: torch.Tensor, noise)" in fixed
    dynamic = onnxsmith.diagnose(Draws(), (torch.rand(3, 4),), dynamic="x:0=batch").report.problems[0].fix
    assert f"{said}, and name its dynamic axes too, as noise:AXIS=NAME):\n" in dynamic


class Packed(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        with warnings.catch_warnings(action="ignore"):  # torch is about to drop it
            self.lstm = torch.ao.nn.quantized.dynamic.LSTM(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.lstm(x[None])[0][0]
        return y


def test_a_module_that_a_rewrite_refuses_is_a_finding() -> None:
    found = onnxsmith.diagnose(Packed(), (torch.rand(3, 4),)).report
    assert [one.id for one in found.problems] == ["export/quantized-module"]


def test_what_the_usual_runtime_lacks_is_a_note_where_another_one_verifies() -> None:
    report = onnxsmith.diagnose(nn.Linear(4, 4).bfloat16(), (torch.rand(3, 4).bfloat16(),)).report
    (finding,) = report.part(Diagnosis).findings
    assert (finding.problem.id, finding.weight) == ("runtime/no-kernel", Weight.NOTE)
    assert report.verdict is Verdict.DONE
    assert ", 1 note; run on " in report.headline


class Cache:
    def __init__(self, keys: torch.Tensor) -> None:
        self.keys = keys


class Attends(torch.nn.Module):
    def forward(self, x: torch.Tensor, cache: Cache) -> torch.Tensor:
        return x @ cache.keys


def test_an_object_that_is_taken_apart_is_no_finding() -> None:
    result = onnxsmith.diagnose(Attends(), (torch.rand(3, 4), Cache(torch.rand(4, 4))), dynamic="x:0=batch")
    assert result.report.problems == ()


class Follows(torch.nn.Module):
    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return x * scale.data.sum()


def test_an_input_that_the_delivered_graph_follows_is_no_constant() -> None:
    result = onnxsmith.diagnose(Follows(), (torch.rand(3, 4), torch.rand(4)))
    assert {one.id for one in result.report.problems} == {"forward/data-attribute"}
    assert result.ok


def doubled(y: Any) -> Any:
    return np.multiply(y, 2)


class InNumpy(torch.nn.Module):
    def __init__(self, end: Any) -> None:
        super().__init__()
        self.end = end

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.detach().numpy()
        y = np.tanh(doubled(y))
        return torch.from_numpy(self.end(y))


def clipped(y: Any) -> Any:
    return np.clip(y, 0, 1)


def differences(y: Any) -> Any:
    return np.ediff1d(y)


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (clipped, ["torch.mul(y, 2)", "x.detach()", "torch.tanh(doubled(y))", "self.end(y)", "torch.clip(y, 0, 1)"]),
        (differences, []),
    ],
)
def test_lines_of_numpy_are_replaced_together_or_not_at_all(end: Any, code: list[str]) -> None:
    """Each line alone would hand a tensor to numpy, or return an array."""
    found = onnxsmith.diagnose(InNumpy(end), (torch.rand(3, 4),)).report.part(Diagnosis).findings
    assert {one.problem.id for one in found} == {"forward/numpy"}
    assert [one.code.strip().rpartition("return ")[2].rpartition("y = ")[2] for one in found if one.code] == code


class Stuck(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(4, 5)
        self.register_buffer("start", torch.zeros(1, 3, 5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.lstm(x, (self.start, self.start))[0]
        return result


def test_an_axis_that_the_module_does_not_move_is_told() -> None:
    result = onnxsmith.diagnose(Stuck(), (torch.rand(7, 3, 4),), dynamic="x:0=time,1=batch")
    (problem,) = result.report.problems
    assert (problem.id, problem.what) == ("export/frozen-axis", "axis 1 of input 'x' (batch) was tested at size 3 only")


def test_a_registration_goes_behind_the_last_line() -> None:
    path = Path(__file__).parent / "planted" / "missing_operator.py"
    report = onnxsmith.diagnose(*imported(path).build()).report
    first = report.part(Diagnosis).findings[0]
    assert first.rung == "register"
    assert first.code.startswith('import onnxsmith\n\n\n@onnxsmith.register("planted::damped")\ndef ')
    count = len(path.read_text().splitlines())
    assert f"after line {count} of {path}, its last line:" in "".join(
        str(one) for one in report.part(Diagnosis).blocks()
    )


class Twice(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        if x.sum() > 0:
            x = x * self.count
        return x + torch.rand_like(x)


def test_all_is_found_at_once_and_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    net = Twice().train()
    result = onnxsmith.diagnose(net, (torch.rand(3, 4),))
    found = {finding.problem.id for finding in result.report.part(Diagnosis).findings}
    assert {"forward/state", "forward/branch-on-data", "forward/random"} <= found
    assert result.report.verdict is onnxsmith.Verdict.DIFFERENT
    assert net.training
    assert net.count == 0
    assert list(tmp_path.iterdir()) == []


class FitsFour(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.zeros(4, 3)


class Table(nn.Module):
    def __init__(self, *, whole: bool) -> None:
        super().__init__()
        self.positions = nn.Parameter(torch.randn(16, 8))
        self.whole = whole

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + (self.positions if self.whole else self.positions[: x.shape[1]])


def test_the_conclusion_follows_from_the_findings() -> None:
    found = onnxsmith.diagnose(FitsFour(), (torch.randn(4, 3),), dynamic={"x": {0: "n"}}).report
    assert found.headline == "FitsFour: 1 problem; n was accepted at 1 and 4 only"
    assert found.verdict is Verdict.DIFFERENT
    assert found.problems[0].id == "forward/literal-size"
    axes = {"x": {0: "batch", 1: "time"}}
    whole = onnxsmith.diagnose(Table(whole=True), (torch.randn(2, 16, 8),), dynamic=axes).report
    assert whole.headline == "Table: 1 problem; time was accepted at 1 and 16 only"
    assert whole.problems[0].id == "forward/table-length"


def test_an_axis_that_is_taken_up_to_a_size_is_in_the_headline() -> None:
    axes = {"x": {0: "batch", 1: "time"}}
    found = onnxsmith.diagnose(Table(whole=False), (torch.randn(2, 5, 8),), dynamic=axes).report
    assert found.headline == "Table: the model can be exported; time was refused above 16"
    assert found.verdict is Verdict.DONE
