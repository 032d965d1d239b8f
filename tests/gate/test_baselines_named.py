"""A check names the weights and the node that changed, and a baseline keeps the settings that it was recorded with."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.baselines import Baselines
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.gate.baselines import outline as outlines
from onnxsmith.gate.baselines import verbs
from onnxsmith.gate.baselines.outline import from_bytes, outline, to_bytes
from onnxsmith.gate.baselines.outline_comparison import changed_weights, first_difference
from onnxsmith.gate.baselines.settings import Settings
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text

MODEL = """<ir_version: 10, opset_import: ["": 20]>
g (float[n,4] x) => (float[n,2] y, float[n,2] z)
<float[4,2] w = {1,2,3,4,5,6,7,8}, float[4,2] v = {1,2,3,4,5,6,7,8}, float[4] s = {1,1,1,1}>
{
  l = LayerNormalization <axis = -1, epsilon = 0.001> (x, s)
  y = MatMul(l, w)
  r = Relu(l)
  z = MatMul(r, v)
}"""
NO_TIME = Settings(times=False)


def changed(*changes: str) -> Any:
    text = MODEL
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in text
        text = text.replace(old, new)
    return outline(from_text(text))


USUAL = changed()


def weights(*changes: str) -> list[str]:
    return changed_weights(USUAL, changed(*changes))


def test_a_weight_is_known_by_its_place() -> None:
    assert weights("v = {1,2,3,4,5,6,7,8}", "v = {1,2,3,4,5,6,7,8.08}") == [
        "'v' (MatMul -> z): 1 of 8 values, 8 → 8.08"
    ]
    assert not weights("v =", "other =", "r, v", "r, other")
    assert not weights("w =", "v2 =", "l, w", "l, v2", "v =", "w =", "r, v", "r, w")
    assert weights("w = {1,2,3", "w = {3,2,1") == ["'w' (MatMul -> y): 2 of 8 values"]
    assert weights("v = {1,2,3,4", "v = {9,9,9,9") == ["'v' (MatMul -> z): 4 of 8 values, norm +56.2%"]
    swapped = weights("w = {1,", "w = {0,")
    assert len(swapped) == 1


def test_a_long_weight_has_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlines, "BLOCKS", 4)
    found = changed_weights(changed(), changed("v = {1,2", "v = {1,9"))
    assert "at least, in 1 of 4 blocks" in found[0] or "1 of 8 values" in found[0]
    monkeypatch.setattr(outlines, "_CHECKED", 0)
    assert changed_weights(changed(), changed("v = {1,2", "v = {1,9")) == ["'v' (MatMul -> z): some of 8 values"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (("0.001", "0.1"), "the first node that differs is LayerNormalization -> l: epsilon 0.001 → 0.1"),
        (("r = Relu", "r = Abs"), "the first node that differs is Abs -> r, which was Relu -> r"),
        (('"": 20', '"": 19'), "opset ai.onnx 20 → 19"),
        (("r = Relu(l)", "r = Relu(x)"), "the first node that differs is Relu -> r (other operands)"),
    ],
)
def test_the_first_node_that_differs(changes: tuple[str, ...], said: str) -> None:
    assert first_difference(USUAL, changed(*changes)) == said
    assert not first_difference(USUAL, changed("r = Relu", "q = Relu", "(r,", "(q,"))


def test_an_outline_is_stored_and_read() -> None:
    assert from_bytes(to_bytes(USUAL)) == USUAL
    assert from_bytes(b"something else") is None
    assert len(to_bytes(USUAL)) < 1000


@pytest.fixture
def file(tmp_path: Path) -> Path:
    save(from_text(MODEL), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def entry(file: Path) -> Any:
    return json.loads(file.with_name("baseline.json").read_text())["models"]["m.onnx"]


def test_a_check_names_what_changed(file: Path) -> None:
    path = file.with_name("baseline.json")
    verbs.record([file], path, NO_TIME)
    save(from_text(MODEL.replace("v = {1,2,3,4,5,6,7,8}", "v = {1,2,3,4,5,6,7,8.08}").replace("Relu", "Abs")), file)
    report = verbs.check([file], path, NO_TIME)
    said = {one.kind: one.what for one in report.part(Baselines).changes}
    assert "'v' (MatMul -> z): 1 of 8 values, 8 → 8.08" in said["weights"]
    assert "Abs -> r, which was Relu -> r" in said["graph"]
    assert "OLD" not in report.problems[0].fix
    report = verbs.accept([file], path, "it is meant", NO_TIME)
    assert {one.result for one in report.part(Baselines).changes} == {"accepted"}


def test_proposed_commands_add_no_times(file: Path) -> None:
    path, new = file.with_name("baseline.json"), file.with_name("new.onnx")
    verbs.record([file], path, NO_TIME)
    save(from_text(MODEL.replace("Relu", "Abs")), file)
    save(from_text(MODEL), new)
    report = verbs.check([file, new], path, NO_TIME)
    assert [one.remedies[-1].text.endswith(" --no-time") for one in report.problems] == [True, True]
    with pytest.raises(OnnxsmithError) as caught:
        verbs.record([file], path, NO_TIME)
    assert '--reason "why it changed" --no-time`' in caught.value.problem.fix
    verbs.accept([file], path, "it is meant", Settings(seconds=0.5))
    save(from_text(MODEL), file)
    report = verbs.check([file, new], path, NO_TIME)  # the times that are recorded are to stay
    assert not any("--no-time" in one.fix for one in report.problems)


@pytest.mark.parametrize("folder", [".", "my models"])
def test_the_recorded_file_is_taken_out_of_version_control(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    """Also after the changed model was committed, and a model outside of the folder of the baseline."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "2")
    for number, (key, value) in enumerate({"user.name": "a", "user.email": "a@b.c"}.items()):
        monkeypatch.setenv(f"GIT_CONFIG_KEY_{number}", key)
        monkeypatch.setenv(f"GIT_CONFIG_VALUE_{number}", value)
    Path(folder).mkdir(exist_ok=True)
    files, path = [Path(folder, "m.onnx"), Path("other model.onnx")], Path(folder, "baseline.json")
    for file in files:
        save(from_text(MODEL), file)
    before = files[0].read_bytes()
    verbs.record(files, path, NO_TIME)
    shell("git init -q; git add .; git commit -q -m recorded")
    for file in files:
        save(from_text(MODEL.replace("Relu", "Abs")), file)
    shell("git add .; git commit -q -m changed")
    report = verbs.check([], path, NO_TIME)
    assert len(report.problems) == 2
    for found in report.problems:
        line, _, rest = found.remedies[0].text.partition(" && ")
        assert rest.startswith("onnxsmith diff recorded.onnx ")
        shell(line)
        assert Path("recorded.onnx").read_bytes() == before
        assert Path(shlex.split(rest)[-1]) in files


