"""Baselines that cannot be read, written or used: each is a problem whose fix works, and nothing is half-written."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter
from typer.testing import CliRunner

import onnxsmith
from onnxsmith import baseline
from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.base import Report, Table
from onnxsmith.base.report.parts.baselines import BaselineModel, Baselines
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli import application
from onnxsmith.gate.baselines import baseline_file, baseline_text, data_file, recording, verbs
from onnxsmith.gate.baselines.entry import Entry
from onnxsmith.gate.baselines.settings import Settings
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.testing import assert_not_worse
from onnxsmith.verification import random_draws
from tests.test_cli import called

MODEL = '<ir_version: 10, opset_import: ["": 20]> g (float[2] x) => (float[2] y) { y = Neg(x) }'
NO_TIME = Settings(times=False)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    save(from_text(MODEL), tmp_path / "m.onnx")
    verbs.record([tmp_path / "m.onnx"], tmp_path / "baseline.json", NO_TIME)
    return tmp_path / "m.onnx"


def raised(call: Callable[[], Any]) -> Problem:
    with pytest.raises(OnnxsmithError) as caught:
        call()
    found = caught.value.problem
    assert found.fix
    return found


def change(path: Path, act: Callable[[Any], object]) -> None:
    data = json.loads(path.read_text())
    act(data)
    path.write_text(json.dumps(data))


def entry(data: Any) -> Any:
    return data["models"]["m.onnx"]


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda path: path.unlink(), "gate/no-baseline"),
    "a folder": (lambda path: (path.unlink(), path.mkdir()), "gate/baseline-unreadable"),
    "not JSON": (lambda path: path.write_text("{"), "gate/baseline-unreadable"),
    "not text": (lambda path: path.write_bytes(b"\xff\xfe\0"), "gate/baseline-unreadable"),
    "a list": (lambda path: path.write_text("[]"), "gate/baseline-unreadable"),
    "no format": (lambda path: change(path, lambda data: data.pop("format")), "gate/baseline-unreadable"),
    "a tolerance that is no number": (lambda path: tolerate(path, float("nan")), "gate/baseline-unreadable"),
    "a negative tolerance": (lambda path: tolerate(path, -1.0), "gate/baseline-unreadable"),
    "newer": (lambda path: change(path, lambda data: data.update(format=3)), "gate/baseline-newer"),
    "a field less": (lambda path: change(path, lambda data: entry(data).pop("digests")), "gate/baseline-unreadable"),
    "another type": (lambda path: change(path, lambda data: entry(data).update(nodes=3)), "gate/baseline-unreadable"),
    "no data": (lambda path: path.with_suffix(".zip").unlink(), "gate/baseline-data"),
    "data is no archive": (lambda path: path.with_suffix(".zip").write_bytes(b"PK"), "gate/baseline-data"),
    "data is cut": (lambda path: os.truncate(path.with_suffix(".zip"), 50), "gate/baseline-data"),
    "an entry less": (lambda path: rewrite(path, drop=True), "gate/baseline-data"),
    "an entry changed": (lambda path: rewrite(path, drop=False), "gate/baseline-data"),
    "a shape changed": (lambda path: of_input("shape", [7])(path), "gate/baseline-data"),
    "a kind changed": (lambda path: of_input("dtype", "what")(path), "gate/baseline-data"),
}


def sealed_change(path: Path, act: Callable[[Any], object]) -> None:
    """Changes an entry, and gives it the digest of its new content."""
    change(path, lambda data: act(entry(data)))
    data = json.loads(path.read_text())
    changed = TypeAdapter(Entry).validate_python(entry(data))
    change(path, lambda data: entry(data).update(digest=baseline_text.sealed(changed).digest))


def of_input(what: str, value: Any) -> Callable[[Path], object]:
    return lambda path: sealed_change(path, lambda one: one["cases"][0]["inputs"]["x"].update({what: value}))


def tolerate(path: Path, tolerance: float) -> None:
    sealed_change(path, lambda one: one["cases"][0]["outputs"]["y"].update(tolerance=tolerance))


def rewrite(path: Path, *, drop: bool) -> None:
    data = path.with_suffix(".zip")
    with zipfile.ZipFile(data) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    first = min(held)
    held[first] = held[first][:-1] + b"\1"
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in held.items():
            if name != first or not drop:
                archive.writestr(name, content)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_baseline(file: Path, name: str) -> None:
    spoil, id_ = BAD[name]
    path = file.with_name("baseline.json")
    spoil(path)
    if "changed" in name and "entry" not in name:  # the error of one model does not hide the others
        report = verbs.check([], path, NO_TIME)
        assert report.verdict is Verdict.FAILED
        assert report.problems[0].id == id_
    else:
        assert raised(lambda: verbs.check([], path, NO_TIME)).id == id_
    left = {one.name: one.read_bytes() for one in path.parent.iterdir() if one.is_file()}
    if name != "missing":
        assert raised(lambda: verbs.accept([file], path, "why", NO_TIME)).id == id_
    assert {one.name: one.read_bytes() for one in path.parent.iterdir() if one.is_file()} == left


def test_a_missing_baseline_is_recorded(file: Path) -> None:
    path = file.with_name("other.json")
    found = raised(lambda: verbs.check([file], path, NO_TIME))
    assert f"onnxsmith baseline record {file} -o {path}" in found.fix
    verbs.record([file], path, NO_TIME)
    assert verbs.check([file], path, NO_TIME).verdict is Verdict.DONE


def test_the_baseline_of_another_model(file: Path) -> None:
    other, path = file.with_name("n.onnx"), file.with_name("baseline.json")
    found = raised(lambda: verbs.check([other], path, NO_TIME))
    assert found.id == "gate/not-in-baseline"
    assert "write m.onnx in place of n.onnx" in found.fix
    with pytest.raises(AssertionError, match="gate/not-in-baseline"):
        assert_not_worse(other, path)
    save(from_text(MODEL), other)
    report = verbs.check([other], path, NO_TIME)
    assert report.verdict is Verdict.CANNOT_TELL
    assert [one.id for one in report.problems] == ["gate/model-new"]
    with pytest.raises(AssertionError) as failure:
        assert_not_worse(other, path)
    assert "gate/model-new: the baseline has no model n.onnx" in str(failure.value)
    assert f"onnxsmith baseline record {other} -o {path}" in str(failure.value)
    assert "m.onnx in place of" not in str(failure.value)
    with pytest.raises(AssertionError, match="gate/no-baseline"):
        assert_not_worse(other, path.with_name("none.json"))
    report = verbs.check([file, other], path, NO_TIME)
    assert report.verdict is Verdict.CANNOT_TELL
    assert [one.id for one in report.problems] == ["gate/model-new"]
    verbs.record([other], path, NO_TIME)
    assert verbs.check([file, other], path, NO_TIME).verdict is Verdict.DONE


def test_a_model_that_is_gone(file: Path) -> None:
    path = file.with_name("baseline.json")
    other = file.with_name("n.onnx")
    save(from_text(MODEL), other)
    verbs.record([other], path, NO_TIME)
    other.unlink()
    for models in ([], [file], [file, other]):
        report = verbs.check(models, path, NO_TIME)
        assert report.verdict is Verdict.DIFFERENT
        assert [one.id for one in report.problems] == ["gate/model-missing"]
        assert "n.onnx: missing" in report.headline
    assert_not_worse(file, path)


def test_a_damaged_model_does_not_hide_the_others(file: Path) -> None:
    path, other = file.with_name("baseline.json"), file.with_name("n.onnx")
    save(from_text(MODEL), other)
    verbs.record([other], path, NO_TIME)
    other.write_bytes(b"no model")
    save(from_text(MODEL.replace("Neg", "Abs")), file)
    report = verbs.check([], path, NO_TIME)
    assert report.verdict is Verdict.FAILED
    assert [one.id.partition("/")[0] for one in report.problems] == ["model", "gate"]


@pytest.mark.parametrize("name", ["baseline.json", "baseline.zip"])
def test_a_read_only_file(file: Path, name: str) -> None:
    path, protected = file.with_name("baseline.json"), file.with_name(name)
    protected.chmod(0o444)
    save(from_text(MODEL.replace("Neg", "Abs")), file)
    before = path.read_bytes(), path.with_suffix(".zip").read_bytes()
    for call in (lambda: verbs.record([file], path, NO_TIME), lambda: verbs.accept([file], path, "why", NO_TIME)):
        found = raised(call)
        assert found.id == "gate/read-only"
        assert found.where == str(protected)
    assert (path.read_bytes(), path.with_suffix(".zip").read_bytes()) == before
    protected.chmod(0o644)
    assert verbs.accept([file], path, "why", NO_TIME).verdict is Verdict.DONE


def test_a_write_that_fails_leaves_a_baseline(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = file.with_name("baseline.json")
    save(from_text(MODEL.replace("Neg", "Abs")), file)
    monkeypatch.setattr(baseline_file, "text", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
    assert raised(lambda: verbs.accept([file], path, "why", NO_TIME)).id == "save/failed"
    monkeypatch.undo()
    report = verbs.check([file], path, NO_TIME)
    assert report.verdict is Verdict.DIFFERENT, "the old text still has its data"
    assert sorted(one.name for one in path.parent.iterdir()) == ["baseline.json", "baseline.zip", "m.onnx"]


def test_actions_that_say_too_little(file: Path) -> None:
    path = file.with_name("baseline.json")
    for act in (verbs.record, lambda *args: verbs.accept(*args[:2], "why", args[2])):
        assert raised(lambda act=act: act([], path, NO_TIME)).id == "gate/no-model"
    save(from_text(MODEL.replace("Neg", "Abs")), file)
    assert raised(lambda: verbs.accept([file], path, " ", NO_TIME)).id == "gate/no-reason"
    found = raised(lambda: verbs.record([file], path, NO_TIME))
    assert found.id == "gate/already-recorded"
    assert "graph: " in found.why
    verbs.accept([file], path, "why", NO_TIME)
    assert raised(lambda: verbs.accept([file], path, "why", NO_TIME)).id == "gate/nothing-changed"


@pytest.mark.parametrize("limit", [-1.0, float("nan"), float("inf")])
def test_a_limit_with_which_nothing_is_found_is_refused(file: Path, limit: float) -> None:
    path = file.with_name("baseline.json")
    for act in (baseline.record, lambda *args, **more: baseline.accept(*args, reason="why", **more)):
        assert raised(lambda act=act: act(file, path, times=False, tolerance=limit)).id == "verify/tolerance"
    assert raised(lambda: baseline.check(file, path, times=False, allow=limit)).id == "input/syntax"
    assert raised(lambda: baseline.check(file, path, times=False, allow_size=limit)).id == "input/syntax"
    shown = CliRunner().invoke(
        application.app, ["baseline", "record", str(file), "-o", str(path), f"--tolerance={limit}"]
    )
    assert shown.exit_code == 2
    assert "verify/tolerance" in shown.output


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_a_time_in_which_nothing_is_measured_is_refused(file: Path, seconds: float) -> None:
    path = file.with_name("baseline.json")
    for act in (baseline.record, baseline.check):
        assert raised(lambda act=act: act(file, path, seconds=seconds)).id == "input/syntax"
    assert raised(lambda: onnxsmith.bench(file, seconds=seconds)).id == "input/syntax"


def test_baselines_of_one_folder_have_their_own_data(file: Path) -> None:
    for name in ("a.json", "a.txt"):
        verbs.record([file], file.with_name(name), NO_TIME)
    names = {"m.onnx", "baseline.json", "baseline.zip", "a.json", "a.zip", "a.txt", "a.txt.zip"}
    assert {one.name for one in file.parent.iterdir()} == names
    assert raised(lambda: verbs.record([file], file.with_name("a.zip"), NO_TIME)).id == "gate/baseline-unreadable"


def test_an_unsteady_model_without_a_random_node(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a runtime that reads memory that nothing wrote."""
    save(from_text(MODEL.replace("Neg(x)", "RandomNormalLike(x)")), file)
    monkeypatch.setattr(random_draws, "nodes", lambda _: [])
    found = raised(lambda: verbs.record([file], file.with_name("other.json"), NO_TIME))
    assert (found.id, "no node draws random numbers" in found.why) == ("gate/random", True)
    assert "compare" in found.fix


