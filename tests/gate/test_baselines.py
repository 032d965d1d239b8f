"""`baseline`: an unchanged model passes, and each planted regression is found with its cause."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from onnxsmith.base.report.base import Report, Table
from onnxsmith.base.report.parts.baselines import Baselines
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.gate.baselines import facts_comparison, holding, target_stages, verbs
from onnxsmith.gate.baselines.digests import digests
from onnxsmith.gate.baselines.entry import Entry, StoredPort, StoredTarget
from onnxsmith.gate.baselines.settings import Settings
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.runtimes._isolated import Turn
from onnxsmith.testing import assert_not_worse

MODEL = """<ir_version: 10, opset_import: ["": 20]>
g (float[n,4] x, float[n,4] z) => (float[n,2] y, float[n,4] q)
<float[4,2] w = {1,2,3,4,5,6,7,8}, float[4] s = {1,1,1,1}, float[4] b = {0,0.5,1,1.5}>
{
  t = Add(x, z)
  l = LayerNormalization <axis = -1, epsilon = 0.001> (t, s, b)
  y = MatMul(l, w)
  q = Neg(z)
}"""
NO_TIME = Settings(times=False)


def write(file: Path, *changes: str, text: str = MODEL) -> Path:
    """Writes the model with pairs of a text and what takes its place."""
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in text
        text = text.replace(old, new)
    save(from_text(text), file)
    return file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A recorded model, with its baseline beside it."""
    found = write(tmp_path / "m.onnx")
    verbs.record([found], tmp_path / "baseline.json", NO_TIME)
    return found


def check(file: Path, settings: Settings = NO_TIME) -> Report:
    return verbs.check([file], file.with_name("baseline.json"), settings)


def kinds(report: Report, result: str = "worse") -> list[str]:
    return [one.kind for one in report.part(Baselines).changes if one.result == result]


def files(file: Path) -> dict[str, bytes]:
    return {name: file.with_name(name).read_bytes() for name in ("baseline.json", "baseline.zip")}


def test_an_unchanged_model(file: Path) -> None:
    before = files(file)
    report = check(file)
    assert report.verdict is Verdict.DONE
    assert not report.part(Baselines).changes
    assert verbs.check([], file.with_name("baseline.json"), NO_TIME).verdict is Verdict.DONE
    assert "1 unchanged" in verbs.record([file], file.with_name("baseline.json"), NO_TIME).headline
    assert files(file) == before
    for name in before:
        file.with_name(name).unlink()
    verbs.record([file], file.with_name("baseline.json"), NO_TIME)
    assert files(file) == before, "a record from nothing gives the same bytes"
    assert str(file.parent) not in before["baseline.json"].decode()
    assert_not_worse(file, file.with_name("baseline.json"))


REGRESSIONS: dict[str, tuple[Sequence[str], list[str]]] = {
    "one weight is off by 1%": (("6,7,8", "6,7,8.08"), ["weights"]),
    "an epsilon": (("0.001", "0.1"), ["graph"]),
    "an input is renamed": (("float[n,4] x", "float[n,4] xx", "Add(x,", "Add(xx,"), ["interface"]),
    "inputs are permuted": (("float[n,4] x, float[n,4] z", "float[n,4] z, float[n,4] x"), ["interface"]),
    "outputs are permuted": (("float[n,2] y, float[n,4] q", "float[n,4] q, float[n,2] y"), ["interface"]),
    "an output is renamed": (("float[n,2] y", "float[n,2] yy", "y = Mat", "yy = Mat"), ["interface"]),
    "a size became fixed": (("float[n,4] x", "float[2,4] x"), ["interface"]),
    "another dtype": (
        ("float[n,4] q", "double[n,4] q", "q = Neg(z)", "r = Neg(z) q = Cast<to = 11>(r)"),
        ["interface"],
    ),
    "more nodes": (("q = Neg(z)", "r = Identity(z) q = Neg(r)"), ["nodes"]),
    "an operator": (("t = Add", "t = Sub"), ["graph"]),
    "weights swapped": (("{0,0.5,1,1.5}", "{1,1,1,1}", "s = {1,1,1,1}", "s = {0,0.5,1,1.5}"), ["weights"]),
}


