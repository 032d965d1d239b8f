"""Random numbers are replaced by fixed ones, wherever they are drawn, and what is wrong around them is found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onnxsmith.comparison import random_draws
from onnxsmith.comparison.run import run
from onnxsmith.comparison.sessions import verify_models
from onnxsmith.model.files.text import from_text
from tests.conftest import Refused


def head(opset: int = 20) -> str:
    return f'<ir_version: 10, opset_import: ["": {opset}, "own": 1]>\n'


LOOP = """g (float[2,3] x) => (float[2,3] y) <int64 m = {{3}}, bool c = {{1}}> {{
    y = Loop(m, c, x) <body = b (int64 i, bool more, float[2,3] s) => (bool again, float[2,3] n) {{
        again = Identity(more)
        r = RandomNormalLike<{}>(s)
        n = Add(s, r)
    }}> }}"""
FUNCTION = """g (float[2,3] x) => (float[2,3] y) {{ y = own.noise<s = 2.0>(x) }}
<domain: "own", opset_import: ["": 20]>
noise <s>(a) => (b) {{ r = RandomNormalLike<scale: float = @s{}>(a)\n b = Add(a, r) }}"""
TAKEN = {
    "of a Constant": """g (float[2] x) => (float[2] y) {
        c = Constant<value = float[2] {1, 2}>() r = RandomUniformLike(c) y = Add(x, r) }""",
    "of a weight": "g (float[2] x) => (float[2] y) <float[2] c = {1, 2}> { r = RandomUniformLike(c) y = Add(x, r) }",
    "with a seed": "g (float[2] x) => (float[2] y) { r = RandomNormal<shape = [2], seed = 1.0>() y = Add(x, r) }",
    "in a branch": """g (float[2] x, bool c) => (float[2] y) { y = If(c) <
        then_branch = t () => (float[2] a) { r = RandomNormalLike(x) a = Add(r, x) },
        else_branch = e () => (float[2] b) { b = Neg(x) }> }""",
    "in a Loop": LOOP.format("mean = 1.0"),
    "in a Scan": """g (float[4,3] x) => (float[4,3] y) { y = Scan<num_scan_inputs = 1,
        body = b (float[3] s) => (float[3] n) { r = RandomUniform<shape = [3]>() n = Mul(s, r) }>(x) }""",
    "in a function": FUNCTION.format(""),
    "Bernoulli": "g (float[n,3] x) => (float[n,3] y) { s = Sigmoid(x) r = Bernoulli(s) y = Mul(x, r) }",
    "Multinomial": "g (float[2,30] x) => (int32[2,5] y) { y = Multinomial<sample_size = 5>(x) }",
    "Dropout": "g (float[n,3] x, bool t) => (float[n,3] y, bool[n,3] m) <float r = {0.3}> { y, m = Dropout(x, r, t) }",
    "Dropout with a seed": """g (float[n,3] x, bool t) => (float[n,3] y) <float r = {0.3}>
        { y = Dropout<seed = 7>(x, r, t) }""",
    "float16": "g (float16[n,3] x) => (float16[n,3] y) { r = RandomNormalLike(x) y = Add(x, r) }",
    "nothing else": "g (float[n,3] x) => (float[n,3] y) { y = RandomNormalLike(x) }",
    "a scalar": "g (float x) => (float y) { r = RandomUniformLike(x) y = Add(x, r) }",
}


@pytest.mark.parametrize("kind", TAKEN)
def test_a_model_that_draws_equals_itself(kind: str) -> None:
    found = verify_models(from_text(head() + TAKEN[kind]), from_text(head() + TAKEN[kind]))
    assert found.equal, (found.unsure, found.outputs)
    assert "random numbers were replaced" in found.notes[0]
    assert not found.untried or "random" not in found.untried[0]


@pytest.mark.parametrize(("opset", "size"), [(7, "2"), (9, "n"), (11, "n"), (13, "n")])
def test_an_older_opset(opset: int, size: str) -> None:
    text = f"{head(opset)}g (float[{size},3] x) => (float[{size},3] y) {{ r = RandomNormalLike(x) y = Add(x, r) }}"
    assert verify_models(from_text(text), from_text(text)).equal


def test_an_opset_that_is_too_old_is_refused(refused: Refused) -> None:
    text = head(7) + "g (float[n,3] x) => (float[n,3] y) { r = RandomNormalLike(x) y = Add(x, r) }"
    with refused("verify/nondeterministic"):
        verify_models(from_text(text), from_text(text))


DRAWN = "g (float[2,60] x) => (float[2,60] y) {{ {} }}"
WRONG = {
    "its mean": (
        DRAWN.format("r = RandomNormalLike(x) y = Add(x, r)"),
        DRAWN.format("r = RandomNormalLike<mean = 0.01>(x) y = Add(x, r)"),
    ),
    "its seed": (
        DRAWN.format("r = RandomNormalLike<seed = 1.0>(x) y = Add(x, r)"),
        DRAWN.format("r = RandomNormalLike<seed = 2.0>(x) y = Add(x, r)"),
    ),
    "one draw for two": (
        DRAWN.format("r = RandomNormalLike(x) q = RandomNormalLike(x) y = Sub(r, q)"),
        DRAWN.format("r = RandomNormalLike(x) y = Sub(r, r)"),
    ),
    "what Bernoulli reads": (
        DRAWN.format("s = Sigmoid(x) y = Bernoulli(s)"),
        DRAWN.format("k = Constant<value = float {1.1}>() z = Mul(x, k) s = Sigmoid(z) y = Bernoulli(s)"),
    ),
    "in a Loop": (LOOP.format("scale = 1.0"), LOOP.format("scale = 1.01")),
    "in a function": (FUNCTION.format(""), FUNCTION.format(", mean = 0.1")),
    "folded": (
        DRAWN.format("r = RandomUniform<shape = [1]>() y = Add(x, r)"),
        DRAWN.format("r = Constant<value = float[1] {0.25}>() y = Add(x, r)"),
    ),
    "not drawn": (DRAWN.format("r = RandomUniformLike(x) y = Add(x, r)"), DRAWN.format("y = Identity(x)")),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_model_that_draws_differs(kind: str) -> None:
    reference, candidate = (from_text(head() + text) for text in WRONG[kind])
    assert verify_models(reference, candidate).differs


def test_what_cannot_be_told_apart_is_in_the_headline() -> None:
    text = DRAWN.format("r = RandomNormalLike(x) q = RandomNormalLike(x) y = Sub(r, q)")
    other = DRAWN.format("k = RandomNormalLike(x) y = Sub(k, k)")
    found = random_draws.fixed(from_text(head() + text), from_text(head() + other))
    assert found is not None
    assert "independently" in found.untried
    part = verify_models(from_text(head() + text), from_text(head() + other))
    assert "independently drawn random numbers were not tested" in part.untried


def test_dropout_draws_where_it_may_be_training() -> None:
    text = head() + "g (float[3] x) => (float[3] y) <float r = {{0.3}}, bool t = {{{}}}> {{ y = Dropout(x, r, t) }}"
    assert len(random_draws.nodes(from_text(text.format(1)))) == 1
    assert not random_draws.nodes(from_text(text.format(0)))
    assert not random_draws.nodes(from_text(head() + "g (float[3] x) => (float[3] y) { y = Dropout(x) }"))


def drawn(text: str, **inputs: Any) -> Any:
    """What the model with fixed numbers returns for its output y."""
    fixed = random_draws.fixed(from_text(text), from_text(text))
    assert fixed is not None
    return run(fixed.pair[0], inputs).outputs["y"]


@pytest.mark.parametrize("opset", [13, 14])
def test_an_empty_draw_keeps_its_shape(opset: int) -> None:
    text = f"{head(opset)}g (float[n,3] x) => (float[n,3] y) {{ r = RandomNormalLike(x) y = Add(x, r) }}"
    assert drawn(text, x=np.zeros((0, 3), np.float32)).shape == (0, 3)


def test_the_numbers_have_the_mean_and_spread_that_the_attributes_say() -> None:
    text = head() + "g (float[4000] x) => (float[4000] y) {{ y = {}(x) }}"
    uniform, normal = "RandomUniformLike<low = 2.0, high = 6.0>", "RandomNormalLike<mean = 5.0, scale = 2.0>"
    kinds = (uniform, normal, "RandomUniformLike", "RandomNormalLike")
    numbers = [drawn(text.format(kind), x=np.zeros(4000, np.float32)) for kind in kinds]
    found = [(float(one.mean()), float(one.std())) for one in numbers]
    expected = [(4.0, 4 / 12**0.5), (5.0, 2.0), (0.5, 1 / 12**0.5), (0.0, 1.0)]
    assert np.allclose(found, expected, atol=0.05)


def test_the_dtype_is_that_of_the_attribute_else_of_the_operand() -> None:
    for attributes, dtype in (("", np.float16), ("<dtype = 11>", np.float64)):
        name = np.dtype(dtype).name.replace("float64", "double")
        text = f"{head()}g (float16[4] x) => ({name}[4] y) {{ y = RandomNormalLike{attributes}(x) }}"
        assert drawn(text, x=np.zeros(4, np.float16)).dtype == dtype


@pytest.mark.parametrize(("opset", "casts"), [(14, 0), (15, 1), (20, 1)])
def test_in_a_function_the_dtype_is_cast_like_the_operand_from_opset_15_on(opset: int, casts: int) -> None:
    text = (
        f'<ir_version: 10, opset_import: ["": {opset}, "own": 1]> g (float[4] x) => (float[4] y) {{ y = own.noise(x) }}'
        f'<domain: "own", opset_import: ["": {opset}]> noise (a) => (b) {{ b = RandomNormalLike(a) }}'
    )
    fixed = random_draws.fixed(from_text(text), from_text(text))
    assert fixed is not None
    (function,) = fixed.pair[0].functions.values()
    assert [node.op_type for node in function].count("CastLike") == casts
    assert run(fixed.pair[0], {"x": np.zeros(4, np.float32)}).outputs["y"].dtype == np.float32
