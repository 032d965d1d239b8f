"""HTML reports in a browser: an ordinary one takes two pages of paper, and axe-core finds no serious fault in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.capture import Capture, PortMap
from onnxsmith.base.report.parts.edits import Entry, Simplification
from onnxsmith.base.report.parts.layers import Layer, Layers
from onnxsmith.base.report.parts.verification import OutputCheck, Power, Verification
from onnxsmith.base.report.parts.written_files import Timing, Written
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli.render.html_report import to_html
from tests.chromium import FromDisk
from tests.viewer.browser.test_accessibility import AXE, faults
from tests.viewer.browser.test_printing import pdf

PORTS = (PortMap("x", "x", "float", ("batch", 1, "height", "width"), ("0=batch",), ("1=1",)),)
OUTPUTS = tuple(OutputCheck(f"y{at}", "float", True, 1e-7, at * 4e-8, 1.0, 1e-6, "rounding", 10) for at in range(20))
PARTS = (
    Capture("net.py:build", "torch.export", PORTS, PORTS, (), None, 20, "", 9, {"batch": 2}, notes=("traced with 2",)),
    Simplification(90, 40, 20, 12, tuple(Entry(at, f"fuse/rule-{at}", "n") for at in range(30)), (), 2),
    Verification("PyTorch", "the file", verified=True, equal=True, runs=("a",) * 10, sizes={"batch": (0, 1, 2)},
                 outputs=OUTPUTS, power=Power("weights", 8, 8, 8)),
    Written({"net.onnx": 248_625}),
    Timing({f"stage {at}": at / 10 for at in range(12)}),
)  # fmt: skip
LAYERS = Layers(
    "a", "b", "seed 1", tuple(
        Layer(f"t{at}", f"r{at}", "name", "Conv", (f"n{at}",), "", "", "float", (1,), 1e-3, 1e-3, 1e-3, 2e-3, 1.0,
              "own error" if at == 7 else "equal") for at in range(60)), ("t7",), 1.0, {"name": 60}, (), (),
)  # fmt: skip
EXPORT = Report("export", Verdict.DONE, PARTS, headline="net.py:build → net.onnx: verified on 10 inputs")
COMPARE = Report("compare", Verdict.DIFFERENT, (*PARTS[2:], LAYERS), (Problem("verify/different", "y differs"),),
                 headline="a and b: DIFFERENT")  # fmt: skip


@pytest.mark.parametrize("report", [EXPORT, COMPARE], ids=["export", "compare"])
def test_a_report_takes_two_pages_of_paper(report: Report, from_disk: FromDisk, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(to_html(report), encoding="utf-8")
    page = from_disk(tmp_path / "report.html")
    assert 1 <= len(pdf(page, tmp_path / "report.pdf")) <= 2
    page.emulate_media(media="print")
    assert page.locator(".on-paper:visible", has_text="more rows in the page").count() >= 1
    page.emulate_media(media="screen")
    assert page.locator(".on-paper:visible").count() == 0


@pytest.mark.skipif(not AXE.exists(), reason="`npm ci` was not run in viewer: `make test` does where npm is")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("report", [EXPORT, COMPARE], ids=["export", "compare"])
def test_no_serious_fault(report: Report, theme: str, from_disk: FromDisk, tmp_path: Path) -> None:
    # axe-core is evaluated as text, which the page's policy refuses
    text = to_html(report).replace('http-equiv="Content-Security-Policy"', "")
    (tmp_path / "report.html").write_text(text, encoding="utf-8")
    page = from_disk(tmp_path / "report.html", color_scheme=theme)
    for summary in page.locator("details > summary").all():
        summary.click()
    assert faults(page) == []