@pytest.mark.parametrize("name", REGRESSIONS)
def test_a_regression_has_its_cause(file: Path, name: str) -> None:
    changes, causes = REGRESSIONS[name]
    write(file, *changes)
    report = check(file)
    assert report.verdict is Verdict.DIFFERENT
    assert kinds(report)[: len(causes)] == causes
    if "nodes" not in causes and name != "another dtype":
        assert set(kinds(report)) == set(causes)
    assert report.problems[0].id == "gate/worse"
    assert report.headline.endswith(f"m.onnx: {', '.join(dict.fromkeys(kinds(report)))}")
    with pytest.raises(AssertionError, match=f"gate/worse: m.onnx is worse than its baseline: {causes[0]}"):
        assert_not_worse(file, file.with_name("baseline.json"))
    verbs.accept([file], file.with_name("baseline.json"), "it is meant", NO_TIME)
    assert check(file).verdict is Verdict.DONE


@pytest.mark.parametrize(
    "changes",
    [
        ("t = Add", "hidden = Add", "(t,", "(hidden,"),
        ("  q = Neg(z)\n", "", "  t = Add", "  q = Neg(z)\n  t = Add"),
        ("n,", "batch,"),
        ("float[4,2] w =", "float[4,2] other =", "(l, w)", "(l, other)"),
    ],
    ids=["a tensor is renamed", "nodes in another order", "a dimension is renamed", "a weight is renamed"],
)
def test_what_is_no_regression(file: Path, changes: Sequence[str]) -> None:
    write(file, *changes)
    report = check(file)
    assert report.verdict is Verdict.DONE
    assert not kinds(report)
    assert {one.kind for one in report.part(Baselines).changes} <= {"file", "size"}


def test_a_changed_file_that_computes_the_same_is_not_worse(file: Path) -> None:
    write(file, "q = Neg(z)", "k = Constant<value = float {-1}>() q = Mul(z, k)")
    report = check(file, Settings(times=False, allow_size=1))
    assert kinds(report, "changed") == ["weights", "graph"]
    assert kinds(report) == ["nodes"]
    write(file, "q = Neg(z)", "q = Mul(z, m)", "<float[4,2] w", "<float m = {-1}, float[4,2] w")
    report = check(file, Settings(times=False, allow_size=1))
    assert report.verdict is Verdict.DONE
    assert "changed, not worse: m.onnx" in report.headline


def test_fewer_nodes_and_bytes_are_listed(file: Path) -> None:
    write(file, "q = Neg(z)", "r = Identity(z) v = Identity(r) q = Neg(v)")
    verbs.accept([file], file.with_name("baseline.json"), "for the test", NO_TIME)
    write(file)
    report = check(file)
    assert report.verdict is Verdict.DONE
    assert {"size", "nodes"} <= set(kinds(report, "better"))


def test_a_larger_file(file: Path) -> None:
    write(file, "<float[4,2] w", "<float[9] unused = {1,2,3,4,5,6,7,8,9}, float[4,2] w")
    assert not kinds(check(file))  # some bytes more are names and documentation
    padding = ",".join(["0.5"] * 400)
    write(file, "<float[4,2] w", f"<float[400] unused = {{{padding}}}, float[4,2] w")
    report = check(file)
    assert report.verdict is Verdict.DIFFERENT
    assert kinds(report) == ["size"]
    assert not kinds(check(file, Settings(times=False, allow_size=9)))


