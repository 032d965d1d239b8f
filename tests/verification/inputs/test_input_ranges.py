"""What an integer input may be follows from what the graph does with it."""

from __future__ import annotations

import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.verification.inputs.input_ranges import Allowed, allowed

TABLE = "float[10,4] table = {" + ",".join(["0"] * 40) + "}"


def of(nodes: str, *, x: str = "int64[n] x", weights: str = "", outputs: str = "") -> Allowed:
    """What `x` may be; the outputs are what the last node makes."""
    model = from_text(
        '<ir_version: 10, opset_import: ["": 20]>\n'
        f"g ({x}) => ({outputs or 'float y'}) <{TABLE}{', ' + weights if weights else ''}> {{ {nodes} }}"
    )
    return allowed(model.graph.inputs[0])


def bounds(found: Allowed) -> tuple[int, int]:
    return found.low, found.high


@pytest.mark.parametrize(
    ("nodes", "weights", "wanted"),
    [
        ("y = Gather(table, x)", "", (0, 9)),
        ("y = Gather<axis = 1>(table, x)", "", (0, 3)),
        ("y = Gather<axis = -1>(table, x)", "", (0, 3)),
        ("c = Cast<to = 6>(x)\n y = Gather(table, c)", "", (0, 9)),
        ("u = Unsqueeze(x, k)\n y = Gather(table, u)", "int64[1] k = {0}", (0, 9)),
        ("a = Add(x, k)\n y = Gather(table, a)", "int64 k = {3}", (0, 6)),
        ("a = Add(k, x)\n y = Gather(table, a)", "int64 k = {3}", (0, 6)),
        ("a = Sub(x, k)\n y = Gather(table, a)", "int64 k = {3}", (3, 12)),
        ("a = Add(x, k)\n y = Gather(table, a)", "int64 k = {-100}", (100, 109)),
        ("a = Add(x, k)\n y = Gather(table, a)", "int64 k = {20}", (-20, -11)),
        ("a = Add(x, k)\n b = Sub(a, k)\n y = Gather(table, b)", "int64 k = {3}", (0, 9)),
        ("c = Cast<to = 6>(x)\n u = Unsqueeze(c, k)\n a = Add(u, j)\n y = Gather(table, a)",
         "int64[1] k = {0}, int32 j = {1}", (0, 8)),
        ("s, t = Split<num_outputs = 2>(x)\n y = Gather(table, t)", "", (0, 9)),
        ("a = Concat<axis = 0>(k, x)\n y = Gather(table, a)", "int64[1] k = {0}", (0, 9)),
        ("a = Gather(x, k)\n y = Gather(table, a)", "int64[1] k = {0}", (0, 9)),
        ("z = Gather(table, x)\n y = Gather<axis = 1>(table, x)", "", (0, 3)),
        ("y = GatherElements(table, x)", "", (0, 9)),
        ("y = GatherElements<axis = 1>(table, x)", "", (0, 3)),
        ("y = ScatterElements<axis = 1>(table, x, v)", "float[1,1] v = {0}", (0, 3)),
        ("y = OneHot(x, d, v)", "int64 d = {7}, float[2] v = {0, 1}", (0, 6)),
        ("m = Cast<to = 9>(x)\n y = Not(m)", "", (0, 1)),
        ("c = Cast<to = 1>(x)\n m = Sub(one, c)\n y = Neg(m)", "float one = {1}", (0, 1)),
        ("y = Reshape(table, x)", "", (1, 4)),
        ("y = Expand(table, x)", "", (1, 4)),
        ("y = ConstantOfShape(x)", "", (1, 4)),
    ],
)  # fmt: skip
def test_limits_are_found_through_the_graph(nodes: str, weights: str, wanted: tuple[int, int]) -> None:
    assert bounds(of(nodes, weights=weights)) == wanted


@pytest.mark.parametrize(("shape", "wanted"), [("[n,1]", (0, 9)), ("[n,2]", (0, 3)), ("[n,k]", (0, 3))])
def test_index_tuples_stay_inside_every_axis_that_they_reach(shape: str, wanted: tuple[int, int]) -> None:
    assert bounds(of("y = GatherND(table, x)", x=f"int64{shape} x")) == wanted


def test_batch_dimensions_are_not_indexed() -> None:
    assert bounds(of("y = GatherND<batch_dims = 1>(table, x)", x="int64[10,1] x")) == (0, 3)


def test_an_index_inside_a_branch_is_found() -> None:
    found = of(
        "y = If(c) <then_branch = a () => (float[n,4] p) { p = Gather(table, x) },"
        " else_branch = b () => (float[n,4] q) { i = Neg(x)\n q = Gather(table, k) }>",
        x="int64[n] x, bool c",
        weights="int64[1] k = {0}",
    )
    assert bounds(found) == (0, 9)


@pytest.mark.parametrize(
    ("x", "nodes", "wanted"),
    [
        ("uint8[n] x", "c = Cast<to = 7>(x)\n a = Add(c, k)\n y = Gather(table, a)", (0, 0)),
        ("int8[n] x", "c = Cast<to = 7>(x)\n y = Gather(big, c)", (0, 127)),
        ("uint8[n] x", "c = Cast<to = 7>(x)\n y = Gather(big, c)", (0, 255)),
    ],
)
def test_limits_stay_inside_the_dtype(x: str, nodes: str, wanted: tuple[int, int]) -> None:
    big = "float[300] big = {" + ",".join(["0"] * 300) + "}"
    assert bounds(of(nodes, x=x, weights=f"int64 k = {{9}}, {big}")) == wanted