def test_a_model_that_is_there_is_not_taken_for_another(file: Path) -> None:
    save(from_text(MODEL), file.with_name("n.onnx"))
    found = raised(lambda: verbs.accept([file.with_name("n.onnx")], file.with_name("baseline.json"), "why", NO_TIME))
    assert found.id == "gate/not-in-baseline"
    assert found.fix.startswith("record it: ")


def test_the_command(file: Path) -> None:
    path = file.with_name("baseline.json")

    def command(verb: str, *words: str) -> Any:
        return CliRunner().invoke(application.app, [*verb.split(), *words, "-o", str(path), "--no-time", "--json"])

    assert command("baseline record", str(file)).exit_code == 0
    assert command("baseline check").exit_code == 0
    save(from_text(MODEL.replace("Neg", "Abs")), file)
    shown = command("baseline check", str(file))
    assert shown.exit_code == 1
    report = Report.from_json(shown.stdout)
    assert [one.kind for one in report.part(Baselines).changes] == ["graph"]
    assert command("baseline check", "--file", str(path)).exit_code == 1
    assert command("baseline accept", str(file)).exit_code == 2
    assert command("baseline accept", str(file), "--reason", "why").exit_code == 0
    assert command("baseline check").exit_code == 0
    assert command("baseline check", "--target", "openvino").exit_code == 2
    assert "`onnxsmith baseline check`" in command("baseline chek").output


