"""Baselines: what is slower, and what may not be compared."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.measurements import Regressions
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.deployment.benching import baseline
from tests.conftest import Refused
from tests.deployment.benching import models
from tests.deployment.benching.models import saved

SHORT = 0.01


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """A model and its saved figures, as if nine rounds had been measured."""
    folder = tmp_path_factory.mktemp("baseline")
    path = saved(folder, models.CHAIN)
    result = onnxsmith.bench(path, sizes={"n": 4}, seconds=SHORT, save=folder / "b.json")
    assert result.ok
    data = json.loads((folder / "b.json").read_text(encoding="utf-8"))
    assert data["format"] == 1
    return path, data


def against(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figures: tuple[str, dict[str, Any]], times: float, **more: Any
) -> tuple[onnxsmith.Result, Regressions]:
    """The comparison, if the model takes `times` as long as the baseline."""
    path, data = figures
    changed = json.loads(json.dumps(data))
    for section, values in more.pop("changed", {}).items():
        changed[section] = {**changed[section], **values} if isinstance(values, dict) else values
    changed["subjects"][0]["logs"] = [math.log(1e-3) + 0.001 * index for index in range(9)]
    (tmp_path / "b.json").write_text(json.dumps(changed), encoding="utf-8")
    compare = baseline.against
    spread = more.pop("spread", 0.001)

    def as_if(saved: Any, done: Any, request: Any, **options: Any) -> Any:
        for track in done.measured.tracks:
            track.lows = [1e-3 * times * math.exp(spread * index) for index in range(9)]
        return compare(saved, done, request, **options)

    monkeypatch.setattr(baseline, "against", as_if)
    result = onnxsmith.bench(path, sizes={"n": 4}, seconds=SHORT, against=tmp_path / "b.json", **more)
    return result, result.report.part(Regressions)


def test_not_slower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figures: Any) -> None:
    result, part = against(tmp_path, monkeypatch, figures, 1.0)
    assert result.ok
    assert part.rows[0].result == "not slower"


def test_slower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figures: Any) -> None:
    result, part = against(tmp_path, monkeypatch, figures, 1.2)
    assert result.report.verdict is Verdict.DIFFERENT
    assert part.rows[0].slower
    assert [one.id for one in result.report.problems] == ["bench/slower"]
    assert "slower than the baseline by more than 5%" in result.report.headline


def test_slower_by_less_than_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figures: Any) -> None:
    result, part = against(tmp_path, monkeypatch, figures, 1.2, allow=0.3)
    assert result.ok
    assert not part.rows[0].slower


def test_at_the_limit_it_is_perhaps_slower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figures: Any) -> None:
    result, part = against(tmp_path, monkeypatch, figures, 1.05)
    assert result.ok
    assert part.rows[0].perhaps
    assert part.rows[0].result == "perhaps slower, within the noise"


def test_noise_around_the_same_time_is_not_called_slower(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figures: Any
) -> None:
    result, part = against(tmp_path, monkeypatch, figures, 0.85, spread=0.04)
    (row,) = part.rows
    assert result.ok
    assert row.perhaps
    assert row.ratio is not None
    assert row.ratio < 1.05
    assert row.result == "no difference beyond the noise, but the noise is larger than the allowed change"


def test_the_command_that_measures_both_has_the_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figures: Any
) -> None:
    path, data = figures
    other = saved(tmp_path, models.CHAIN)
    result, _ = against(tmp_path, monkeypatch, (other, data), 1.2)
    (problem,) = result.report.problems
    command = problem.fix.partition(": ")[2].strip("`")
    assert command == f"onnxsmith bench {path}@onnxruntime {other}@onnxruntime --dim n=4 --seconds {SHORT}"
    same, _ = against(tmp_path, monkeypatch, figures, 1.2)
    assert f"{path}@onnxruntime --dim n=4 --seconds {SHORT} --profile" in same.report.problems[0].fix


def test_a_file_that_is_no_baseline_is_not_named_for_writing(tmp_path: Path, figures: Any) -> None:
    profile = tmp_path / "board.toml"
    profile.write_text("title = 'a board'\n", encoding="utf-8")
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.bench(figures[0], sizes={"n": 4}, against=profile)
    command = f"`onnxsmith bench {figures[0]} --dim n=4 --save {tmp_path}/baseline.json`"
    assert command in caught.value.problem.fix


def test_another_machine_cannot_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figures: Any) -> None:
    other = {"machine": {"processor": "another", "onnxruntime": "0.1"}}
    result, part = against(tmp_path, monkeypatch, figures, 1.0, changed=other)
    assert result.report.verdict is Verdict.CANNOT_TELL
    assert set(part.differing) == {"processor", "onnxruntime"}
    (problem,) = result.report.problems
    assert problem.id == "bench/other-machine"
    assert "processor was another" in problem.why
    assert "--any-machine" in problem.fix  # it is the same file: there is no old one to measure beside it


def test_another_machine_is_compared_if_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figures: Any) -> None:
    other = {"machine": {"processor": "another"}}
    result, _ = against(tmp_path, monkeypatch, figures, 1.2, changed=other, any_machine=True)
    assert result.report.verdict is Verdict.DIFFERENT


def test_other_inputs_are_never_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figures: Any) -> None:
    result, part = against(tmp_path, monkeypatch, figures, 1.0, changed={"inputs": "others"}, any_machine=True)
    assert result.report.verdict is Verdict.CANNOT_TELL
    assert not part.same_inputs


def test_another_runtime_has_no_partner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figures: Any) -> None:
    result, part = against(tmp_path, monkeypatch, figures, 1.0, subjects=["onnxruntime:disable"])
    assert result.report.verdict is Verdict.CANNOT_TELL
    assert not part.rows
    assert [one.id for one in result.report.problems] == ["bench/no-partner"]


def test_few_rounds_cannot_tell(tmp_path: Path, figures: Any) -> None:
    path, data = figures
    (tmp_path / "b.json").write_text(json.dumps(data), encoding="utf-8")
    result = onnxsmith.bench(path, sizes={"n": 4}, seconds=SHORT, against=tmp_path / "b.json")
    assert result.report.verdict is Verdict.CANNOT_TELL
    assert result.report.part(Regressions).rows[0].result == "unknown: too few rounds"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 2}', '{"format": 1, "machine": {}, "inputs": "", "subjects": [1]}']
)
def test_other_files_are_refused(tmp_path: Path, refused: Refused, figures: Any, text: str) -> None:
    (tmp_path / "b.json").write_text(text, encoding="utf-8")
    with refused("bench/baseline"):
        onnxsmith.bench(figures[0], sizes={"n": 4}, against=tmp_path / "b.json")


def test_outputs_that_cannot_be_written(tmp_path: Path, refused: Refused, figures: Any) -> None:
    with refused("save/no-folder"):
        onnxsmith.bench(figures[0], sizes={"n": 4}, save=tmp_path / "none" / "b.json")
    with refused("save/needed"):
        onnxsmith.bench(figures[0], sizes={"n": 4}, save=figures[0])
    with refused("bench/baseline"):
        onnxsmith.bench(figures[0], sizes={"n": 4}, against=tmp_path / "missing.json")


@pytest.mark.parametrize("log", [math.nan, math.inf, -math.inf, -1000.0, 1e300, True, "0", None])
def test_a_figure_that_is_no_time_is_refused(tmp_path: Path, figures: Any, log: Any) -> None:
    data = json.loads(json.dumps(figures[1]))
    data["subjects"][0]["logs"][0] = log
    (tmp_path / "b.json").write_text(json.dumps(data))
    with pytest.raises(OnnxsmithError) as caught:
        baseline.read(tmp_path / "b.json", "onnxsmith bench m.onnx")
    assert caught.value.problem.id == "bench/baseline"
