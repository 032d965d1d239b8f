"""Integers that count, held to what runs give."""

from __future__ import annotations

import itertools

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes.affine import Affine, affine
from onnxsmith.graph.shapes.inference import Inference
from onnxsmith.runtimes.base import get

HEAD = '<ir_version: 10, opset_import: ["": 20]>\n'
ZERO = "int64 z = {0}, int64 i = {1}, int64[1] o = {0}, int64[1] e = {1}, int64[1] m = {-1}, int64[1] two = {2}"
GRAPHS = {
    "positions": f"""(float[n,t] x) => (int64 y) <{ZERO}> {{ s = Shape<start = 1>(x)\n l = Squeeze(s)
        r = Range(z, l, i)\n u = Unsqueeze(r, o)\n f = Shape(x)\n v = Expand(u, f)\n w = Transpose(v)
        a = Add(u, l)\n b = Mul(a, l)\n c = Sub(b, i)\n y = Unsqueeze(c, e)\n g = Slice(c, two, s, e)
        h = Cast<to = 6>(g)\n k = Identity(h) }}""",
    "index into a matrix": f"""(float[n,t] x) => (int64 y) <{ZERO}> {{
        s = Shape(x)\n p = Gather(s, z)\n q = Gather(s, i)
        r = Range(z, p, i)\n c = Range(z, q, i)\n u = Unsqueeze(r, e)\n w = Mul(u, q)\n y = Add(c, w)
        b = Sub(c, u) }}""",
    "a running sum": f"""(float[n,t] x) => (int64 y) <{ZERO}> {{ s = Shape(x)
        f = ConstantOfShape<value = int64[1] {{3}}>(s)
        y = CumSum(f, i)\n g = Gather(f, z)\n w = CumSum<reverse = 1>(f, i)\n v = CumSum<exclusive = 1>(f, i) }}""",
    "one that may be wider": f"""(float[n] x, float[t] w) => (int64 y) <{ZERO}> {{ a = Shape(x)\n b = Squeeze(a)
        r = Range(z, b, i)\n c = Shape(w)\n d = ConstantOfShape<value = int64[1] {{5}}>(c)\n y = Add(r, d)
        f = Expand(r, c)\n g = Mul(d, r) }}""",
    "constants": f"""(float[n] x) => (int64 y)
        <{ZERO}, int64[2,3] k = {{5, 7, 9, 4, 6, 8}}, int64[3] l = {{1, 2, 4}}> {{
        y = Add(k, i)\n a = Add(l, i)\n b = Reshape(k, m)\n c = Neg(k) }}""",
}  # fmt: skip


def model(name: str) -> ir.Model:
    made = from_text(HEAD + "g " + GRAPHS[name])
    values = [value for node in made.graph for value in node.outputs]
    made.graph.outputs.extend(value for value in values if value not in made.graph.outputs)
    for value in values:
        value.type, value.shape = None, None
    return made


def number(element: int | str, sizes: dict[str, int]) -> int:
    return element if isinstance(element, int) else int(eval(element, {}, dict(sizes)))


@pytest.mark.parametrize("name", GRAPHS)
def test_what_counts_is_what_runs_give(name: str) -> None:
    made = model(name)
    Inference(made)
    found = {value.name: affine(value) for value in made.graph.outputs}
    assert any(one is not None and any(step != 0 for step in one.steps) for one in found.values())
    names = list(dict.fromkeys(str(dim.value) for value in made.graph.inputs for dim in value.shape or ()))
    with get("reference").prepare(model(name)) as session:
        for picked in itertools.product((1, 3, 4), repeat=len(names)):
            sizes = dict(zip(names, picked, strict=True))
            shapes = {str(v.name): [sizes[str(dim.value)] for dim in v.shape or ()] for v in made.graph.inputs}
            inputs = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
            try:
                outputs = session.run(inputs)
            except Exception:  # noqa: BLE001 — these sizes do not go together
                continue
            for value, array in outputs.items():
                one = found[value]
                if one is None:
                    continue
                assert isinstance(array, np.ndarray)
                expected = np.full(array.shape, number(one.start, sizes))
                for axis, step in enumerate(one.steps):
                    shape = [-1 if at == axis else 1 for at in range(array.ndim)]
                    expected = expected + number(step, sizes) * np.arange(array.shape[axis]).reshape(shape)
                assert np.array_equal(array, expected), (value, one, sizes)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("positions", "r", Affine(0, (1,))),
        ("positions", "w", Affine(0, (1, 0))),
        ("positions", "y", Affine("t*t - 1", (0, 0, "t"))),
        ("positions", "k", Affine("2*t + t*t - 1", (0, "t"))),
        ("index into a matrix", "y", Affine(0, ("t", 1))),
        ("index into a matrix", "b", Affine(0, (-1, 1))),
        ("a running sum", "y", Affine(3, (0, 3))),
        ("a running sum", "w", None),
        ("a running sum", "v", None),
        ("a running sum", "g", Affine(3, (0,))),
        ("one that may be wider", "y", None),
        ("one that may be wider", "f", None),
        ("one that may be wider", "g", None),
        ("constants", "y", Affine(6, (-1, 2))),
        ("constants", "a", None),
        ("constants", "b", None),
    ],
)
def test_found(name: str, value: str, expected: Affine | None) -> None:
    made = model(name)
    Inference(made)
    assert affine(next(one for one in made.graph.outputs if one.name == value)) == expected


def test_a_long_way_up_is_given_up() -> None:
    steps = "".join(f" a{n + 1} = Add(a{n}, i)\n" for n in range(60))
    made = from_text(f"{HEAD}g (float[n] x) => (int64[n] y) <int64 z = {{0}}, int64 i = {{1}}> {{ s = Shape(x)\n"
                     f" l = Squeeze(s)\n a0 = Range(z, l, i)\n{steps} y = Identity(a60) }}")  # fmt: skip
    Inference(made)
    assert affine(made.graph.outputs[0]) is None