def test_a_target_that_no_longer_takes_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = StoredTarget("agreed", version="1")
    monkeypatch.setattr(target_stages, "stages", lambda *_: {"board": stage})
    file.with_name("baseline.json").unlink()
    verbs.record([file], file.with_name("baseline.json"), Settings(times=False, targets=("board",)))
    assert check(file).verdict is Verdict.DONE
    for now, result in (
        (StoredTarget("refused", version="2"), "worse"),
        (StoredTarget("agreed", shapes="n=2"), "worse"),
        (StoredTarget("agreed", changed="without Neg"), "worse"),
        (StoredTarget("not tried"), "cannot tell"),
        (StoredTarget("ran with other numbers"), "worse"),
    ):
        monkeypatch.setattr(target_stages, "stages", lambda *_, now=now: {"board": now})
        report = check(file)
        assert kinds(report, result) == ["target"]
        assert report.verdict is (Verdict.DIFFERENT if result == "worse" else Verdict.CANNOT_TELL)


@pytest.mark.parametrize(("before", "now"), [("agreed", "ran"), ("ran", "agreed")])
def test_a_second_runtime_more_or_less_is_neither_better_nor_worse(
    file: Path, monkeypatch: pytest.MonkeyPatch, before: str, now: str
) -> None:
    """`agreed` needs another runtime to compare with, which one machine has and another one has not."""
    monkeypatch.setattr(target_stages, "stages", lambda *_: {"board": StoredTarget(before)})
    file.with_name("baseline.json").unlink()
    verbs.record([file], file.with_name("baseline.json"), Settings(times=False, targets=("board",)))
    monkeypatch.setattr(target_stages, "stages", lambda *_: {"board": StoredTarget(now)})
    report = check(file)
    assert report.verdict is Verdict.DONE
    assert kinds(report, "changed") == ["target"]


def test_a_limit_of_the_size_that_is_given_holds_exactly(file: Path) -> None:
    write(file, "<float[4,2] w", "<float[9] unused = {1,2,3,4,5,6,7,8,9}, float[4,2] w")
    assert kinds(check(file, Settings(times=False, allow_size=0.05))) == ["size"]


def test_growth_that_is_allowed_is_shown(file: Path) -> None:
    padding = ",".join(["0.5"] * 400)
    write(file, "<float[4,2] w", f"<float[400] unused = {{{padding}}}, float[4,2] w")
    report = check(file, Settings(times=False, allow_size=99))
    assert report.verdict is Verdict.DONE
    assert "size" in kinds(report, "changed")


def test_each_cause_has_its_help(file: Path) -> None:
    padding = ",".join(["0.5"] * 400)
    write(file, "<float[4,2] w", f"<float[400] unused = {{{padding}}}, float[4,2] w", "q = Neg(z)", "q = Abs(z)")
    report = check(file)
    (found,) = report.problems
    assert {"graph", "size"} <= set(kinds(report))
    assert re.search(r"graph: [^;]*`[^`]*onnxsmith diff [^;]*; size: [^;]*`onnxsmith inspect ", found.fix)


def test_a_model_that_cannot_be_loaded_shows_no_recorded_figures(file: Path) -> None:
    file.write_bytes(b"\x00\x01garbage")
    (row,) = check(file).part(Baselines).models
    assert (row.result, row.nodes, row.bytes, row.targets) == ("failed", None, None, None)


def test_a_real_target_is_asked(tmp_path: Path) -> None:
    file = write(tmp_path / "m.onnx")
    verbs.record([file], tmp_path / "baseline.json", Settings(times=False, targets=("onnxruntime",)))
    entry = json.loads((tmp_path / "baseline.json").read_text())["models"]["m.onnx"]
    assert entry["targets"]["onnxruntime"]["stage"] == "agreed"
    assert check(file).verdict is Verdict.DONE


@pytest.mark.parametrize("cause", ["runtime", "machine", "unsteady"])
def test_other_numbers_of_the_same_file(file: Path, monkeypatch: pytest.MonkeyPatch, cause: str) -> None:
    run = Turn.run

    def moved(self: Any, feeds: Any) -> Any:
        return {name: value * np.float32(1.01) for name, value in run(self, feeds).items()}

    monkeypatch.setattr(Turn, "run", moved)
    if cause == "runtime":
        monkeypatch.setattr(holding, "versions", lambda _: {"onnxruntime": "99.0"})
    if cause == "machine":
        monkeypatch.setattr(holding, "here", lambda: {"processor": "another"})
    report = check(file)
    assert report.verdict is Verdict.DIFFERENT
    assert kinds(report) == [cause]
    if cause == "runtime":
        assert "is 99.0" in report.problems[0].why


