"""A terminal shows the verdict first, then what needs attention, then a line for each part; `-v` and a pipe show the
parts, and the verdict last."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.base import Block, Part, Report, Table, Text, Tone
from onnxsmith.base.report.parts.edits import Entry, Simplification
from onnxsmith.base.report.parts.target_checks import Stage, TargetCheck, TargetChecks
from onnxsmith.base.report.parts.verification import OutputCheck, Power, Verification
from onnxsmith.base.report.parts.written_files import Timing, Written
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli.render.terminal import show


def printed(report: Report, *, whole: bool = False) -> list[str]:
    out = io.StringIO()
    show(report, Console(file=out, width=80, height=30), whole=whole, brief=True)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def output(name: str, worst: float, *, equal: bool = True) -> OutputCheck:
    return OutputCheck(name, "float", equal, worst, worst, 1.0, 1e-6, "rounding", 10)


VERIFIED = Verification(
    "PyTorch", "the file", verified=True, equal=True, runs=("a", "b"), sizes={"batch": (0, 3, 1)},
    outputs=(output("near", 1e-7), output("far", 8e-7)), power=Power("weights", 4, 4, 4), notes=("h was not tried",),
)  # fmt: skip
PARTS = (VERIFIED, Written({"m.onnx": 2000}), Timing({"load": 0.25, "verify": 2.0}))
DONE = Report("export", Verdict.DONE, PARTS, headline="net → m.onnx: verified", notes=("the opset was raised",))


def test_the_verdict_stands_first_and_a_part_is_one_line() -> None:
    assert printed(DONE) == [
        "net → m.onnx: verified",
        "  against      PyTorch",
        "  compared on  2 inputs, batch 0 to 3",
        "  worst error  8e-07 of the scale of far, 1e-06 allowed (of 2 outputs)",
        "  how sure     the check would notice a change of 1% in each of the 4 weights",
        "",
        "note: the opset was raised",
        "note: h was not tried",
        "",
        "  Files  m.onnx (2 KB)",
        "  Time   2.2 s: verify 2.0 s, load 0.2 s",
        "",
        "  all of it: -v, --html, --json",
    ]


def test_verbose_shows_the_parts_and_the_verdict_last() -> None:
    lines = printed(DONE, whole=True)
    assert lines[0] == "Verification"
    assert lines[-1] == "net → m.onnx: verified"
    assert "  m.onnx  2,000 bytes" in lines


def test_a_pipe_gets_the_parts_and_the_verdict_last() -> None:
    out = io.StringIO()
    show(DONE, Console(file=out, width=160))
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert lines == printed(DONE, whole=True)


def test_a_difference_is_named_with_its_outputs() -> None:
    part = Verification("a", "b", verified=True, equal=False, runs=("x",),
                        outputs=(output("y", 0.5, equal=False), output("z", 0.0)))  # fmt: skip
    lines = printed(Report("compare", Verdict.DIFFERENT, (part,), headline="DIFFERENT"))
    assert "  worst error  0.5 of the scale of y, 1e-06 allowed (of 2 outputs)" in lines
    assert "  Verification  1 of 2 outputs DIFFERENT: y" in lines


def test_what_was_not_verified_is_said() -> None:
    part = Verification("a", "b", verified=False, equal=False, why_not="--no-verify")
    lines = printed(Report("export", Verdict.DONE, (part,), headline="not verified"))
    assert "note: NOT VERIFIED: --no-verify" in lines
    assert "  Verification  NOT VERIFIED" in lines


@pytest.mark.parametrize(
    ("refused", "said"),
    [
        ((Entry(1, "fuse/a", "x", "it is read twice"),), "1 refused: fuse/a (it is read twice)"),
        ((Entry(1, "fuse/a", "x", "no"), Entry(2, "fuse/b", "y", "no")), "2 refused: fuse/a, fuse/b"),
    ],
)
def test_refused_rules_are_counted_and_named(refused: tuple[Entry, ...], said: str) -> None:
    part = Simplification(3, 2, 0, 0, (Entry(3, "fuse/c", "z", gone=("Add",)),), refused, 1)
    assert part.line() == f"3 → 2 nodes; by fuse/c (1); {said}"


class Listing(Part):
    """Has a table that is the point of its report."""

    title = "Listing"

    def blocks(self) -> tuple[Block, ...]:  # type: ignore[override]
        return Table(("name",), tuple((f"row {at}",) for at in range(60)), is_key=True), Text("it is odd", Tone.WARN)


def test_a_listing_is_shown_and_a_long_report_ends_with_its_verdict() -> None:
    lines = printed(Report("list", Verdict.DONE, (Listing(), Timing({"load": 1.0})), headline="60 rows"))
    assert all(f"  row {at}" in lines for at in range(60))
    assert lines[-1] == "60 rows"
    assert lines.count("60 rows") == 1


def test_many_targets_stand_by_result_and_few_have_their_tables() -> None:
    stages = {"a": Stage.AGREED, "b": Stage.REFUSED, "c": Stage.NOT_TRIED, "d": Stage.AGREED}
    checks = tuple(TargetCheck(name, "", "1", True, stage, why="why" * (stage is Stage.REFUSED))
                   for name, stage in stages.items())  # fmt: skip
    lines = printed(Report("check", Verdict.DIFFERENT, (TargetChecks(checks),), headline="m.onnx"))
    assert lines[:5] == ["m.onnx", "  refused    b", "  not tried  c", "  agreed     a, d", ""]
    assert "b: why" in lines
    few = printed(Report("check", Verdict.DIFFERENT, (TargetChecks(checks[:2]),), headline="m.onnx"))
    assert "  target  version  how    result   shapes   nodes" in few


def test_a_problem_is_not_told_twice() -> None:
    part = Verification("a", "b", verified=True, equal=False, runs=("x",), unsure=("too little moves",))
    found = Problem("verify/cannot-tell", "it cannot tell: too little moves")
    text = "\n".join(printed(Report("compare", Verdict.CANNOT_TELL, (part,), (found,), headline="CANNOT TELL")))
    assert text.count("too little moves") == 1


def test_a_few_words_of_a_verdict_hide_no_sentence() -> None:
    part = Verification("a", "b", verified=True, equal=False, runs=("x",), unsure=("2 nodes",))
    text = "\n".join(printed(Report("edit", Verdict.CANNOT_TELL, (part,), headline="m.onnx: 12 nodes, CANNOT TELL")))
    assert "CANNOT TELL: 2 nodes" in text
