"""Models whose graph is broken are shown, with the fault at its node; what is no model stays a problem."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.viewer.broken_models import read
from onnxsmith.viewer.model_scene import viewed
from onnxsmith.viewer.view import view
from tests.viewer.models import HEAD, assert_sound
from tests.viewer.test_view import scene_in


def written(folder: Path, body: str) -> Path:
    """A file of ONNX text, which is not checked when it is written."""
    path = folder / "m.onnx"
    path.write_bytes(onnx.parser.parse_model(HEAD + body).SerializeToString())
    return path


def shown(path: Path) -> tuple[dict[str, str], list[str], dict[str, Any]]:
    """The marks by the names of nodes, the lines above the picture, and the scene."""
    model, faults = read(path)
    assert faults is not None
    assert_sound(viewed(model, path, ""))
    result = view(path)
    scene = scene_in(result.page)
    names = scene["models"][0]["nodes"]["name"]
    marks = {
        names[node]: f"{layer['classes'][kind]}: {text.partition(': ')[2]}"
        for layer in scene["overlays"]
        for node, kind, text in zip(layer["nodes"], layer["figures"], layer["texts"], strict=True)
    }
    assert scene["warnings"][0] in result.report.headline
    return marks, scene["warnings"], scene


def test_a_cycle(tmp_path: Path) -> None:
    body = """g (float[3] x) => (float[3] y) {
        [first] a = Neg(x) [join] b = Add(a, d) [round] c = Relu(b) [back] d = Sin(c) [last] y = Abs(d) }"""
    marks, lines, scene = shown(written(tmp_path, body))
    assert marks == dict.fromkeys(["join", "round", "back"], "in a cycle: join → round → back → join")
    assert lines[0].startswith("the file is broken: the graph has a cycle through 3 nodes; ")
    assert lines[1] == "marked are 3 nodes: in a cycle"
    values = scene["models"][0]["values"]
    opened = [at for at, name in enumerate(values["name"]) if name == "d" and values["producer"][at] < 0]
    assert [scene["models"][0]["types"][values["type"][at]] for at in opened] == ["back makes it below"]


def test_two_cycles_and_a_node_that_reads_itself(tmp_path: Path) -> None:
    body = """g (float[3] x) => (float[3] y) {
        [a] p = Add(x, q) [b] q = Neg(p) [c] r = Add(q, r) [d] y = Abs(r) }"""
    assert shown(written(tmp_path, body))[0] == {
        "a": "in a cycle: a → b → a", "b": "in a cycle: a → b → a", "c": "in a cycle: c → c",
    }  # fmt: skip


def test_a_cycle_through_a_branch(tmp_path: Path) -> None:
    body = """g (bool c, float[3] x) => (float[3] y) {
        [chosen] t = If (c) <
            then_branch = one () => (float[3] p) { [inner] p = Neg(y) },
            else_branch = two () => (float[3] q) { [other] q = Abs(x) }
        >
        [last] y = Relu(t) }"""
    assert set(shown(written(tmp_path, body))[0]) == {"chosen", "last", "inner"}


def test_an_input_that_nothing_makes(tmp_path: Path) -> None:
    body = "g (float[3] x) => (float[3] y) { [first] a = Add(x, nope) [last] y = Mul(a, gone) }"
    marks, lines, _ = shown(written(tmp_path, body))
    assert marks == {
        "first": "reads what nothing makes: nothing makes nope", "last": "reads what nothing makes: nothing makes gone",
    }  # fmt: skip
    assert "Add first reads 'nope', which nothing makes" in lines[0]
    assert lines[1] == "marked are 2 nodes: reads what nothing makes"


def test_a_node_that_stands_too_early(tmp_path: Path) -> None:
    body = "g (float[3] x) => (float[3] y) { [last] y = Abs(a) [first] a = Neg(x) }"
    assert shown(written(tmp_path, body))[0] == {
        "last": "stands too early: this node stands before first, whose result it reads",
    }


def test_an_output_that_nothing_makes(tmp_path: Path) -> None:
    marks, lines, scene = shown(written(tmp_path, "g (float[3] x) => (float[3] z) { [first] a = Neg(x) }"))
    assert marks == {}
    assert "nothing makes the graph output 'z'" in lines[0]
    assert lines[1] == "no node computes the graph output z"
    model = scene["models"][0]
    at = model["values"]["name"].index("z")
    assert (model["values"]["kind"][at], model["types"][model["values"]["type"][at]]) == (2, "nothing makes it")
    items = model["rooms"][0]["items"]
    drawn = [kind for kind, ref in zip(items["kind"], items["ref"], strict=True) if kind > 1 and ref == at]
    assert drawn == [3]  # an output, and not an input above it


def test_a_result_of_a_branch_that_nothing_makes(tmp_path: Path) -> None:
    body = """g (bool c, float[3] x) => (float[3] y) {
        [chosen] y = If (c) <
            then_branch = one () => (float[3] p) { [inner] q = Neg(x) },
            else_branch = two () => (float[3] r) { [other] r = Abs(x) }
        > }"""
    marks, _, _ = shown(written(tmp_path, body))
    assert marks == {"chosen": "reads what nothing makes: in then_branch, no node computes the result p"}


def test_a_function_that_is_broken(tmp_path: Path) -> None:
    body = """g (float[3] x) => (float[3] y) { [call] y = own.Twice(x) }
        <domain: "own", opset_import: ["": 20]> Twice (a) => (b) { [inner] b = Add(a, missing) }"""
    assert set(shown(written(tmp_path, body))[0]) == {"inner"}


def test_a_graph_without_nodes(tmp_path: Path) -> None:
    _, lines, scene = shown(written(tmp_path, "g (float[3] x) => () { }"))
    assert "the graph has no nodes and no outputs" in lines[0]
    assert scene["models"][0]["nodes"]["name"] == []


def test_weights_whose_file_is_missing(tmp_path: Path) -> None:
    numbers = ",".join(["1"] * 300)
    text = (
        f"g (float[300] x) => (float[300] y) <float[300] w = {{{numbers}}}> {{ [add] t = Add(x, w) [last] y = Neg(t) }}"
    )
    save(from_text(HEAD + text), tmp_path / "m.onnx", external_data=True)
    (data,) = (one for one in tmp_path.iterdir() if one.name != "m.onnx")
    data.unlink()
    marks, lines, _ = shown(tmp_path / "m.onnx")
    assert marks == {"add": f"reads missing weights: w: the values are missing in {data.name}"}
    assert "the file with the weights is missing" in lines[0]


def test_weights_whose_file_is_cut_off(tmp_path: Path) -> None:
    numbers = ",".join(["1"] * 300)
    text = f"g (float[300] x) => (float[300] y) <float[300] w = {{{numbers}}}> {{ [add] y = Add(x, w) }}"
    save(from_text(HEAD + text), tmp_path / "m.onnx", external_data=True)
    (data,) = (one for one in tmp_path.iterdir() if one.name != "m.onnx")
    data.write_bytes(data.read_bytes()[:100])
    marks, lines, _ = shown(tmp_path / "m.onnx")
    assert set(marks) == {"add"}
    assert "external data does not fit" in lines[0]


@pytest.mark.parametrize(
    ("content", "id_"),
    [
        (b"no model at all", "model/"),
        (
            onnx.parser.parse_model(HEAD + "g (float[3] x) => (float[3] x) { x = Neg(x) }").SerializeToString(),
            "model/dup",
        ),
    ],
)
def test_what_cannot_be_drawn_is_a_problem(tmp_path: Path, content: bytes, id_: str) -> None:
    (tmp_path / "m.onnx").write_bytes(content)
    with pytest.raises(OnnxsmithError) as caught:
        view(tmp_path / "m.onnx", output=tmp_path / "page.html")
    assert caught.value.problem.id.startswith(id_)
    assert not (tmp_path / "page.html").exists()


def test_two_models_must_both_be_whole(tmp_path: Path) -> None:
    broken = written(tmp_path, "g (float[3] x) => (float[3] y) { y = Add(x, nope) }")
    with pytest.raises(OnnxsmithError) as caught:
        view(from_text(HEAD + "g (float[3] x) => (float[3] y) { y = Neg(x) }"), broken)
    assert caught.value.problem.id == "model/undefined-input"