@pytest.mark.parametrize(
    ("nodes", "choices"),
    [
        ("y = Equal(x, k)", (8, 9)),
        ("y = Equal(k, x)", (8, 9)),
        ("y = Greater(x, k)", (8, 9)),
        ("c = Cast<to = 1>(x)\n y = LessOrEqual(c, f)", (2, 3)),
        ("y = Equal(x, k)\n z = Equal(x, j)", (8, 16, 17)),
        ("a = Add(x, j)\n y = Equal(a, k)", (-8, -7)),
        ("u = Unsqueeze(x, k)\n y = Equal(u, j)", (16, 17)),
        ("y = Equal(x, many)", (1, 2, 3)),
    ],
)
def test_compared_constants_are_choices_with_one_other(nodes: str, choices: tuple[int, ...]) -> None:
    found = of(
        nodes, weights="int64 k = {8}, int64 j = {16}, float f = {2}, int64[2] many = {1, 2}", outputs="bool[n] y"
    )
    assert found.choices == choices
    assert bounds(found) == (min(choices), max(choices))


def test_a_choice_outside_the_limits_is_none() -> None:
    found = of("y = Gather(table, x)\n z = Equal(x, k)", weights="int64 k = {50}")
    assert (found.choices, bounds(found)) == ((), (0, 9))


def test_a_choice_outside_the_dtype_is_none() -> None:
    found = of("c = Cast<to = 7>(x)\n y = Equal(c, k)", x="uint8[n] x", weights="int64[2] k = {0, 300}")
    assert found.choices == (0, 1)


def test_a_fraction_is_no_choice() -> None:
    assert of("c = Cast<to = 1>(x)\n y = Equal(c, k)", weights="float k = {1.5}").choices == ()


@pytest.mark.parametrize(
    "nodes",
    ["y = Neg(x)", "m = Mul(x, j)\n y = Gather(table, m)", "a = Sub(k, x)\n y = Gather(table, a)", "y = Add(x, x)"],
)
def test_what_nothing_limits_is_small(nodes: str) -> None:
    assert of(nodes, weights="int64 k = {3}, int64 j = {-1}") == Allowed(0, 4)


def test_a_symbolic_size_limits_by_what_it_is_in_a_feed() -> None:
    found = of("y = Gather(z, x)", x="int64[n] x, float[m,2] z")
    assert found.within({"m": 7}) == (0, 6)
    assert found.within({}) == (0, 4)


def test_a_computed_size_limits_too() -> None:
    model = from_text(
        '<ir_version: 10, opset_import: ["": 20]>\n'
        "g (int64[n] x, float[m,2] z) => (float[k,2] y) { t = Concat<axis = 0>(z, z)\n y = Gather(t, x) }"
    )
    found = allowed(inferred(model)[0].graph.inputs[0])
    assert found.within({"m": 7}) == (0, 13)


@pytest.mark.parametrize(
    ("nodes", "x", "wanted"),
    [
        ("m = Mul(x, k)\n y = Gather(table, m)", "int64[n] x", (0, 3)),
        ("m = Mul(x, k)\n a = Add(m, k)\n y = Gather(table, a)", "int64[n] x", (0, 2)),
        ("y, h = LSTM<hidden_size = 1>(z, w, w, , x)", "int32[b] x, float[t,b,1] z, float[1,4,1] w", (1, 9)),
        ("y, h = TopK(z, x)", "int64[1] x, float[b,t] z", (1, 9)),
        ("y = ReverseSequence(z, x)", "int64[b] x, float[t,b] z", (1, 9)),
        ("y = Div(z, x)", "int64[n] x, int64[n] z", (1, 4)),
        ("y = SoftmaxCrossEntropyLoss(z, x)", "int64[n] x, float[n,t] z", (0, 8)),
    ],
)  # fmt: skip
def test_lengths_counts_and_labels_are_limited(nodes: str, x: str, wanted: tuple[int, int]) -> None:
    assert of(nodes, x=x, weights="int64 k = {3}").within({"t": 9, "n": 2, "b": 2}) == wanted


@pytest.mark.parametrize(
    ("nodes", "why"), [("[embed] y = Gather(table, x)", "Gather embed"), ("y = Equal(x, k)", "Equal")]
)
def test_the_limiting_node_is_named(nodes: str, why: str) -> None:
    assert of(nodes, weights="int64 k = {3}").why == why


def test_values_are_followed_around_a_diamond_once() -> None:
    doubling = "\n".join(f"a{n + 1} = Concat<axis = 0>(a{n}, a{n})" for n in range(40))
    assert bounds(of(f"a0 = Identity(x)\n{doubling}\n y = Gather(table, a40)")) == (0, 9)


def test_marks_stand_among_other_indices() -> None:
    found = of("y = Gather(table, x)\n z = Equal(x, k)", weights="int64 k = {5}")
    assert (found.choices, found.marks[0], bounds(found)) == ((), 5, (0, 9))


def test_a_length_in_samples_reaches_to_the_end_of_what_it_is_of() -> None:
    nodes = (
        "a = Add(x, five)\n d = Div(a, ten)\n u = Unsqueeze(d, one)\n s = Shape<start = 1>(w)\n l = Squeeze(s)\n"
        "r = Range(zero, l, step)\n y = Less(r, u)"
    )
    weights = "int64 five = {5}, int64 ten = {10}, int64[1] one = {1}, int64 zero = {0}, int64 step = {1}"
    head = '<ir_version: 10, opset_import: ["": 20]> g (int64[n] x, float[n,t] w) => (bool[n,t] y) '
    model, _ = inferred(from_text(f"{head} <{weights}> {{ {nodes} }}"))
    assert allowed(model.graph.inputs[0]).within({"t": 100}) == (5, 100)
