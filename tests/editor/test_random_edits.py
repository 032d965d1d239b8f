"""Random edits of small models: each is refused and leaves the file as it was, or gives a valid model that runs."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxsmith
from onnxsmith.graph.files.specification_check import check
from onnxsmith.graph.structure import tensor_paths, walk
from tests.editor.models import LOOP, NET, WIDE, saved

TEXTS = {"net": NET, "loop": LOOP, "wide": WIDE}
BRANCH = """<ir_version: 10, opset_import: ["": 18]>
g (float[n,4] x, bool flag) => (float[n,4] y, int64[2] size) <float[4] w = {1,-1,2,-2}> {
  [pos] p = Mul(x, w)
  [either] y = If(flag) <
    then_branch = t () => (float[n,4] r) { [inner] r = Abs(p) },
    else_branch = e () => (float[n,4] q) { [low] l = Neg(x)
      q = Max(l, p) }
  >
  [size] size = Shape(y)
}"""
TEXTS["branch"] = BRANCH
OPERATORS = ("Relu", "Neg", "Identity", "Cast", "Clip", "Add", "Softmax", "Transpose", "Exp", "Shape", "Nope")


def steps(model: Any, chance: random.Random) -> list[tuple[str, dict[str, Any]]]:
    """One to three random steps; many are wrong."""
    nodes = [walk.node_label(node) for node in walk.all_nodes(model)] + ["nothing"]
    tensors = [place.name for place in tensor_paths.places(model)] + ["nothing"]
    outputs = [value.name for value in model.graph.outputs]
    one = chance.choice

    def value() -> Any:
        return one([0.0, 2.0, [1, 2, 3, 4], np.ones(4, np.float32), np.ones(2), "", one(tensors)])

    def node() -> Any:
        return one([one(nodes), one(nodes), one(nodes), {"op": one(["Add", "Mul", "Neg", "Split"])}])

    def start() -> Any:
        return one([None, one(tensors), [one(tensors), one(tensors)]])

    makers: dict[str, Any] = {
        "insert": lambda: {
            "op": one(OPERATORS),
            **one([{"after": one(tensors)}, {"after": one(tensors)}, {"before": one(nodes)}]),
            "operands": [value() for _ in range(chance.randrange(3))],
            "attributes": one([{}, {}, {"to": one(["float16", "int64", "bfloat16"])}, {"axis": one([0, 1, 9])}]),
        },
        "remove": lambda: {"node": node(), "keep": one([None, 0, 1, 5]), "same": one([False, False, True])},
        "wire": lambda: {"node": node(), "input": one([0, 1, 2, "B"]), "tensor": value()},
        "set": lambda: {"node": node(), "attributes": {one(["axis", "to", "alpha"]): one([0, 1, -1, "", 7])}},
        "constant": lambda: {"tensor": one(tensors), "value": value()},
        "rename": lambda: {
            **one([{"tensor": one(tensors)}, {"node": one(nodes)}, {"dim": one(["n", "m"])}]),
            "to": one(["new", "new", "other", *tensors]),
        },
        "expose": lambda: {"tensor": one(tensors), "name": one([None, "out", *tensors])},
        "drop_output": lambda: {"output": one(tensors)},
        "add_input": lambda: {"tensor": one(tensors)},
        "drop_input": lambda: {"input": one(tensors), "value": one([None, 1.0, True, value()])},
        "extract": lambda: {
            "from": one([None, one(tensors), [one(tensors), one(tensors)]]),
            "to": one([None, one(tensors)]),
        },
        "opset": lambda: {"to": chance.randrange(5, 26)},
        "layout": lambda: {
            one(["input", "output"]): one(tensors),
            "to": one(["NHWC", "NWC", "1,0", "1,0", [1, 0], "0,2,1", "x"]),
        },
        "inline": dict,
        "outline": lambda: {
            "to": one(["own::F", "own::G", "F"]),
            "node": [one(nodes) for _ in range(chance.randrange(1, 4))],
        },
        "metadata": lambda: {
            "set": {one(["author", "names"]): one(["x", 0.5, ["a", "b"]])},
            one(["node", "tensor"]): one([*nodes, *tensors]),
        },
        "strip": lambda: {"what": one(["docs", "provenance", "metadata", "shapes", "x"])},
        "postprocess": lambda: {"output": one(outputs), "method": one(["argmax", "softmax", "top-k"])},
        "order": lambda: {"outputs": chance.sample(outputs, len(outputs))},
    }
    names = [one(list(makers)) for _ in range(chance.randrange(1, 4))]
    return [(name, makers[name]()) for name in names]


def tried(text: str, seed: int, folder: Path) -> str:
    """Applies one random edit, and returns what came of it."""
    path = saved(text, folder)
    before = path.read_bytes()
    asked = steps(onnxsmith.load(path), random.Random(seed))
    result, refusal = edited(path, asked)
    assert [file.name for file in folder.iterdir()] == [path.name], asked
    if refusal is not None:
        assert path.read_bytes() == before, asked
        assert refusal.where, (asked, refusal)
        return refusal.id
    assert check(onnxsmith.load(path), file=path) == (), asked
    if not any(name == "add_input" for name, _ in asked):  # of what was a constant, not every value makes sense
        onnxsmith.run(path, random=True)
    assert result is not None
    return "done"


def edited(path: Path, asked: list[tuple[str, dict[str, Any]]]) -> tuple[Any, onnxsmith.Problem | None]:
    """The result of an edit, or its problem."""
    try:
        with onnxsmith.edit(path) as m:
            for name, fields in asked:
                getattr(m, name)(**fields)
    except onnxsmith.OnnxsmithError as error:
        return None, error.problem
    return m.result, None


@pytest.mark.parametrize("part", range(10))
def test_random_edits(part: int, tmp_path: Path) -> None:
    some_are_done(part, tmp_path, 20)


def some_are_done(part: int, tmp_path: Path, count: int) -> None:
    """Applies `count` random edits, each to a model of its own."""
    came = Counter[str]()
    for seed in range(count):
        folder = tmp_path / str(seed)
        folder.mkdir()
        came[tried(list(TEXTS.values())[seed % len(TEXTS)], 1000 * part + seed, folder)] += 1
    assert came["done"], came


@pytest.mark.whole
@pytest.mark.parametrize("part", range(48))
def test_many_random_edits(part: int, tmp_path: Path) -> None:
    """Most random edits are refused: of 20 none may be left, of 100 some are."""
    some_are_done(100 + part, tmp_path, 100)