def test_accept_keeps_the_reason_and_what_changed(file: Path) -> None:
    baseline = file.with_name("baseline.json")
    write(file, "6,7,8", "6,7,8.08")
    report = verbs.accept([file], baseline, "trained on more data", NO_TIME)
    assert report.verdict is Verdict.DONE
    assert check(file).verdict is Verdict.DONE
    (one,) = json.loads(baseline.read_text())["models"]["m.onnx"]["history"]
    assert one["reason"] == "trained on more data"
    assert one["changed"][0].startswith("weights: ")
    write(file)
    verbs.accept([file], baseline, "back again", NO_TIME)
    assert [one["reason"] for one in json.loads(baseline.read_text())["models"]["m.onnx"]["history"]] == [
        "trained on more data",
        "back again",
    ]


def test_equal_models_share_their_data(tmp_path: Path) -> None:
    two = [write(tmp_path / "a.onnx"), write(tmp_path / "b.onnx")]
    verbs.record(two[:1], tmp_path / "baseline.json", NO_TIME)
    one = (tmp_path / "baseline.zip").read_bytes()
    verbs.record(two, tmp_path / "baseline.json", NO_TIME)
    assert (tmp_path / "baseline.zip").read_bytes() == one
    assert list(json.loads((tmp_path / "baseline.json").read_text())["models"]) == ["a.onnx", "b.onnx"]


KINDS = {
    "bfloat16": ("(bfloat16[2] x) => (bfloat16[2] y) { y = Neg(x) }", {"x": np.array([1, 2.5], ml_dtypes.bfloat16)}),
    "strings": ("(string[2] x) => (string[2] y) { y = Identity(x) }", {"x": np.array(["a", "ü\0"], object)}),
    "sequences": (
        "(float[2] x) => (seq(float[1]) y) { y = SplitToSequence<axis = 0>(x) }",
        {"x": np.array([1, 2], np.float32)},
    ),
    "bools": ("(bool[2] x) => (bool[2] y) { y = Not(x) }", {"x": np.array([True, False])}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_every_kind_are_kept(tmp_path: Path, kind: str) -> None:
    text, values = KINDS[kind]
    runtime = "reference" if kind == "bfloat16" else None
    write(tmp_path / "m.onnx", text=f'<ir_version: 10, opset_import: ["": 20]> g {text}')
    settings = Settings(times=False, inputs=values, runtime=runtime)
    verbs.record([tmp_path / "m.onnx"], tmp_path / "baseline.json", settings)
    report = check(tmp_path / "m.onnx")
    assert report.verdict is Verdict.DONE
    assert not report.part(Baselines).changes


def port(name: str, *shape: int | str, dtype: str = "float") -> StoredPort:
    return StoredPort(name, dtype, list(shape))


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ([port("a"), port("b")], [port("b"), port("c")], ["the input 'a' is now called 'c'"]),
        ([port("a")], [port("a"), port("b")], ["the input 'b' is new"]),
        ([port("a"), port("b")], [port("a")], ["the input 'b' was removed"]),
        ([port("a", "n", "n")], [port("a", "n", "m")], ["the input 'a' was float[n,n], and now is float[n,m]"]),
        ([port("a", "n", "m")], [port("a", "n", "n")], ["the input 'a' was float[n,m], and now is float[n,n]"]),
        ([port("a", "n", 3)], [port("a", "k", 3)], []),
        ([port("a", "n"), port("b", "m")], [port("z", "m"), port("b", "n")], ["the input 'a' is now called 'z'"]),
        ([port("a", 3)], [port("a", 3, 1)], ["the input 'a' was float[3], and now is float[3,1]"]),
    ],
)
def test_interfaces(before: list[StoredPort], after: list[StoredPort], said: list[str]) -> None:
    class Now:
        ports: Callable[..., Any] | dict[str, list[StoredPort]] = {"inputs": after, "outputs": []}  # noqa: RUF012

    entry = Entry({"inputs": before, "outputs": []}, {}, {}, {}, "onnxruntime", {}, {}, [])
    assert [one.what for one in facts_comparison.interface_changes(entry, Now())] == said  # type: ignore[arg-type]


