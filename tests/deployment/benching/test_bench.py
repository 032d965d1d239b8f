"""`bench`, on real runtimes. Times are not tested: what is said about them is."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import onnxsmith
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.measurements import Latencies, Measurement, Ratios
from onnxsmith.base.system import usage
from onnxsmith.cli.render.html_report import to_html
from onnxsmith.graph.files.text import from_text
from onnxsmith.runtimes._isolated import Turn
from onnxsmith.runtimes.onnxruntime import OnnxRuntime, available_providers
from tests.conftest import Refused
from tests.deployment.benching import models
from tests.deployment.benching.models import saved

SHORT = 0.01
"""Seconds of measuring: one round, which is enough for all that is said here but a ranking."""


def test_one_model(tmp_path: Path) -> None:
    result = onnxsmith.bench(saved(tmp_path, models.CHAIN), sizes={"n": 4}, seconds=SHORT)
    assert result.ok
    (one,) = result.report.part(Latencies).subjects
    assert one.subject == "m.onnx on onnxruntime"
    assert one.provider == "CPUExecutionProvider"
    assert 0 < one.curve[0] <= one.p50 <= one.curve[-1]
    assert one.where == "in the runtime's process, around run_with_iobinding"
    assert one.file == (tmp_path / "m.onnx").stat().st_size
    assert one.load > 0
    assert one.first > 0
    if isinstance(usage.HERE, usage.ProcFiles):
        assert one.loaded is not None
        assert one.peak is not None
        assert 0 < one.loaded <= one.peak < 2**30
    part = result.report.part(Measurement)
    assert part.sizes == {"n": 4}
    assert part.inputs == {"x": "float32[4, 8]"}
    assert part.origin == "generated, seed 0"


def test_the_report_is_read_back_equal_and_drawn_without_scripts(tmp_path: Path) -> None:
    path = saved(tmp_path, models.CHAIN)
    sides = f"{path}@reference", f"{path}@onnxruntime"
    report = onnxsmith.bench(*sides, sizes={"n": 4}, seconds=0.05, batches=[1, 4], threads=[1], profile=True).report
    assert Report.from_json(report.to_json()) == report
    page = to_html(report)
    assert page.count("<script>") == 1
    assert "default-src 'none'" in page
    assert len(re.findall(r'<svg class="plot"', page)) >= 2
    assert "Throughput against batch" in page


def test_a_ranking_needs_rounds(tmp_path: Path) -> None:
    a, b = saved(tmp_path, models.CHAIN, "a.onnx"), saved(tmp_path, models.SAME, "b.onnx")
    result = onnxsmith.bench(a, b, sizes={"n": 4}, seconds=SHORT)
    (one,) = result.report.part(Ratios).ratios
    assert result.ok
    assert one.equal is True
    assert not one.ranked
    assert one.ratio is None
    assert "of 8 rounds" in one.why_not
    assert re.search(r"--seconds \d", one.why_not)


def test_a_fast_wrong_model_is_not_ranked(tmp_path: Path) -> None:
    a, b = saved(tmp_path, models.CHAIN, "a.onnx"), saved(tmp_path, models.WRONG, "b.onnx")
    result = onnxsmith.bench(a, b, sizes={"n": 4}, seconds=SHORT)
    (one,) = result.report.part(Ratios).ratios
    assert (one.equal, one.ranked) == (False, False)
    assert result.report.verdict.exit_code == 1
    assert result.report.headline.startswith("OUTPUTS DIFFER")


def test_outputs_of_another_number_are_not_compared(tmp_path: Path) -> None:
    a, b = saved(tmp_path, models.CHAIN, "a.onnx"), saved(tmp_path, models.TWO, "b.onnx")
    result = onnxsmith.bench(a, b, sizes={"n": 4}, seconds=SHORT)
    (one,) = result.report.part(Ratios).ratios
    assert one.equal is False
    assert "verify/outputs-differ" in one.outputs
    assert len(result.report.part(Latencies).subjects) == 2


def test_a_model_that_needs_more_inputs_fails_and_the_other_is_measured(tmp_path: Path) -> None:
    a, b = saved(tmp_path, models.CHAIN, "a.onnx"), saved(tmp_path, models.MORE, "b.onnx")
    result = onnxsmith.bench(a, b, sizes={"n": 4}, seconds=SHORT)
    assert result.report.verdict.exit_code == 2
    assert [one.id for one in result.report.problems] == ["verify/interface"]
    assert [one.subject for one in result.report.part(Latencies).subjects] == ["a.onnx on onnxruntime"]
    assert "FAILED: b.onnx on onnxruntime" in result.report.headline


def test_if_the_first_fails_the_others_are_compared_with_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONNXSMITH_TIME_LIMIT", "2")
    texts = (models.ENDLESS, models.CHAIN, models.WRONG)
    paths = [saved(tmp_path, text, f"{name}.onnx") for text, name in zip(texts, "abc", strict=True)]
    result = onnxsmith.bench(*paths, sizes={"n": 2}, seconds=SHORT)
    part = result.report.part(Ratios)
    assert part.first == "b.onnx on onnxruntime"
    assert [(one.subject, one.equal) for one in part.ratios] == [("c.onnx on onnxruntime", False)]


def test_a_runtime_that_is_not_there_fails_and_the_others_are_measured(tmp_path: Path) -> None:
    path = saved(tmp_path, models.CHAIN)
    subjects = ["nobody", "onnxruntime:disable", "onnxruntime:tensorrt"]
    result = onnxsmith.bench(path, subjects=subjects, sizes={"n": 4}, seconds=SHORT)
    assert [one.id for one in result.report.problems] == ["runtime/unknown", "runtime/provider-missing"]
    assert "--subject onnxruntime" in result.report.problems[1].fix
    assert len(result.report.part(Latencies).failed) == 2
    assert [one.subject for one in result.report.part(Latencies).subjects] == ["m.onnx on onnxruntime:disable"]


def test_every_runtime_of_the_room_is_a_subject(tmp_path: Path) -> None:
    result = onnxsmith.bench(
        saved(tmp_path, models.CHAIN), subjects=["reference", "fake"], sizes={"n": 4}, seconds=SHORT
    )
    places = {one.subject: one.where for one in result.report.part(Latencies).subjects}
    assert places["m.onnx on reference"].startswith("in the runtime's process")
    assert places["m.onnx on fake"].startswith("around the whole call")  # it has no process that can time


def test_a_child_that_cannot_time_is_timed_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Turn.begin

    def older(self: Turn) -> None:
        begin(self)
        del self.head["times"]

    monkeypatch.setattr(Turn, "begin", older)
    result = onnxsmith.bench(saved(tmp_path, models.CHAIN), sizes={"n": 4}, seconds=SHORT)
    assert result.report.part(Latencies).subjects[0].where.startswith("around the whole call")


@pytest.mark.parametrize(
    ("text", "sizes", "kind"),
    [
        (models.TABLE, {"n": 50}, "int64[50]"),
        (models.TEXTS, {"n": 3}, "object[3]"),
        (models.SEQUENCE, {"n": 3}, "a sequence"),
        (models.CHAIN, {"n": 0}, "float32[0, 8]"),
        (models.FIXED, {}, "float32[2, 8]"),
    ],
    ids=["indices", "strings", "sequence", "no elements", "fixed"],
)
def test_inputs_of_other_kinds(tmp_path: Path, text: str, sizes: dict[str, int], kind: str) -> None:
    result = onnxsmith.bench(saved(tmp_path, text), sizes=sizes, seconds=SHORT)
    assert result.ok, result.report.problems
    assert result.report.part(Measurement).inputs["x"].startswith(kind)


def test_given_inputs_decide_the_sizes(tmp_path: Path, refused: Refused) -> None:
    path = saved(tmp_path, models.CHAIN)
    result = onnxsmith.bench(path, inputs={"x": np.ones((5, 8), np.float32)}, seconds=SHORT)
    assert result.report.part(Measurement).sizes == {"n": 5}
    assert result.report.part(Measurement).origin == "given"
    with refused("run/dimension-conflict"):
        onnxsmith.bench(path, inputs={"x": np.ones((5, 8), np.float32)}, sizes={"n": 4})
    with refused("run/wrong-dtype"):
        onnxsmith.bench(path, inputs={"x": np.ones((5, 8))}, seconds=SHORT)


def test_subjects_have_names_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    a, b = saved(tmp_path / "old", models.CHAIN), saved(tmp_path, models.CHAIN)
    result = onnxsmith.bench(a, b, b, sizes={"n": 2}, seconds=SHORT)
    assert [one.subject for one in result.report.part(Latencies).subjects] == [
        f"{a} on onnxruntime",
        f"{b} on onnxruntime",
        f"{b} (2) on onnxruntime",
    ]


def test_a_model_in_memory() -> None:
    result = onnxsmith.bench(from_text(models.CHAIN), sizes={"n": 2}, seconds=SHORT)
    assert result.report.part(Latencies).subjects[0].subject == "given.onnx on onnxruntime"


def test_requests_that_fit_no_model(tmp_path: Path, refused: Refused) -> None:
    path = saved(tmp_path, models.CHAIN)
    with refused("bench/no-model"):
        onnxsmith.bench()
    with refused("bench/unsized") as refusal:
        onnxsmith.bench(path)
    assert "--dim n=8" in refusal.problem.fix
    with refused("bench/no-dimension"):
        onnxsmith.bench(path, sizes={"m": 2})
    with refused("bench/no-subject"):
        onnxsmith.bench(path, subjects=["torch"])
    with refused("bench/no-subject"):
        onnxsmith.bench(f"{path}@torch")
    with refused("model/not-found"):
        onnxsmith.bench(str(tmp_path / "missing.onnx"))
    with refused("runtime/unknown"):
        onnxsmith.bench(path, subjects=["nobody"], sizes={"n": 2})


def test_an_endless_model_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONNXSMITH_TIME_LIMIT", "2")
    a, b = saved(tmp_path, models.CHAIN, "a.onnx"), saved(tmp_path, models.ENDLESS, "b.onnx")
    result = onnxsmith.bench(a, b, sizes={"n": 2}, seconds=SHORT)
    assert [one.id for one in result.report.problems] == ["runtime/timeout"]
    assert [one.subject for one in result.report.part(Latencies).subjects] == ["a.onnx on onnxruntime"]


def test_a_model_that_takes_too_much_memory_fails(tmp_path: Path, refused: Refused) -> None:
    with refused("runtime/memory"):
        onnxsmith.bench(saved(tmp_path, models.HUGE), sizes={"n": 2}, seconds=SHORT)


def test_nodes_on_another_provider_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """onnxruntime's CPU wheel has one more provider, for Azure, which runs no node of the standard: all fall back."""
    if "AzureExecutionProvider" not in available_providers()["providers"]:
        pytest.skip("this build of onnxruntime has the CPU provider only")
    monkeypatch.setattr(OnnxRuntime, "providers", ("cpu", "AzureExecutionProvider"))
    path = saved(tmp_path, models.CHAIN)
    result = onnxsmith.bench(path, subjects=["onnxruntime:AzureExecutionProvider"], sizes={"n": 2}, seconds=SHORT)
    (problem,) = result.report.problems
    assert problem.id == "bench/provider-fell-back"
    assert problem.what == "3 of 3 nodes did not run on AzureExecutionProvider"
    assert "Exp" in problem.where
    assert "CPUExecutionProvider" in problem.why
    assert result.report.verdict.exit_code == 1


@pytest.mark.gpu("onnxruntime")
def test_the_cuda_provider_is_measured(tmp_path: Path) -> None:
    path = saved(tmp_path, models.CHAIN)
    result = onnxsmith.bench(path, subjects=["onnxruntime:cuda", "onnxruntime"], sizes={"n": 64}, seconds=SHORT)
    assert not result.report.part(Latencies).failed
    assert result.report.part(Latencies).subjects[0].provider == "CUDAExecutionProvider"
    assert result.report.part(Ratios).ratios[0].equal is True
