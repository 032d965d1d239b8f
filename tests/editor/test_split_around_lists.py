"""`split` where lists connect some of the nodes: the others go in front of them or behind, and reasons are true."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxsmith
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.surgery import partition
from tests.editor.models import saved

HEAD = '<ir_version: 10, opset_import: ["": 21]>\n'
BETWEEN = (
    HEAD
    + """seqs (float[n,2] a, float[m,2] b, int64 pos) => (float[q,2] joined, float[n,2] after) {
  s1 = SequenceConstruct(a, b)
  r = Relu(a)
  s2 = SequenceInsert(s1, r, pos)
  after = Neg(r)
  joined = ConcatFromSequence<axis = 0>(s2)
}"""
)
LOOPED = (
    HEAD
    + """seqs (float[n,2] a, int64 pos) => (float[q,2] joined) {
  s1 = SequenceConstruct(a, a)
  e = SequenceAt(s1, pos)
  r = Relu(e)
  s2 = SequenceInsert(s1, r)
  joined = ConcatFromSequence<axis = 0>(s2)
}"""
)
TWO = (
    HEAD
    + """seqs (float[n,2] a) => (int64 y) {
  s = SequenceConstruct(a)
  t = SequenceConstruct(a, a)
  u = SequenceLength(s)
  v = SequenceLength(t)
  y = Add(u, v)
}"""
)


def groups(text: str) -> list[list[str]]:
    """The results of the nodes of each group."""
    graph = inferred(from_text(text))[0].graph
    return [[node.outputs[0].name or "" for node in group] for group in partition.inseparable(graph)]


def test_nodes_between_connected_ones() -> None:
    assert groups(BETWEEN) == [["r"], ["s1", "s2", "joined"], ["after"]]
    assert groups(LOOPED) == [["s1", "e", "r", "s2", "joined"]]
    assert groups(TWO) == [["s", "u"], ["t", "v"], ["y"]]


@pytest.mark.parametrize("how", [{"nodes": True}, {"into": 2}])
def test_the_pieces_are_the_model(how: dict[str, Any], tmp_path: Path) -> None:
    path = saved(BETWEEN, tmp_path)
    assert onnxsmith.split(path, tmp_path / "pieces", **how).ok
    index = json.loads((tmp_path / "pieces" / "pieces.json").read_text())
    held: dict[str, Any] = {"a": np.ones((1, 2), np.float32), "b": np.ones((2, 2), np.float32), "pos": np.array(1)}
    expected = onnxsmith.run(path, held).outputs
    for piece in index["pieces"]:
        held |= onnxsmith.run(
            tmp_path / "pieces" / piece["file"], {name: held[name] for name in piece["inputs"]}
        ).outputs
    assert all(np.array_equal(held[name], array) for name, array in expected.items())
    assert len(index["pieces"]) == (3 if "nodes" in how else 2)


def test_a_model_without_lists_keeps_its_order() -> None:
    text = HEAD + "g (float[n] x) => (float[n] y) { a = Neg(x) b = Abs(x) c = Add(b, a) d = Relu(a) y = Mul(c, d) }"
    assert groups(text) == [["a"], ["b"], ["c"], ["d"], ["y"]]


@pytest.mark.parametrize(
    ("text", "how", "why"),
    [
        (LOOPED, {"nodes": True}, "all nodes are connected through s1"),
        (
            HEAD + "g (float[n] x) => (float[n] y) { y = Neg(x) }",
            {"into": 2},
            "the model has only 1 node besides constants",
        ),
        (BETWEEN.replace(", float[n,2] after", ""), {"at": ["joined"]}, "joined needs every node"),
    ],
)
def test_the_one_reason(text: str, how: dict[str, Any], why: str, tmp_path: Path) -> None:
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.split(saved(text, tmp_path), tmp_path / "pieces", **how)
    assert caught.value.problem.id == "split/one-piece"
    assert why in caught.value.problem.why