def test_a_changed_interface_is_shown_to_targets_with_its_own_inputs(tmp_path: Path) -> None:
    file = write(tmp_path / "m.onnx")
    verbs.record([file], tmp_path / "baseline.json", Settings(times=False, targets=("onnxruntime",)))
    write(file, "float[n,4] x", "float[n,4] xx", "Add(x,", "Add(xx,")
    report = check(file)
    assert report.verdict is Verdict.DIFFERENT
    assert kinds(report) == ["interface"]


def test_models_in_other_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "held").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "held", target_is_directory=True)
    write(tmp_path / "models" / "m.onnx")
    monkeypatch.chdir(tmp_path)
    verbs.record(["models/m.onnx"], "link/baseline.json", NO_TIME)
    assert '"../models/m.onnx"' in (tmp_path / "held" / "baseline.json").read_text()
    for path in ("link/baseline.json", "held/baseline.json", tmp_path / "held" / "baseline.json"):
        assert verbs.check([], path, NO_TIME).verdict is Verdict.DONE
        assert_not_worse(tmp_path / "models" / "m.onnx", path)


def test_external_data_counts(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    numbers = ",".join(map(str, range(1, 1601)))
    text = f"(float[n,40] x) => (float[n,40] y) <float[40,40] w = {{{numbers}}}> {{ y = MatMul(x, w) }}"
    save(from_text(f'<ir_version: 10, opset_import: ["": 20]> g {text}'), file, external_data=True)
    verbs.record([file], tmp_path / "baseline.json", NO_TIME)
    assert json.loads((tmp_path / "baseline.json").read_text())["models"]["m.onnx"]["bytes"]["data"] > 0
    (data,) = tmp_path.glob("m.onnx.*")
    content = np.fromfile(data, np.float32)
    content[content == 1000] = 1010
    content.tofile(data)
    report = check(file)
    assert kinds(report) == ["weights"]


BODIES = """<ir_version: 10, opset_import: ["": 20, "own": 1]>
g (bool c, float[2] x) => (float[2] y) {
  t = If (c) <
    then_branch = a () => (float[2] u) { k = Constant<value = float[2] {1, 2}>() u = Add(x, k) },
    else_branch = b () => (float[2] v) { v = own.twice<by = 3.0>(x) }
  >
  y = Neg(t)
}
<domain: "own", opset_import: ["": 20]>
twice <by: float = 2.0> (p) => (r) { s = Constant<value_float: float = @by>() r = Mul(p, s) }"""


def test_digests_look_into_bodies_and_functions() -> None:
    def found(*changes: str) -> Any:
        text = BODIES
        for old, new in zip(changes[::2], changes[1::2], strict=True):
            assert old in text
            text = text.replace(old, new)
        return digests(from_text(text))[0]

    usual = found()
    assert found("k =", "kk =", "(x, k)", "(x, kk)") == usual
    assert found("(p)", "(pp)", "(p,", "(pp,") == usual
    weight = found("{1, 2}", "{1, 3}")
    assert (weight.graph == usual.graph, weight.weights == usual.weights) == (True, False)
    for changes in (("u = Add", "u = Sub"), ("by = 3.0", "by = 4.0"), ("r = Mul", "r = Div"), ("y = Neg", "y = Abs")):
        graph = found(*changes)
        assert (graph.graph == usual.graph, graph.weights == usual.weights) == (False, True)


def test_a_weight_that_no_recorded_input_reads_cannot_tell(tmp_path: Path) -> None:
    head = '<ir_version: 10, opset_import: ["": 20]> '
    text = "g (int64[2] ids) => (float[2,1] y) <float[9,1] t = {0,1,2,3,4,5,6,7,8}> { y = Gather(t, ids) }"
    file = tmp_path / "m.onnx"
    save(from_text(head + text), file)
    settings = Settings(times=False, inputs=[{"ids": np.array([1, 2])}])
    verbs.record([file], tmp_path / "baseline.json", settings)
    save(from_text(head + text.replace("7,8}", "7,9}")), file)
    report = verbs.check([file], tmp_path / "baseline.json", NO_TIME)
    assert report.verdict is Verdict.CANNOT_TELL
    assert kinds(report, "cannot tell") == ["weights"]
    assert "no recorded input shows a difference" in report.problems[0].why


def test_weights_that_no_node_reads_change_nothing_else(tmp_path: Path) -> None:
    head = '<ir_version: 10, opset_import: ["": 20]> '
    text = "g (float[2] x) => (float[2] y) <float[2] w = {1,2}> { y = Mul(x, w) }"
    file = tmp_path / "m.onnx"
    save(from_text(head + text), file)
    verbs.record([file], tmp_path / "baseline.json", NO_TIME)
    save(from_text(head + text.replace("{1,2}", "{1,2}, float[3] more = {1,2,3}")), file)
    report = verbs.check([file], tmp_path / "baseline.json", NO_TIME)
    assert report.verdict is Verdict.DONE
    assert kinds(report, "changed") == ["weights"]


BRANCHES = """<ir_version: 10, opset_import: ["": 20]>
g (float[2] x, bool c) => (float[2] y) <float[2] w = {1,2}>
{
  r = Relu(x)
  b = If (c) <
    then_branch = t () => (float[2] p) { p = Mul(r, w) },
    else_branch = e () => (float[2] q) { q = Add(r, w) }
  >
  y = Neg(b)
}"""


@pytest.mark.parametrize(
    ("old", "new", "given", "result"),
    [
        ("Add(r, w)", "Sub(r, w)", True, "cannot tell"),
        ("Add(r, w)", "Sub(r, w)", False, "worse"),
        ("Relu(x)", "Identity(x)", True, "changed"),
    ],
)
def test_a_branch_that_no_recorded_input_takes(tmp_path: Path, old: str, new: str, given: bool, result: str) -> None:
    file = tmp_path / "m.onnx"
    save(from_text(BRANCHES), file)
    inputs = [{"x": np.array([1, 2], np.float32), "c": np.array(given)}]
    verbs.record([file], tmp_path / "baseline.json", Settings(times=False, inputs=inputs))
    save(from_text(BRANCHES.replace(old, new)), file)
    report = verbs.check([file], tmp_path / "baseline.json", NO_TIME)
    assert kinds(report, result) == ["graph"]


def test_a_model_without_an_entry_has_no_counts(tmp_path: Path) -> None:
    for name in ("m", "n"):
        save(from_text(BRANCHES), tmp_path / f"{name}.onnx")
    verbs.record([tmp_path / "m.onnx"], tmp_path / "baseline.json", NO_TIME)
    report = verbs.check([tmp_path / "m.onnx", tmp_path / "n.onnx"], tmp_path / "baseline.json", NO_TIME)
    table = next(block for block in report.part(Baselines).blocks() if isinstance(block, Table))
    assert next(row for row in table.rows if row[0] == "n.onnx")[:5] == ("n.onnx", "new", "", "", "")


def test_a_wrong_declaration_is_a_note(tmp_path: Path) -> None:
    head = '<ir_version: 10, opset_import: ["": 20]> '
    save(from_text(head + "g (float[b,t] x) => (float[b,7] y) { y = Neg(x) }"), tmp_path / "m.onnx")
    report = verbs.record([tmp_path / "m.onnx"], tmp_path / "baseline.json", NO_TIME)
    assert any("y was declared as float[b,7], but is" in note for note in report.notes)
