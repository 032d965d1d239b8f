"""The benchmark of the judge does not pass where it could not have failed, and counts every way to be wrong."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from judging import tables, verdicts
from judging.bases import Base
from judging.equivalent import judge, openvino
from judging.peers import allclose
from judging.records import Log
from judging.worker import Worker

import onnxsmith


def fault(verdict: str, model: str = "m", **more: Any) -> dict[str, Any]:
    peers = {"numpy.allclose": "different", "polygraphy": "equal"}
    return {
        "case": f"{model}/float32/weight/scaled", "status": "visible", "ratio": 1e3, "place": "w", "verdict": verdict,
        "said": "", "peers": peers, "tried": {"visible": 1}, **more,
    }  # fmt: skip


def pair(verdict: str, status: str = "settled") -> dict[str, Any]:
    return {"case": "level/all/m/float32", "status": status, "ratio": 1.0, "verdict": verdict, "said": "", "peers": {}}


def valid(compare: str, simplify: str) -> dict[str, Any]:
    return {"case": "odd/m", "status": "runs", "compare": compare, "simplify": simplify, "said": ""}


def test_a_suite_that_judged_nothing_misses_its_target() -> None:
    assert tables.faults([], whole=False).missed
    assert tables.faults([fault("done", status="invisible")], whole=False).missed
    assert tables.equivalent([], whole=False).missed
    assert tables.equivalent([pair("done", status="unsettled")], whole=False).missed
    assert tables.valid([], whole=False).missed


def test_a_whole_run_needs_the_numbers_that_were_promised() -> None:
    many = [fault("different", f"m{i % 50}") for i in range(200)]
    assert not tables.faults(many, whole=True).missed
    assert tables.faults(many[:20], whole=True).missed
    assert tables.faults([{**one, "case": "m/float32/weight/scaled"} for one in many], whole=True).missed
    assert not tables.equivalent([pair("done")] * 500, whole=True).missed
    assert tables.equivalent([pair("done")] * 499, whole=True).missed


@pytest.mark.parametrize("verdict", ["done", "failed"])
def test_faults_called_equal_or_not_judged_miss_the_target(verdict: str) -> None:
    good = [fault("different"), fault("cannot-tell")]
    assert not tables.faults(good, whole=False).missed
    assert tables.faults([*good, fault(verdict)], whole=False).missed
    assert any("called equal" in one for one in tables.faults([*[good[0]] * 999, fault("done")], whole=False).missed)


def test_what_peers_saw_stands_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "PEERS", ("numpy.allclose", "polygraphy"))
    text = tables.faults([fault("different")], whole=False).text
    assert "1 of 1 (100.0%)" in text
    assert "0 of 1 (0.0%)" in text


def test_an_equivalent_pair_called_different_misses_the_target() -> None:
    assert not tables.equivalent(
        [pair("done"), pair("cannot-tell"), pair("different", "unsettled")], whole=False
    ).missed
    assert tables.equivalent([*[pair("done")] * 500, pair("different")], whole=True).missed


def test_cases_that_broke_off_are_named_and_not_passed_over() -> None:
    broken = {"case": "m/float32/wiring/axis", "status": "broken", "why": "over 120 s"}
    for suite, record in (
        (tables.faults, fault("different")),
        (tables.equivalent, pair("done")),
        (tables.valid, valid("done", "done")),
    ):
        assert not suite([record] * 60, whole=False).missed
        assert suite([*[record] * 20, broken], whole=False).missed
        assert "over 120 s" in suite([record, broken], whole=False).text


def test_valid_models_turned_away() -> None:
    fine = [valid("done", "done")] * 99
    assert not tables.valid([*fine, valid("failed", "done")], whole=False).missed
    assert tables.valid([*fine, valid("failed", "done"), valid("done", "failed")], whole=False).missed


def test_what_a_call_ended_in() -> None:
    def crash() -> Any:
        raise KeyError("a name")

    assert verdicts.told(crash) == ("failed", "CRASHED KeyError: 'a name'")
    verdict, said = verdicts.told(lambda: onnxsmith.load("is-not-there.onnx"))
    assert verdict == "failed"
    assert said.startswith("model/")
    report = SimpleNamespace(verdict=SimpleNamespace(value="cannot-tell"), problems=(), headline="h")
    assert verdicts.told(lambda: SimpleNamespace(report=report))[0] == "cannot-tell"


def test_numpy_at_the_defaults_of_torch() -> None:
    one = {"y": np.array([1.0, 100.0], np.float32)}
    assert allclose(one, {"y": np.array([1.000011, 100.0], np.float32)}) == "equal"
    assert allclose(one, {"y": np.array([1.0, 100.01], np.float32)}) == "different"
    assert allclose(one, {"y": one["y"].astype(np.float16)}) == "different"
    assert allclose(one, {}) == "different"


TEXT = '<ir_version: 9, opset_import: ["": 20]> g (float[2,8] x) => (float[2,8] y) { a = Mul (x, w) y = Sigmoid (a) }'


def base(folder: Path) -> Base:
    model = onnx.parser.parse_model(TEXT)
    weight = np.linspace(0.5, 2, 8, dtype=np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    for name in ("float32", "examples", "tools/onnxslim"):
        (folder / name).mkdir(parents=True)
    onnx.save(model, folder / "float32" / "m.onnx")
    np.savez(folder / "examples" / "m.npz", x=np.linspace(-2, 2, 16, dtype=np.float32).reshape(2, 8))
    return Base("m", "float32", folder / "float32" / "m.onnx", folder / "examples" / "m.npz")


def test_a_tool_that_errs_makes_no_equivalent_pair(tmp_path: Path) -> None:
    made = base(tmp_path).model()
    target = tmp_path / "tools" / "onnxslim" / "m.onnx"
    onnx.save(made, target)
    assert judge(tmp_path, "tool/onnxslim/m/float32")["status"] == "settled"
    made.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.linspace(0.5, 2.1, 8, dtype=np.float32), "w"))
    onnx.save(made, target)
    assert judge(tmp_path, "tool/onnxslim/m/float32")["status"] == "unsettled"


def test_levels_and_openvino_of_one_file(tmp_path: Path) -> None:
    given = base(tmp_path)
    found = judge(tmp_path, "level/disable-all/m/float32")
    assert (found["status"], found["verdict"]) == ("settled", "done")
    assert openvino(given.path)(given.example())["y"].shape == (2, 8)


def test_worker_survives_a_case_that_ends_its_process() -> None:
    with Worker() as worker:
        assert worker.call("operator:add", 1, 2, timeout=60) == (3, "")
        given, error = worker.call("os:_exit", 7, timeout=60)
        assert given is None
        assert "died" in error
        given, error = worker.call("time:sleep", 60, timeout=0.5)
        assert (given, error) == (None, "over 0 s")
        assert worker.call("operator:truediv", 1, 0, timeout=60)[1].startswith("ZeroDivisionError")
        assert worker.call("operator:add", 2, 2, timeout=60) == (4, "")


def test_log_goes_on_and_forgets_what_other_sources_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(tmp_path / "judge.jsonl")
    log.add("faults", "a", 0, {"verdict": "done"})
    again = Log(tmp_path / "judge.jsonl")
    assert again.get("faults", "a", 0)["verdict"] == "done"
    assert again.get("faults", "a", 1) is None
    monkeypatch.setattr("judging.records.code", lambda: "other")
    assert again.get("faults", "a", 0) is None
    assert again.get("faults", "a", 0, any_code=True)["verdict"] == "done"