def test_a_baseline_over_a_model_is_refused(file: Path) -> None:
    assert raised(lambda: verbs.record([file], file, NO_TIME)).id == "save/needed"


RANDOM = '<ir_version: 10, opset_import: ["": 20]> g () => (float[2] y) { y = RandomNormal<shape = [2]>() }'


def test_a_model_that_cannot_be_recorded_does_not_stop_the_others(file: Path) -> None:
    path, models = file.with_name("other.json"), [file.with_name(f"{name}.onnx") for name in ("random", "bad", "n")]
    save(from_text(RANDOM), models[0])
    models[1].write_bytes(b"no model")
    save(from_text(MODEL), models[2])
    report = verbs.record([*models, file], path, NO_TIME)
    assert report.verdict is Verdict.FAILED
    assert [one.id for one in report.problems] == ["gate/random", "model/garbage"]
    assert report.problems[0].where.startswith(str(models[0]))
    assert "bundle" not in str(report.problems[0])
    assert "2 models recorded, 2 NOT recorded (random.onnx, bad.onnx)" in report.headline
    assert list(json.loads(path.read_text())["models"]) == ["m.onnx", "n.onnx"]
    assert verbs.check([], path, NO_TIME).verdict is Verdict.DONE
    before = path.read_bytes()
    save(from_text(MODEL.replace("Neg", "Abs")), file)
    report = verbs.record([*models[:2], file], path, NO_TIME)
    assert [one.id for one in report.problems] == ["gate/random", "model/garbage", "gate/already-recorded"]
    assert "0 models recorded, 3 NOT" in report.headline
    assert path.read_bytes() == before
    report = verbs.accept([models[2], file], path, "why", NO_TIME)
    assert [one.id for one in report.problems] == ["gate/nothing-changed"]
    assert verbs.check([], path, NO_TIME).verdict is Verdict.DONE
    assert raised(lambda: verbs.record(models[:1], path, NO_TIME)).id == "gate/random"


