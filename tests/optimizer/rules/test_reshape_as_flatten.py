"""shape/reshape-as-flatten: axes, empty dimensions, and other products."""

from __future__ import annotations

import numpy as np
import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.runtimes.base import Options, get
from tests.refusals import refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten, head

RULE = "shape/reshape-as-flatten"


def reshape(first: str, rest: str, shape: str = "n,2,h,w") -> str:
    """A Reshape to the products of two groups of dimensions, given by their places."""
    places = "".join(f"g{at} = Gather(s, p{at})\n" for at in range(4))
    constants = ", ".join(f"int64[1] p{at} = {{{at}}}" for at in range(4))
    products = ""
    for name, group in (("e", first), ("f", rest)):
        products += f"{name}0 = Identity(g{group[0]})\n"
        for count, at in enumerate(group[1:], 1):
            products += f"{name}{count} = Mul({name}{count - 1}, g{at})\n"
    last = f"e{len(first) - 1}, f{len(rest) - 1}"
    return f"""g (float[{shape}] x) => (float[p,q] y) <{constants}> {{
        z = Abs(x) s = Shape(z) {places} {products} t = Concat<axis = 0>({last})
        r = Reshape<allowzero = 1>(z, t) y = Neg(r) }}"""


@pytest.mark.parametrize(("first", "rest", "axis"), [("0", "123", 1), ("01", "23", 2), ("012", "3", 3)])
@pytest.mark.parametrize("runtime", ["reference", "onnxruntime"])
def test_the_axis_between_the_products(first: str, rest: str, axis: int, runtime: str) -> None:
    result = assert_rewritten(RULE, "Abs Flatten Neg", reshape(first, rest), runtime=runtime)
    attribute = result.graph[1].attributes.get("axis")
    assert (1 if attribute is None else attribute.value) == axis


@refuses(RULE, 1)
def test_other_products() -> None:
    assert_refused(RULE, "not the products of the data's first dimensions", reshape("02", "13"))


def test_a_target_that_can_be_constant() -> None:
    assert_left_alone(RULE, reshape("0", "123", "n,2,3,4"))


@pytest.mark.parametrize("runtime", ["reference", "onnxruntime"])
@pytest.mark.parametrize("shape", [(0, 2, 3, 4), (5, 2, 0, 4), (0, 2, 0, 0), (2, 2, 3, 4)])
@pytest.mark.parametrize("axis", [0, 1, 2, 4, -1])
def test_flatten_takes_empty_tensors(runtime: str, shape: tuple[int, ...], axis: int) -> None:
    model = from_text(head(17) + f"g (float[n,2,h,w] x) => (float[p,q] y) {{ y = Flatten<axis = {axis}>(x) }}")
    with get(runtime).prepare(model, Options()) as session:
        found = session.run({"x": np.zeros(shape, np.float32)})["y"]
    at = axis + 4 if axis < 0 else axis
    assert np.shape(found) == (int(np.prod(shape[:at])), int(np.prod(shape[at:])))