def shell(line: str) -> None:
    subprocess.run(["bash", "-ec", line], check=True)


def test_sizes_and_tolerance_are_kept(file: Path) -> None:
    path = file.with_name("baseline.json")
    settings = Settings(times=False, sizes=("n=3",), tolerance=0.1)
    verbs.record([file], path, settings)
    assert (entry(file)["sizes"], entry(file)["tolerance"]) == ({"n": "3"}, 0.1)
    assert {one["sizes"]["n"] for one in entry(file)["cases"]} == {3}
    assert all(one["outputs"]["y"]["tolerance"] == 0.1 for one in entry(file)["cases"])
    save(from_text(MODEL.replace("w = {1,2,3,4,5,6,7,8}", "w = {1,2,3,4,5,6,7,8.08}")), file)
    assert verbs.check([file], path, NO_TIME).verdict is Verdict.DONE
    verbs.accept([file], path, "more data", NO_TIME)
    assert (entry(file)["sizes"], entry(file)["tolerance"]) == ({"n": "3"}, 0.1)
    assert {one["sizes"]["n"] for one in entry(file)["cases"]} == {3}


def test_other_settings_need_a_reason(file: Path) -> None:
    path = file.with_name("baseline.json")
    verbs.record([file], path, NO_TIME)
    wider = Settings(times=False, tolerance=0.5)
    with pytest.raises(OnnxsmithError, match="gate/already-recorded") as caught:
        verbs.record([file], path, wider)
    assert "tolerance: estimated from rounding → 0.5" in caught.value.problem.why
    verbs.accept([file], path, "it runs on several machines", wider)
    assert entry(file)["history"][0]["changed"] == ["tolerance: estimated from rounding → 0.5"]
    with pytest.raises(OnnxsmithError, match="input/unknown-dim"):
        verbs.record([file], path.with_name("other.json"), Settings(times=False, sizes=("k=3",)))
    with pytest.raises(OnnxsmithError, match="gate/nothing-changed"):
        verbs.accept([file], path, "again", wider)