def test_an_interrupt_keeps_what_was_recorded(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, models = file.with_name("other.json"), [file, file.with_name("n.onnx"), file.with_name("k.onnx")]
    for one in models:
        save(from_text(MODEL), one)
    make = recording.entry_of

    def stopped(model: Path, *args: Any, **options: Any) -> Any:
        if model == models[1]:
            raise KeyboardInterrupt
        return make(model, *args, **options)

    monkeypatch.setattr(recording, "entry_of", stopped)
    shown = CliRunner().invoke(
        application.app, ["baseline", "record", *map(str, models), "-o", str(path), "--no-time", "--json"]
    )
    assert shown.exit_code == 2
    (found,) = Report.from_json(shown.stdout).problems
    assert found.id == "run/interrupted"
    assert f"1 of 3 models recorded in {path}: m.onnx" in found.why
    monkeypatch.undo()
    assert list(json.loads(path.read_text())["models"]) == ["m.onnx"]
    assert verbs.check([], path, NO_TIME).verdict is Verdict.DONE


def edit(path: Path) -> None:
    """Allows a larger difference by hand."""
    path.write_text(path.read_text().replace('"tolerance": 1e-05', '"tolerance": 0.5'))


def test_a_change_by_hand_is_refused(file: Path) -> None:
    path, other = file.with_name("baseline.json"), file.with_name("n.onnx")
    save(from_text(MODEL), other)
    edit(path)
    text = path.read_text()
    report = verbs.check([], path, NO_TIME)
    assert report.verdict is Verdict.FAILED
    assert [one.id for one in report.problems] == ["gate/entry-changed"]
    assert raised(lambda: verbs.record([file], path, NO_TIME)).id == "gate/entry-changed"
    with pytest.raises(AssertionError, match="gate/entry-changed"):
        assert_not_worse(file, path)
    assert path.read_text() == text
    verbs.record([other], path, NO_TIME)
    assert verbs.check([], path, NO_TIME).problems[0].id == "gate/entry-changed", "another write seals no edited entry"
    assert verbs.accept([file], path, "another runtime", NO_TIME).verdict is Verdict.DONE
    assert verbs.check([], path, NO_TIME).verdict is Verdict.DONE
    assert entry(json.loads(path.read_text()))["history"][0]["changed"] == ["entry: it was changed by hand"]
    change(path, lambda data: entry(data).pop("digest"))
    assert verbs.check([], path, NO_TIME).problems[0].id == "gate/entry-changed"


def test_spaces_and_the_order_of_keys_are_no_change(file: Path) -> None:
    path = file.with_name("baseline.json")
    path.write_text(json.dumps(dict(reversed(json.loads(path.read_text()).items()))))
    assert verbs.check([], path, NO_TIME).verdict is Verdict.DONE


def test_a_baseline_without_digests_is_refused(file: Path) -> None:
    path = file.with_name("baseline.json")
    change(path, lambda data: (data.update(format=1), entry(data).pop("digest")))
    with pytest.raises(OnnxsmithError) as caught:
        verbs.check([], path, NO_TIME)
    assert caught.value.problem.id == "gate/baseline-unreadable"


def test_a_dropped_model(file: Path) -> None:
    path, other = file.with_name("baseline.json"), file.with_name("n.onnx")
    save(from_text(MODEL), other)
    verbs.record([other], path, NO_TIME)
    other.unlink()
    found = verbs.check([], path, NO_TIME).problems[0]
    assert "onnxsmith baseline drop" in found.fix
    assert raised(lambda: verbs.drop([other], path, "")).id == "gate/no-reason"
    shown = CliRunner().invoke(application.app, shlex.split(f"baseline drop {other} -o {path} --reason old"))
    assert shown.exit_code == 0
    data = json.loads(path.read_text())
    assert list(data["models"]) == ["m.onnx"]
    assert [(one["model"], one["reason"]) for one in data["dropped"]] == [("n.onnx", "old")]
    assert verbs.check([], path, NO_TIME).verdict is Verdict.DONE
    assert raised(lambda: verbs.drop([other], path, "old")).id == "gate/not-in-baseline"
    verbs.record([file], path, NO_TIME)
    assert json.loads(path.read_text())["dropped"] == data["dropped"]


def test_from_python(file: Path) -> None:
    path = file.with_name("other.json")
    assert baseline.record(file, path, times=False).ok
    assert baseline.check(file, path, times=False).path == path
    save(from_text(MODEL.replace("Neg", "Abs")), file)
    assert not baseline.check([file], path, times=False).ok
    assert baseline.accept(file, path, reason="why", times=False).ok
    assert baseline.drop([file], path, reason="old").ok


def test_many_models_are_shortened() -> None:
    models = tuple(BaselineModel(f"m{at}.onnx", "worse" if at == 99 else "as recorded", 1, 1, 1) for at in range(100))
    table = next(one for one in Baselines("baseline.json", models).blocks() if isinstance(one, Table))
    assert len(table.rows) == 100
    assert table.rows_in_terminal is not None
    assert 99 in table.rows_in_terminal
    assert len(table.rows_in_terminal) == 20


def test_two_processes_write_one_baseline(file: Path) -> None:
    path, other = file.with_name("baseline.json"), file.with_name("n.onnx")
    save(from_text(MODEL), other)
    save(from_text(MODEL.replace("Neg", "Abs")), file)
    words = [["record", str(other)], ["accept", str(file), "--reason", "why"]]
    begin = [sys.executable, "-m", "onnxsmith", "baseline"]
    started = [subprocess.Popen([*begin, *one, "-o", str(path), "--no-time", "--quiet"]) for one in words]
    assert [one.wait() for one in started] == [0, 0]
    models = json.loads(path.read_text())["models"]
    assert list(models) == ["m.onnx", "n.onnx"]
    assert models["m.onnx"]["history"]
    assert verbs.check([], path, NO_TIME).verdict is Verdict.DONE
    assert sorted(one.name for one in path.parent.iterdir()) == ["baseline.json", "baseline.zip", "m.onnx", "n.onnx"]


def test_another_program_writes_while_models_are_measured(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, other = file.with_name("baseline.json"), file.with_name("n.onnx")
    save(from_text(MODEL), other)
    make = recording.entry_of

    def edited(*args: Any, **options: Any) -> Any:
        path.write_text(path.read_text() + "\n")
        return make(*args, **options)

    monkeypatch.setattr(recording, "entry_of", edited)
    assert raised(lambda: verbs.record([other], path, NO_TIME)).id == "gate/baseline-changed"
    monkeypatch.undo()
    assert list(json.loads(path.read_text())["models"]) == ["m.onnx"]
    assert verbs.record([other], path, NO_TIME).verdict is Verdict.DONE


def test_a_check_reads_again_what_is_written_meanwhile(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, read = file.with_name("baseline.json"), data_file.read
    save(from_text(MODEL.replace("Neg", "Abs")), file)

    def late(*args: Any) -> Any:
        monkeypatch.undo()
        verbs.accept([file], path, "why", NO_TIME)
        return read(*args)

    monkeypatch.setattr(data_file, "read", late)
    assert verbs.check([file], path, NO_TIME).verdict is Verdict.DONE


def test_a_refusal_does_not_import_what_measures(tmp_path: Path) -> None:
    heavy = "onnxsmith.gate.baselines.recording", "onnxsmith.deployment.benching.bench", "onnxsmith.deployment.checking"
    tell = f"print([name for name in {heavy!r} if name in sys.modules])"
    status, out, err = called(cwd=tmp_path, code=f"import sys; from onnxsmith.gate.baselines import verbs; {tell}")
    assert (status, out) == (0, "[]\n"), err
    code = f"import sys; from onnxsmith.cli import application\ntry: application.main()\nfinally: {tell}"
    status, out, _ = called("baseline", "record", "m.onnx", "--runtime", "nope", cwd=tmp_path, code=code)
    assert (status, out) == (2, "[]\n")


def test_a_check_of_an_empty_baseline_is_no_pass(file: Path) -> None:
    path = file.parent / "baseline.json"
    verbs.drop([file], path, "no longer used")
    found = raised(lambda: verbs.check([], path, NO_TIME))
    assert found.id == "gate/no-model"
    verbs.record([file], path, NO_TIME)  # the fix
    assert verbs.check([], path, NO_TIME).verdict is Verdict.DONE
