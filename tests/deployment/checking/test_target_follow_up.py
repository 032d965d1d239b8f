"""`simplify --target` and `export --target`: the file is asked about, and rewritten where it is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.problem import Problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.edits import Edits
from onnxsmith.base.report.parts.target_checks import Stage, TargetChecks
from onnxsmith.base.report.parts.written_files import Timing, Written
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.settings import Save, Verify
from onnxsmith.cli.commands.export import Export
from onnxsmith.cli.commands.simplify import Simplify
from onnxsmith.deployment.checking.target_follow_up import checked_afterwards
from onnxsmith.graph.files.text import from_text
from onnxsmith.runtimes.base import Feeds
from onnxsmith.targets.judges.base import Answer, Refusal
from onnxsmith.targets.judges.onnxruntime import OnnxRuntime
from tests.deployment.checking.fakes import Fake

TEXT = """<ir_version: 10, opset_import: ["": 20]> g (float[n,8] x) => (float[n,8] y) {
  a = Neg(x) b = Neg(a) c = Relu(b) y = Abs(c) }"""


def model(folder: Path, text: str = TEXT) -> Path:
    path = folder / "m.onnx"
    onnxsmith.save(from_text(text), path)
    return path


def simplified(folder: Path, text: str, target: str) -> Report:
    return Simplify(model=str(model(folder, text)), output=str(folder / "s.onnx"), target=target).run()


def test_the_target_is_asked_about_the_file(tmp_path: Path) -> None:
    report = simplified(tmp_path, TEXT, "onnxruntime")
    (one,) = report.part(TargetChecks).checks
    assert (one.target, one.stage) == ("onnxruntime", Stage.AGREED)
    assert report.verdict is Verdict.DONE
    assert report.headline.endswith("; onnxruntime agreed")
    assert sum(isinstance(part, Timing) for part in report.parts) == 1


def test_a_refusal_is_the_verdict_and_the_file_stays(tmp_path: Path) -> None:
    board = tmp_path / "board.toml"
    board.write_text('title = "Board"\nunlisted = "unknown"\nrefused = ["Abs"]', encoding="utf-8")
    output = tmp_path / "s.onnx"
    report = simplified(tmp_path, TEXT, f"profile:{board}")
    assert report.verdict is Verdict.DIFFERENT
    assert output.exists()
    assert "Abs is not supported" in str(report.part(TargetChecks))


def test_what_is_refused_is_rewritten_and_compared(tmp_path: Path, only: Any) -> None:
    def ask(model: ir.Model, feeds: Feeds | None) -> Answer:
        if any(node.op_type == "Mish" for node in model.graph):
            return Answer(Stage.NOT_TRIED, Refusal("no Mish here"))
        return Answer(Stage.BUILT)

    only(Fake(ask))
    text = '<ir_version: 10, opset_import: ["": 20]> g (float[n,8] x) => (float[n,8] y) { y = Mish(x) }'
    output = tmp_path / "s.onnx"
    report = simplified(tmp_path, text, "fake")
    assert report.verdict is Verdict.DONE
    assert any(isinstance(part, Edits) for part in report.parts)
    checks = [part.checks[0].stage for part in report.parts if isinstance(part, TargetChecks)]
    assert checks == [Stage.REFUSED, Stage.BUILT]
    assert "Mish" not in {node.op_type for node in onnxsmith.load(output).graph}
    assert onnxsmith.compare(tmp_path / "m.onnx", output).ok


def test_a_target_that_is_not_installed_leaves_the_file_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = Problem("runtime/not-installed", "it is gone", fix="get it")
    monkeypatch.setattr(OnnxRuntime, "missing", lambda _self: gone)
    output = tmp_path / "s.onnx"
    report = simplified(tmp_path, TEXT, "onnxruntime")
    assert report.verdict is Verdict.CANNOT_TELL
    assert gone in report.problems
    assert output.exists()


def test_a_model_that_was_not_written_is_not_asked_about() -> None:
    report = Report("simplify", Verdict.DIFFERENT, "nothing written", (Written({}, "it differs"),))
    assert checked_afterwards(report, "no such target", Verify(), Save()) is report


def test_an_export_for_a_target(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "net.py").write_text(
        "import torch\n"
        "def build():\n"
        "    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU())\n"
        "    return net, (torch.ones(2, 4),)\n",
        encoding="utf-8",
    )
    output = tmp_path / "net.onnx"
    report = Export(model=f"{tmp_path}/net.py:build", output=str(output), target="onnxruntime@1.16").run()
    assert report.verdict is Verdict.DONE
    made = onnxsmith.load(output)
    assert (made.opset_imports[""], made.ir_version) == (19, 9)
    (one,) = report.part(TargetChecks).checks
    assert one.stage is Stage.FITS
