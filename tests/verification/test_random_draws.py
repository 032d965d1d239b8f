"""Random numbers are replaced by fixed ones, wherever they are drawn, and what is wrong around them is found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.verification import random_draws
from onnxsmith.verification.run import run
from onnxsmith.verification.sessions import verify_models
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
    assert "models that draw their random numbers independently were not compared" in part.untried


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


def test_every_opset_draws_the_same_numbers() -> None:
    text = "g (float[20000] x) => (float[20000] y) {{ r = {} y = Add(x, r) }}"
    x = np.zeros(20000, np.float32)
    for kind in ("RandomUniformLike<low = 2.0, high = 6.0>(x)", "RandomUniform<shape = [20000]>()"):
        static, computed = (drawn(head(opset) + text.format(kind), x=x) for opset in (8, 20))
        np.testing.assert_array_equal(static, computed)
        assert len(np.unique(computed)) == 8191  # each number of the period once
    assert 0 < computed.min() < 1e-4
    assert 1 > computed.max() > 1 - 1e-4


def test_a_sequence_of_65536_numbers_is_written_out_for_an_old_opset_and_no_longer_one(refused: Refused) -> None:
    text = head(8) + "g (float[{0}] x) => (float[{0}] y) {{ y = RandomNormalLike(x) }}"
    assert verify_models(from_text(text.format(2**16)), from_text(text.format(2**16))).equal
    with refused("verify/nondeterministic"):
        verify_models(from_text(text.format(2**16 + 1)), from_text(text.format(2**16 + 1)))


@pytest.mark.parametrize("opset", [10, 15, 20])
def test_bernoulli_is_true_as_often_as_its_chances_say(opset: int) -> None:
    text = head(opset) + "g (float[2,8191] x) => (float[2,8191] y) { y = Bernoulli(x) }"
    if opset < 15:
        text = text.replace("y = Bernoulli(x)", "b = RandomUniformLike(x) c = Less(b, x) y = Cast<to = 1>(c)")
    found = drawn(text, x=np.repeat(np.float32([[0.25], [0.75]]), 8191, axis=1))
    assert found.dtype == np.float32
    assert np.allclose(found.mean(axis=1), [0.25, 0.75], atol=1e-3)


def test_multinomial_draws_classes_from_the_likeliest_on() -> None:
    text = head() + "g (float[2,4] x) => ({1}[2,{2}] y) {{ y = Multinomial<{0}>(x) }}"
    x = np.float32([[0, 9, 0, 0], [0, 0, 0, 9]])
    for attributes, name, count, dtype in (
        ("dtype = 6", "int32", 1, np.int32),
        ("sample_size = 64, dtype = 7", "int64", 64, np.int64),
    ):
        found = drawn(text.format(attributes, name, count), x=x)
        assert (found.dtype, found.shape) == (dtype, (2, count))
        assert list(found[:, 0]) == [1, 3]
        assert set(np.unique(found)) <= {0, 1, 2, 3}
        assert np.all((found[1] - found[0]) % 4 == 2)
    assert len(np.unique(found)) == 4


@pytest.mark.parametrize(
    ("ratio", "training", "kept"), [("0.25", True, 0.75), ("0.75", True, 0.25), ("", True, 0.5), ("0.25", False, 1.0)]
)
def test_dropout_drops_a_share_and_enlarges_the_rest(ratio: str, training: bool, kept: float) -> None:
    held = f"<float r = {{{ratio}}}>" if ratio else ""
    text = (
        head() + f"g (float[8191] x, bool t) => (float[8191] y, bool[8191] m) {held} "
        f"{{ y, m = Dropout(x, {'r' if ratio else ''}, t) }}"
    )
    fixed = random_draws.fixed(from_text(text), from_text(text))
    assert fixed is not None
    found = run(fixed.pair[0], {"x": np.full(8191, 3.0, np.float32), "t": np.array(training)}).outputs
    np.testing.assert_allclose(found["y"], np.where(found["m"], 3.0 / kept, 0.0), rtol=1e-6)
    assert found["m"].mean() == pytest.approx(kept, abs=1e-3)


def test_draws_of_equal_names_are_equal_and_of_other_names_are_not() -> None:
    def numbers(nodes: str) -> list[Any]:
        text = head() + f"g (float[9] x) => (float[9] y, float[9] z) {{ {nodes} }}"
        fixed = random_draws.fixed(from_text(text), from_text(text))
        assert fixed is not None
        return list(run(fixed.pair[0], {"x": np.zeros(9, np.float32)}).outputs.values())

    y, z = numbers("[a] y = RandomNormalLike(x) [b] z = RandomNormalLike(x)")
    assert not np.array_equal(y, z)
    other, same = numbers("[b] y = RandomNormalLike(x) [a] z = RandomNormalLike(x)")
    assert np.array_equal(z, other)
    assert np.array_equal(y, same)
    for nodes in (
        "y = RandomNormalLike(x) z = RandomNormalLike(x)",
        "[a] y = RandomNormalLike(x) [a] z = RandomNormalLike(x)",
    ):
        assert not np.array_equal(*numbers(nodes))


def test_a_model_that_does_not_load_with_its_own_draws_is_unsure() -> None:
    """Both models are run with fixed numbers. onnxruntime has a kernel of opset 1 only."""
    body = "g (float[n,4] x) => (float[n,4] y) { a = RandomNormalLike(x) y = Add(x, a) }"
    older, newer = (f'<ir_version: 8, opset_import: ["": {opset}]> {body}' for opset in (15, 22))
    found = verify_models(from_text(older), from_text(newer))
    assert not found.equal
    assert any("does not load it with its random ones" in one for one in found.unsure)
    same = verify_models(from_text(newer), from_text(newer))
    assert same.equal
    assert any("does not load it with its random ones" in one for one in same.untried)
