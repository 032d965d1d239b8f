"""`split`: the pieces run by themselves, and together they are the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest

import onnxsmith
from onnxsmith.base.report.parts.edits import Edits
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli.commands.edit import Split
from onnxsmith.editor import piecewise
from onnxsmith.editor import split as splitting
from onnxsmith.graph.files.text import from_text
from tests.editor.models import LOOP, NET, saved

X = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
DEEP = """<ir_version: 10, opset_import: ["": 21, "own": 1]>
g (float[n,4] x, bool which) => (float[n,4] y, float[4] w, float[n,4] x2)
<float[4] w = {1,2,3,4}, float[4] v = {2,2,2,2}> {
  a = Mul(x, w)
  c = Constant<value_floats=[1.0, 1.0, 1.0, 1.0]>()
  b = own.shifted(a)
  d = If(which) <then_branch = t () => (float[n,4] p) { m = Mul(b, v) p = Add(m, c) },
                 else_branch = e () => (float[n,4] q) { q = Identity(a) }>
  e = Add(d, c)
  y = Mul(e, w)
  x2 = Identity(x)
}
<domain: "own", opset_import: ["": 21]> shifted (s) => (r) { one = Constant<value_float=1.0>() r = Add(s, one) }"""
LISTS = """<ir_version: 10, opset_import: ["": 21]>
g (float[n,4] x) => (float[k,4] y) {
  a = Relu(x)
  s = SequenceConstruct(a, x)
  b = Neg(x)
  t = SequenceInsert(s, b)
  c = ConcatFromSequence<axis = 0>(t)
  y = Tanh(c)
}"""


def ran(folder: Path, **feeds: Any) -> dict[str, Any]:
    """Runs the pieces one after the other with onnxruntime, by the index alone."""
    index = json.loads((folder / "pieces.json").read_text())
    held: dict[tuple[str | None, str], Any] = {(None, name): value for name, value in feeds.items()}
    for piece in index["pieces"]:
        onnx.checker.check_model(onnx.load(folder / piece["file"]), full_check=True)
        session = onnxruntime.InferenceSession(folder / piece["file"], providers=["CPUExecutionProvider"])
        found = session.run(piece["outputs"], {name: held[of, name] for name, of in piece["inputs"].items()})
        held |= {(piece["file"], name): value for name, value in zip(piece["outputs"], found, strict=True)}
    return {name: held[of, name] for name, of in index["outputs"].items()}


def whole(path: Path, **feeds: Any) -> dict[str, Any]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


@pytest.mark.parametrize(
    "how", [{"into": 2}, {"into": 3, "by_nodes": True}, {"nodes": True}, {"at": ["b"]}, {"at": "d"}]
)
def test_the_pieces_are_the_model(how: dict[str, Any], tmp_path: Path) -> None:
    path = saved(DEEP, tmp_path)
    result = onnxsmith.split(path, tmp_path / "pieces", **how)
    assert result.ok
    assert result.path == tmp_path / "pieces"
    for which in (True, False):
        feeds = {"x": X, "which": np.array(which)}
        found, wanted = ran(tmp_path / "pieces", **feeds), whole(path, **feeds)
        assert found.keys() == wanted.keys()
        assert all(np.allclose(found[name], wanted[name]) for name in wanted)
    assert any("were run one after the other" in note for note in result.report.part(Edits).notes)


def test_a_loop_stays_in_one_piece(tmp_path: Path) -> None:
    path = saved(LOOP, tmp_path)
    assert onnxsmith.split(path, tmp_path / "pieces", nodes=True).ok
    assert len(list((tmp_path / "pieces").glob("*.onnx"))) == 2
    feeds = {"x": X, "k": np.array(3)}
    assert np.allclose(ran(tmp_path / "pieces", **feeds)["y"], whole(path, **feeds)["y"])


def test_a_node_a_piece(tmp_path: Path) -> None:
    result = onnxsmith.split(saved(NET, tmp_path), tmp_path / "pieces", nodes=True)
    assert [done.split(":")[0] for _, done in result.report.part(Edits).steps] == ["1 node"] * 4


def test_lists_do_not_leave_a_piece(tmp_path: Path) -> None:
    path = saved(LISTS, tmp_path)
    result = onnxsmith.split(path, tmp_path / "pieces", nodes=True)
    assert len(json.loads((tmp_path / "pieces" / "pieces.json").read_text())["pieces"]) == 3
    assert any("stay together" in note for note in result.report.part(Edits).notes)
    assert np.allclose(ran(tmp_path / "pieces", x=X)["y"], whole(path, x=X)["y"])
    with pytest.raises(onnxsmith.OnnxsmithError, match="split/one-piece"):
        onnxsmith.split(path, tmp_path / "other", at=["c"])


def test_fewer_pieces_than_asked_for_are_noted(tmp_path: Path) -> None:
    result = onnxsmith.split(saved(LISTS, tmp_path), tmp_path / "pieces", into=6)
    assert any("6 pieces were requested" in note for note in result.report.part(Edits).notes)


def test_weights_are_balanced(tmp_path: Path) -> None:
    nodes = "\n".join(f"t{at + 1} = MatMul(t{at}, w{at})" for at in range(6))
    weights = ", ".join(f"float[8,8] w{at} = {{{', '.join(['0.1'] * 64)}}}" for at in range(6))
    text = f'<ir_version: 10, opset_import: ["": 21]> g (float[n,8] t0) => (float[n,8] t6) <{weights}> {{ {nodes} }}'
    assert onnxsmith.split(saved(text, tmp_path), tmp_path / "pieces", into=3).ok
    index = json.loads((tmp_path / "pieces" / "pieces.json").read_text())
    assert [piece["nodes"] for piece in index["pieces"]] == [2, 2, 2]
    assert [list(piece["inputs"]) for piece in index["pieces"]] == [["t0"], ["t2"], ["t4"]]


def test_the_shapes_of_ports_have_symbols(tmp_path: Path) -> None:
    onnxsmith.split(saved(NET, tmp_path), tmp_path / "pieces", into=2)
    second = onnxsmith.load(tmp_path / "pieces" / "piece_1.onnx")
    assert {str(value.shape) for value in second.graph.inputs} == {"[n,4]"}


def test_pieces_that_are_not_the_model_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = splitting.save_for_now

    def wrong(model: Any, target: Path, **options: Any) -> None:
        for value in model.graph.initializers.values():
            value.const_value = (
                onnxsmith.load(saved(NET.replace("{1,2,3,4}", "{1,2,3,5}"), tmp_path))
                .graph.initializers[value.name]
                .const_value
            )
        write(model, target, **options)

    path = saved(NET, tmp_path).rename(tmp_path / "net.onnx")
    monkeypatch.setattr(splitting, "save_for_now", wrong)
    result = onnxsmith.split(path, tmp_path / "pieces", into=2)
    assert result.report.verdict is Verdict.DIFFERENT
    assert not (tmp_path / "pieces").exists()


@pytest.mark.parametrize(
    ("how", "id_"),
    [
        ({}, "split/how"),
        ({"into": 1}, "split/how"),
        ({"into": 2, "nodes": True}, "split/how"),
        ({"at": ["x"]}, "split/one-piece"),
        ({"at": ["y"]}, "split/one-piece"),
        ({"at": ["nothing"]}, "edit/no-match"),
    ],
)
def test_refusals(how: dict[str, Any], id_: str, tmp_path: Path) -> None:
    text = '<ir_version: 10, opset_import: ["": 21]> g (float[n,4] x) => (float[n,4] y) { a = Relu(x) y = Neg(a) }'
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.split(saved(text, tmp_path), tmp_path / "pieces", **how)
    assert caught.value.problem.id == id_
    assert not (tmp_path / "pieces").exists()


def test_a_model_that_has_no_second_piece(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["": 21]>
g (float[n,4] x) => (float[n,4] y) <float[4] w = {1, 2, 3, 4}> { y = Add(x, w) }"""
    with pytest.raises(onnxsmith.OnnxsmithError, match="split/one-piece") as caught:
        onnxsmith.split(saved(text, tmp_path), tmp_path / "pieces", at=["w"])
    assert caught.value.problem.fix == "use the model as it is: it has no second piece"


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    path = saved(NET, tmp_path)
    (tmp_path / "pieces").mkdir()
    (tmp_path / "pieces" / "notes.txt").write_text("mine")
    with pytest.raises(onnxsmith.OnnxsmithError, match="split/folder"):
        onnxsmith.split(path, tmp_path / "pieces", into=2)
    assert [file.name for file in (tmp_path / "pieces").iterdir()] == ["notes.txt"]
    with pytest.raises(onnxsmith.OnnxsmithError, match="save/no-folder"):
        onnxsmith.split(path, tmp_path / "none" / "pieces", into=2)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = saved(NET, tmp_path)
    report = Split(model=str(path), output="pieces", into=2).run()
    assert report.verdict is Verdict.DONE
    assert "2 pieces, verified" in report.headline
    with pytest.raises(onnxsmith.OnnxsmithError, match="edit/no-output"):
        Split(model=str(path), into=2).run()


