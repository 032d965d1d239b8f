"""Times and memory of a baseline. `bench` is simulated: nothing here depends on how fast this machine is."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.baselines import Baselines
from onnxsmith.base.report.parts.measurements import Latencies, Latency, Measurement
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.deployment.benching import baseline as saved_figures
from onnxsmith.deployment.benching.bench_options import Request
from onnxsmith.deployment.benching.measurement_statistics import FLOOR
from onnxsmith.gate.baselines import times, verbs
from onnxsmith.gate.baselines.settings import Settings
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text

MODEL = '<ir_version: 10, opset_import: ["": 20]> g (float[2] x) => (float[2] y) { y = Neg(x) }'
SETTINGS = Settings()


def measurement(*, busy: bool) -> Measurement:
    return Measurement({}, {}, "given", 10, 1.0, "ended", "cpu", 2, {}, None, None, None, busy, 1e-9, FLOOR)


class Bench:
    """Stands for `bench`: each run takes the given seconds in all of ten rounds, and the given bytes."""

    def __init__(self) -> None:
        self.rounds = [0.010 + 0.00001 * number for number in range(10)]
        self.peak = 100 * 2**20
        self.later: list[float] = []
        self.calls = 0
        self.alone: list[float] = []
        self.busy = False

    def __call__(
        self, file: Path, *, subjects: Any, save: Any = None, against: Any = None, allow: float = 0.05, **_: Any
    ) -> Any:
        self.calls += 1
        self.rounds = self.later or self.rounds if self.calls > 1 else self.rounds
        subject = SimpleNamespace(label=str(file), on="onnxruntime", file=file, target=file)
        lows = self.alone if self.alone and ":threads=1" in subjects[0] else self.rounds
        track = SimpleNamespace(ready=SimpleNamespace(subject=subject), lows=lows)
        done: Any = SimpleNamespace(
            measured=SimpleNamespace(tracks=[track]),
            given=SimpleNamespace(feed=SimpleNamespace(values={}), sizes={}),
            floor=FLOOR,
        )
        parts: list[Any] = [Latencies((self.latency(),)), measurement(busy=self.busy)]
        if save is not None:
            saved_figures.save(save, done)
        if against is not None:
            request = Request((), (), {}, (), "", (), profile=False, seconds=3, tolerance=None, seed=0)
            read = saved_figures.read(against, "")
            parts.append(saved_figures.against(read, done, request, allow=allow, any_machine=False)[0])
        return SimpleNamespace(report=Report("bench", Verdict.DONE, tuple(parts)))

    def latency(self) -> Latency:
        usual = self.rounds[len(self.rounds) // 2]
        return Latency(
            "m", "cpu", 0.1, 0.1, usual, None, None, usual, usual, usual, 10, 1, None, self.peak, 1, 1,
            steady=True, where="here", curve=(),
        )  # fmt: skip


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench()
    monkeypatch.setattr(times, "bench", made)
    return made


@pytest.fixture
def file(tmp_path: Path, bench: Bench) -> Path:
    save(from_text(MODEL), tmp_path / "m.onnx")
    verbs.record([tmp_path / "m.onnx"], tmp_path / "baseline.json", SETTINGS)
    return tmp_path / "m.onnx"


def check(file: Path, settings: Settings = SETTINGS) -> Report:
    return verbs.check([file], file.with_name("baseline.json"), settings)


def found(report: Report) -> list[tuple[str, str]]:
    return [(one.kind, one.result) for one in report.part(Baselines).changes]


def test_what_is_recorded(file: Path, bench: Bench) -> None:
    text = file.with_name("baseline.json").read_text()
    entry = json.loads(text)["models"]["m.onnx"]["times"]
    assert entry["low"] < entry["median"] < entry["high"]
    assert entry["memory"] == bench.peak
    assert len(entry["figures"]["subjects"][0]["logs"]) == 10
    assert str(file.parent) not in text
    assert check(file).verdict is Verdict.DONE
    bench.rounds = [2 * one for one in bench.rounds]
    verbs.record([file], file.with_name("baseline.json"), SETTINGS)
    assert file.with_name("baseline.json").read_text() == text, "an unchanged model keeps its recorded times"


@pytest.mark.parametrize(
    ("factor", "changes", "verdict"),
    [
        (1.2, [("slower", "worse")], Verdict.DIFFERENT),
        (1.03, [], Verdict.DONE),
        (0.8, [("faster", "better")], Verdict.DONE),
    ],
)
def test_slower_and_faster(
    file: Path, bench: Bench, factor: float, changes: list[tuple[str, str]], verdict: Verdict
) -> None:
    bench.rounds = [factor * one for one in bench.rounds]
    report = check(file)
    assert found(report) == changes
    assert report.verdict is verdict
    assert not found(check(file, Settings(allow=0.5))) or factor < 1


@pytest.mark.parametrize(
    ("factor", "of_one_thread", "result"),
    [(1.2, 1.2, "changed"), (2.5, 1.2, "changed"), (2.5, 1.7, "worse"), (1.2, 1.7, "worse")],
)
def test_one_thread_decides_on_a_busy_machine(
    file: Path, bench: Bench, factor: float, of_one_thread: float, result: str
) -> None:
    bench.rounds = [factor * one for one in bench.rounds]
    bench.alone = [of_one_thread / factor * one for one in bench.rounds]
    bench.busy = True
    assert found(check(file)) == [("slower", result)]


@pytest.mark.parametrize(("factor", "result"), [(2.5, "changed"), (3.5, "worse")])
def test_a_runtime_without_threads_on_a_busy_machine(
    tmp_path: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch, factor: float, result: str
) -> None:
    monkeypatch.setattr(times, "_alone", lambda _: "")
    save(from_text(MODEL), tmp_path / "m.onnx")
    verbs.record([tmp_path / "m.onnx"], tmp_path / "baseline.json", SETTINGS)
    assert bench.calls == 1
    bench.rounds, bench.busy = [factor * one for one in bench.rounds], True
    assert found(check(tmp_path / "m.onnx")) == [("slower", result)]


def test_noise_is_never_slower(file: Path, bench: Bench) -> None:
    bench.rounds = [0.0106 * math.exp(0.5 * (-1) ** number) for number in range(10)]
    report = check(file)
    assert ("slower", "worse") not in found(report)
    assert report.verdict is Verdict.DONE


def test_too_few_rounds_cannot_tell(file: Path, bench: Bench) -> None:
    bench.rounds = bench.rounds[:3]
    before = bench.calls
    report = check(file)
    assert found(report) == [("slower", "cannot tell")]
    assert report.verdict is Verdict.CANNOT_TELL
    assert report.problems[0].id == "gate/not-compared"
    assert bench.calls - before == 3


def test_measures_longer_after_too_few_rounds(file: Path, bench: Bench) -> None:
    bench.later, bench.rounds, bench.calls = bench.rounds, bench.rounds[:3], 0
    assert check(file).verdict is Verdict.DONE
    assert bench.calls == 2


def test_other_circumstances_cannot_tell(file: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = bench.calls
    monkeypatch.setattr(times, "circumstances", lambda: {"processor": "another"})
    report = check(file)
    assert report.verdict is Verdict.CANNOT_TELL
    assert bench.calls == calls, "nothing is measured"
    assert "processor was" in report.problems[0].why
    assert check(file, Settings(times=False)).verdict is Verdict.DONE
    save(from_text(MODEL.replace("Neg", "Abs")), file)
    assert check(file).verdict is Verdict.DIFFERENT, "the numbers still count"


@pytest.mark.parametrize(("peak", "result"), [(200, "worse"), (105, ""), (50, "better")])
def test_memory(file: Path, bench: Bench, peak: int, result: str) -> None:
    bench.peak = peak * 2**20
    assert found(check(file)) == ([("memory", result)] if result else [])


def test_accepting_a_slower_model(file: Path, bench: Bench) -> None:
    bench.rounds = [2 * one for one in bench.rounds]
    verbs.accept([file], file.with_name("baseline.json"), "a wider layer", SETTINGS)
    assert check(file).verdict is Verdict.DONE
    (one,) = json.loads(file.with_name("baseline.json").read_text())["models"]["m.onnx"]["history"]
    assert one["changed"][0].startswith("slower: ")
