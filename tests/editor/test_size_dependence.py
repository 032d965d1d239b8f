"""A constant that becomes an input decides shapes: what the file declares of them may not stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxsmith
from onnxsmith.base.report.parts.edits import Edits
from tests.editor.models import saved

HEAD = '<ir_version: 10, opset_import: ["": 21, "my": 1]>\n'
X = np.arange(24, dtype=np.float32).reshape(4, 6) / 8

CASES: dict[str, tuple[str, Any]] = {
    "TopK": (
        "g (float[4,6] x) => (float[4,2] y, float[2,4] z) <int64[1] k = {2}> { y, at = TopK(x, k) z = Transpose(y) }",
        [3],
    ),
    "Reshape": ("g (float[4,6] x) => (float[8,3] y) <int64[2] k = {8,3}> { y = Reshape(x, k) }", [2, 12]),
    "Reshape of a sum": (
        (
            "g (float[4,6] x) => (float[8,3] y) <int64[2] k = {6,2}, int64[2] two = {2,1}> "
            "{ s = Add(k, two) y = Reshape(x, s) }"
        ),
        [0, 11],
    ),
    "Expand": ("g (float[4,6] x) => (float[2,4,6] y) <int64[3] k = {2,4,6}> { y = Expand(x, k) }", [3, 4, 6]),
    "Slice": (
        (
            "g (float[4,6] x) => (float[4,2] y) <int64[1] k = {2}, int64[1] from = {0}, int64[1] at = {1}> "
            "{ y = Slice(x, from, k, at) }"
        ),
        [5],
    ),
    "Resize": (
        'g (float[4,6] x) => (float[8,6] y) <int64[2] k = {8,6}> { y = Resize<mode = "nearest">(x, , , k) }',
        [4, 12],
    ),
    "Range": (
        (
            "g (float[4,6] x) => (int64[6] y, float[4,6] z) <int64 k = {6}, int64 from = {0}, int64 one = {1}> "
            "{ y = Range(from, k, one) z = Relu(x) }"
        ),
        9,
    ),
    "Tile": ("g (float[4,6] x) => (float[8,6] y) <int64[2] k = {2,1}> { y = Tile(x, k) }", [1, 3]),
    "Pad": ("g (float[4,6] x) => (float[5,6] y) <int64[4] k = {1,0,0,0}> { y = Pad(x, k) }", [0, 2, 0, 2]),
    "Split": (
        "g (float[4,6] x) => (float[1,6] y, float[3,6] z) <int64[2] k = {1,3}> { y, z = Split<axis = 0>(x, k) }",
        [2, 2],
    ),
    "ReduceSum": (
        "g (float[4,6] x) => (float[1,6] y) <int64[1] k = {0}> { y = ReduceSum<keepdims = 1>(x, k) }",
        [1],
    ),
    "NonMaxSuppression": (
        (
            "g (float[1,3,4] x) => (int64[1,3] y) <int64 k = {1}, float[1,1,3] s = {0.9,0.8,0.7}> "
            "{ y = NonMaxSuppression(x, s, k) }"
        ),
        2,
    ),
    "Compress by numbers": (
        (
            "g (float[4,6] x) => (float[2,6] y) <float[4] k = {1,1,-1,-1}, float zero = {0}> "
            "{ c = Greater(k, zero) y = Compress<axis = 0>(x, c) }"
        ),
        [1.0, 1.0, 1.0, -1.0],
    ),
    "a loop": (
        (
            "g (float[4,6] x) => (float[3,4,6] y) <int64 k = {3}, bool go = {1}> { s, y = Loop(k, go, x) "
            "<body = b (int64 i, bool c, float[4,6] h) => (bool c2, float[4,6] h2, float[4,6] o) "
            "{ c2 = Identity(c) h2 = Tanh(h) o = Neg(h) }> }"
        ),
        5,
    ),
    "a branch": (
        (
            "g (float[4,6] x) => (float[4,2] y) <int64[1] k = {2}, bool go = {1}> { y = If(go) "
            "<then_branch = a () => (float[4,2] p) { p, q = TopK(x, k) }, "
            "else_branch = b () => (float[4,2] r) { r, s = TopK(x, k) }> }"
        ),
        [3],
    ),
    "a function": (
        (
            "g (float[4,6] x) => (float[4,2] y) <int64[1] k = {2}> { y = my.First(x, k) }\n"
            '<domain: "my", opset_import: ["": 21]> First (u, n) => (v) { v, at = TopK(u, n) }'
        ),
        [3],
    ),
}
"""A model whose constant `k` decides a shape, and another value of `k`."""


def shapes(path: Path) -> dict[str, list[Any]]:
    found = onnxsmith.load(path).graph.outputs
    return {one.name or "": [dim if isinstance(dim, int) else None for dim in one.shape or ()] for one in found}


@pytest.mark.parametrize("name", CASES)
def test_the_declared_sizes_are_true_for_other_values(name: str, tmp_path: Path) -> None:
    text, value = CASES[name]
    path = saved(HEAD + text, tmp_path)
    dtype = onnxsmith.load(path).graph.initializers["k"].dtype
    with onnxsmith.edit(path) as m:
        m.add_input("k")
    assert dtype is not None
    feeds = {"x": X if "1,3,4" not in text else BOXES, "k": np.array(value, dtype.numpy())}
    outputs, declared = onnxsmith.run(path, feeds).outputs, shapes(path)
    for output, array in outputs.items():
        assert len(declared[output]) == array.ndim, output
        pairs = zip(declared[output], array.shape, strict=True)
        assert all(dim in (None, size) for dim, size in pairs), (output, declared[output], array.shape)
    onnxsmith.inspect(path)


BOXES = np.array([[[0, 0, 1, 1], [2, 2, 3, 3], [4, 4, 5, 5]]], np.float32)


def test_a_part_that_starts_at_a_size_has_open_sizes(tmp_path: Path) -> None:
    text, _ = CASES["Reshape of a sum"]
    path = saved(HEAD + text, tmp_path)
    with onnxsmith.edit(path) as m:
        m.extract(["x", "s"], "y")
    assert shapes(path) == {"y": [None, None]}


def test_a_part_cannot_start_at_a_constant_and_the_fix_makes_it_an_input(tmp_path: Path) -> None:
    path = saved(HEAD + CASES["TopK"][0], tmp_path)
    with pytest.raises(onnxsmith.OnnxsmithError) as caught, onnxsmith.edit(path) as m:
        m.extract(["x", "k"], "z")
    assert 'do = "add-input", tensor = "k"' in caught.value.problem.fix
    with onnxsmith.edit(path) as m:
        m.add_input("k")
        m.extract(["x", "k"], "z")
    assert shapes(path) == {"z": [None, 4]}


DETECTION = """<ir_version: 10, opset_import: ["": 21]>
g (float[1,3,4] x, float[1,1,3] s) => (int64[found,3] sel, float[found,4] kept, float[4,5] w)
  <int64 most = {2}, float[1] least = {0.1}, float[1] iou = {0.5}, int64[1] two = {2}, int64[1] zero = {0},
   float[4,5] weight = {0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9}, int64[2] shape = {4,5}, int64[1] minus = {-1}> {
  sel = NonMaxSuppression(x, s, most, iou, least)
  picked = Gather<axis = 1>(sel, two)
  flat = Reshape(picked, minus)
  boxes = Squeeze(x, zero)
  kept = Gather(boxes, flat)
  r = Neg(weight)
  w = Reshape(r, shape)
}"""


def test_names_of_sizes_that_are_still_equal_stay(tmp_path: Path) -> None:
    path = saved(DETECTION, tmp_path)
    with onnxsmith.edit(path) as m:
        m.add_input("least")
        m.add_input("weight")
    dims = {one.name: [str(dim) for dim in one.shape or ()] for one in onnxsmith.load(path).graph.outputs}
    assert dims == {"sel": ["found", "3"], "kept": ["found", "4"], "w": ["4", "5"]}
    assert m.result is not None
    part = m.result.report.parts[0]
    assert isinstance(part, Edits)
    assert part.notes == ()


def test_the_sizes_stay_open_when_a_later_step_converts_the_model(tmp_path: Path) -> None:
    path = saved(HEAD + CASES["TopK"][0], tmp_path)
    with onnxsmith.edit(path) as m:
        m.add_input("k")
        m.opset(18)
    assert shapes(path) == {"y": [4, None], "z": [None, 4]}


def test_a_size_that_becomes_computed_is_open(tmp_path: Path) -> None:
    text = "g (float[4,6] x, int64[3] n) => (float[2,4,6] y) <int64[3] k = {2,4,6}> { [grow] y = Expand(x, k) }"
    path = saved(HEAD + text, tmp_path)
    with onnxsmith.edit(path) as m:
        m.wire("grow", "shape", "n")
    assert shapes(path) == {"y": [None, None, None]}