def test_external_data(tmp_path: Path) -> None:
    path = saved(NET, tmp_path)
    onnxsmith.split(path, tmp_path / "pieces", into=2, save=onnxsmith.base.settings.Save(external_data=True))
    assert np.allclose(ran(tmp_path / "pieces", x=X)["y"], whole(path, x=X)["y"])


def test_a_default_that_one_piece_has_wrong_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put together, the pieces share the input and its default: only running them one after the other shows it."""
    text = """<ir_version: 3, opset_import: ["": 11]>
    g (float[n,4] x, float[4] w) => (float[n,4] y) <float[4] w = {1,2,3,4}> { a = Mul(x, w) y = Add(a, w) }"""
    right = splitting.partition.pieces_of

    def wrong(*given: Any) -> Any:
        made = right(*given)
        made[-1].model.graph.initializers["w"].const_value = ir.tensor(np.array([1, 2, 3, 5], np.float32), name="w")
        return made

    assert onnxsmith.split(from_text(text), tmp_path / "right", nodes=True).ok
    monkeypatch.setattr(splitting.partition, "pieces_of", wrong)
    result = onnxsmith.split(from_text(text), tmp_path / "wrong", nodes=True)
    assert result.report.verdict is Verdict.DIFFERENT
    assert not (tmp_path / "wrong").exists()


def test_nodes_that_no_output_needs_are_left_out(tmp_path: Path) -> None:
    text = (
        '<ir_version: 10, opset_import: ["": 21]> g (float[n] x) => (float[n] y) { a = Neg(x) b = Exp(x) y = Relu(a) }'
    )
    result = onnxsmith.split(from_text(text), tmp_path / "out", nodes=True)
    assert result.ok
    assert "2 pieces" in result.report.headline
    assert "left out: 1 node" in str(result.report.parts[0])


def test_random_numbers_and_operators_that_nothing_runs(tmp_path: Path) -> None:
    drawn = (
        '<ir_version: 10, opset_import: ["": 21]>'
        " g (float[n,4] x) => (float[n,4] y) { a = RandomNormalLike(x) b = Add(a, x) y = Neg(b) }"
    )
    result = onnxsmith.split(from_text(drawn), tmp_path / "drawn", nodes=True)
    assert result.ok
    assert "draws random numbers" in result.report.headline
    foreign = """<ir_version: 10, opset_import: ["": 21, "mine": 1]>
    g (float[n,4] x) => (float[n,4] y) <float[n,4] b> { a = Relu(x) b = mine.Thing(a) c = Neg(b) y = Exp(c) }"""
    result = onnxsmith.split(from_text(foreign), tmp_path / "foreign", at=["c"])
    assert result.ok
    assert "not one after the other" in result.report.headline


def test_too_many_pieces_are_not_run_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(piecewise, "_MOST", 1)
    result = onnxsmith.split(from_text(NET), tmp_path / "out", nodes=True)
    assert result.ok
    assert "not one after the other" in result.report.headline
