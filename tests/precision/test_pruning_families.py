"""prune: sizes that the graph computes, weights that layers share or stack, groups of channels, recurrent layers."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.precision.pruning.channel_groups import channels
from onnxsmith.precision.pruning.pruning_preparation import working
from tests.precision.pruning import HEAD, found, model, proof, reasons, shapes

CONV = "float[8,3,3,3] w1, float[8] b1"
X = f"float[n,3,6,6] x, {CONV}"
NUMBERS = (
    "zero = Constant<value_ints = [0]>() one = Constant<value_ints = [1]>() two = Constant<value_ints = [2]>() "
    "four = Constant<value_ints = [4]>() rest = Constant<value_ints = [-1]>() first = Constant<value_int = 0>() "
    "second = Constant<value_int = 1>() "
)

CASES: dict[str, tuple[str, dict[str, tuple[int, ...]]]] = {
    "x.view(x.size(0), -1)": (
        (
            f"g ({X}, float[128,5] w2) => (float[n,5] y) {{ {NUMBERS} a = Conv(x, w1, b1) s = Shape(a) "
            "b = Gather(s, zero) t = Concat<axis = 0>(b, rest) f = Reshape(a, t) y = Gemm(f, w2) }"
        ),
        {"w1": (4, 3, 3, 3), "w2": (64, 5)},
    ),
    "x.view(b, c, h * w), all computed": (
        (
            f"g ({X}, float[16,5] w2, float[8,3] w3) => (float[n,3,5] y) {{ {NUMBERS} a = Conv(x, w1, b1) s = Shape(a) "
            "b = Gather(s, zero) c = Gather(s, one) t = Concat<axis = 0>(b, c, rest) f = Reshape(a, t) "
            "g = MatMul(f, w2) h = Transpose<perm = [0,2,1]>(g) i = MatMul(h, w3) y = Transpose<perm = [0,2,1]>(i) }"
        ),
        {"w1": (4, 3, 3, 3), "w3": (4, 3)},
    ),
    "a size that is neither known nor in its place": (
        (
            f"g (float[n,3,h,6] x, {CONV}, float[8,5] w2) => (float[m,4,5] y) {{ {NUMBERS} a = Conv(x, w1, b1) "
            "s = Shape(a) b = Gather(s, zero) h = Gather(s, two) bh = Mul(b, h) t = Transpose<perm = [0,2,3,1]>(a) "
            "c = Gather(s, one) k = Concat<axis = 0>(bh, four, c) f = Reshape(t, k) y = MatMul(f, w2) }"
        ),
        {"w1": (4, 3, 3, 3), "w2": (4, 5)},
    ),
    "halves whose bounds are computed": (
        (
            f"g ({X}, float[4,4,1,1] w2) => (float[n,4,4,4] y) {{ {NUMBERS} a = Conv(x, w1, b1) s = Shape(a) "
            "c = Gather(s, one) m = Add(c, one) half = Div(m, two) end = Mul(half, two) "
            "p = Slice(a, zero, half, one) q = Slice(a, half, end, one) j = Add(p, q) y = Conv(j, w2) }"
        ),
        {"w1": (4, 3, 3, 3), "w2": (4, 2, 1, 1)},
    ),
    "resized to computed sizes": (
        (
            f"g ({X}, float[4,8,1,1] w2) => (float[n,4,h,w] y) {{ {NUMBERS} a = Conv(x, w1, b1) s = Shape(a) "
            "k = Slice(s, zero, two) l = Slice(s, two, four) d = Mul(l, two) z = Concat<axis = 0>(k, d) "
            'r = Resize<mode = "nearest">(a, , , z) y = Conv(r, w2) }'
        ),
        {"w1": (4, 3, 3, 3), "w2": (4, 8 // 2, 1, 1)},
    ),
    "expanded like another tensor": (
        (
            f"g ({X}, float[4,8,1,1] w2) => (float[n,4,4,4] y) {{ {NUMBERS} a = Conv(x, w1, b1) s = Shape(a) "
            "p = GlobalAveragePool(a) e = Expand(p, s) y = Conv(e, w2) }"
        ),
        {"w1": (4, 3, 3, 3), "w2": (4, 4, 1, 1)},
    ),
    "a number that is computed from a size": (
        (
            f"g ({X}, float[4,8,1,1] w2) => (float[n,4,4,4] y) {{ {NUMBERS} a = Conv(x, w1, b1) s = Shape(a) "
            "c = Cast<to = 1>(s) m = ReduceProd<keepdims = 0>(c) d = Div(a, m) y = Conv(d, w2) }"
        ),
        {"w1": (4, 3, 3, 3), "w2": (4, 4, 1, 1)},
    ),
    "experts": (
        (
            "g (float[n,6] x, float[3,6,8] w1, float[3,1,8] b1, float[3,8,4] w2) => (float[3,n,4] y) "
            "{ a = MatMul(x, w1) b = Add(a, b1) r = Relu(b) y = MatMul(r, w2) }"
        ),
        {"w1": (3, 6, 4), "b1": (3, 1, 4), "w2": (3, 4, 4)},
    ),
    "one encoder for two inputs": (
        (
            "g (float[n,6] x, float[6,8] w1, float[8] b1, float[8,8] w2, float[16,4] w3) => (float[n,4] y) "
            "{ n = Neg(x) a1 = Gemm(x, w1, b1) a2 = Gemm(n, w1, b1) r1 = Relu(a1) r2 = Relu(a2) "
            "c1 = MatMul(r1, w2) c2 = MatMul(r2, w2) j = Concat<axis = 1>(c1, c2) y = MatMul(j, w3) }"
        ),
        {"w1": (6, 4), "w2": (4, 4), "w3": (8, 4)},
    ),
    "one bias of two layers": (
        (
            f"g ({X}, float[8,8,1,1] w2, float[4,8,1,1] w3) => (float[n,4,4,4] y) "
            "{ a = Conv(x, w1, b1) r = Relu(a) c = Conv(r, w2, b1) s = Softmax<axis = 1>(c) y = Conv(s, w3) }"
        ),
        {"w1": (4, 3, 3, 3), "b1": (4,), "w2": (8, 4, 1, 1), "w3": (4, 8, 1, 1)},
    ),
    "a bias behind an Identity": (
        (
            f"g ({X}, float[8,8,1,1] w2, float[4,8,1,1] w3) => (float[n,4,4,4] y) {{ i = Identity(b1) "
            "a = Conv(x, w1, b1) r = Relu(a) c = Conv(r, w2, i) t = Tanh(c) y = Conv(t, w3) }"
        ),
        {"w1": (4, 3, 3, 3), "w2": (4, 4, 1, 1), "w3": (4, 4, 1, 1)},
    ),
    "Einsum with a stored operand": (
        (
            "g (float[n,t,6] x, float[6,4,2] w1, float[4,2,5] w2) => (float[n,t,5] y) "
            '{ a = Einsum<equation = "btd,dhk->bthk">(x, w1) r = Relu(a) '
            'y = Einsum<equation = "...hk,hko->...o">(r, w2) }'
        ),
        {"w1": (6, 2, 1), "w2": (2, 1, 5)},
    ),
}


@pytest.mark.parametrize("case", list(CASES))
def test_half_of_the_channels_go(case: str) -> None:
    text, expected = CASES[case]
    made, compared = proof(model(text))
    assert compared.equal, (compared.unsure, compared.outputs)
    left = shapes(made)
    assert {name: left[name] for name in expected} == expected


@pytest.mark.parametrize(("opset", "scale"), [(18, 4), (21, 8)])
def test_whole_groups_of_a_normalisation_go(opset: int, scale: int) -> None:
    head = HEAD.replace("20", str(opset))
    text = (
        f"g ({X}, float[{scale}] s, float[{scale}] b, float[4,8,1,1] w2) => (float[n,4,4,4] y) "
        "{ a = Conv(x, w1, b1) c = GroupNormalization<num_groups = 4>(a, s, b) y = Conv(c, w2) }"
    )
    made, compared = proof(model(text, head=head))
    assert compared.equal, (compared.unsure, compared.outputs)
    left = shapes(made)
    assert (left["w1"], left["s"], left["w2"]) == ((4, 3, 3, 3), (scale // 2,), (4, 4, 1, 1))
    (group,) = found(model(text, head=head))[1].free
    assert len(group.channels) == 4


GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


@pytest.mark.parametrize("op", list(GATES))
@pytest.mark.parametrize("ways", [1, 2])
def test_hidden_units_go_with_their_gates(op: str, ways: int) -> None:
    gates = GATES[op]
    direction = ", direction = 'bidirectional'" if ways == 2 else ""
    text = (
        f"g (float[t,n,6] x, float[6,8] w0, float[{ways},{4 * gates},8] w, float[{ways},{4 * gates},4] r, "
        f"float[{ways},{8 * gates}] b, int64[3] n_0_0_m1, float[{4 * ways},5] w2) => (float[t,n,5] y) "
        f"{{ i = MatMul(x, w0) a, last = {op}<hidden_size = 4{direction}>(i, w, r, b) "
        "p = Transpose<perm = [0,2,1,3]>(a) f = Reshape(p, n_0_0_m1) y = MatMul(f, w2) }"
    ).replace("'", '"')
    made, compared = proof(model(text))
    assert compared.equal, (compared.unsure, compared.outputs)
    left = shapes(made)
    assert left["w0"] == (6, 4)
    assert left["w"] == (ways, 2 * gates, 4)
    assert left["r"] == (ways, 2 * gates, 2)
    assert left["b"] == (ways, 4 * gates)
    assert left["w2"] == (2 * ways, 5)
    last = next(value for node in made.graph for value in node.outputs if value.name == "last")
    assert last.shape is not None
    assert last.shape[2] == 2  # a result that nothing reads declares its new shape, too


def test_a_state_that_is_given_keeps_the_hidden_units() -> None:
    text = (
        "g (float[t,n,6] x, float[1,n,4] h, float[1,4,6] w, float[1,4,4] r, float[4,5] w2) => (float[1,n,5] y) "
        "{ a, last = RNN<hidden_size = 4>(x, w, r, , , h) y = MatMul(last, w2) }"
    )
    assert "begins with a state whose size is fixed: 'h'" in " ".join(reasons(model(text, inputs=2)))


@pytest.mark.parametrize(
    "equation",
    ["bti,bsi->bts", "btt,tk->btk"],
)
def test_letters_that_stay(equation: str) -> None:
    """A letter that is summed over in a product of two computed tensors, and one that an operand has twice."""
    text = (
        "g (float[n,4,6] x, float[6,4] w1, float[4,4] w2) => (float[n,4,4] y) "
        f'{{ a = MatMul(x, w1) s = Einsum<equation = "{equation}">(a, {"w2" if "k" in equation else "a"}) '
        "y = MatMul(s, w2) }"
    )
    assert not [group for group in found(model(text))[1].free if "MatMul:a" in group.layers]


def test_no_size_of_minus_one_is_made() -> None:
    """A batch of 0 has no size that -1 could mean, so a computed size stays computed."""
    text = (
        f"g (float[n,3,6,6] x, {CONV}, float[m] k, float[16,5] w2) => (float[n,8,5] y) {{ {NUMBERS} "
        "a = Conv(x, w1, b1) s = Shape(a) b = Gather(s, zero) c = Gather(s, one) q = Shape(k) "
        "t = Concat<axis = 0>(b, c, q) f = Reshape(a, t) y = MatMul(f, w2) }"
    )
    made = working(model(text, inputs=3)).model
    assert "Reshape" in [node.op_type for node in made.graph]
    numbers = [value.const_value.numpy().tolist() for value in made.graph.initializers.values() if value.const_value]
    assert [8, -1] not in numbers


def test_weights_that_are_inputs_are_constants() -> None:
    given = model(
        "g (float[n,6] x, float[6,8] w1, float[8,4] w2) => (float[n,4] y) { a = MatMul(x, w1) y = MatMul(a, w2) }"
    )
    given.graph.inputs.append(given.graph.initializers["w1"])
    work = working(given)
    assert [value.name for value in work.model.graph.inputs] == ["x"]
    assert any("were also graph inputs" in note for note in work.notes)
    made, compared = proof(given)
    assert compared.equal
    assert shapes(made)["w1"] == (6, 4)


def test_layers_to_keep() -> None:
    text = (
        "g (float[n,6] x, float[6,8] w1, float[8,8] w2, float[8,4] w3) => (float[n,4] y) "
        "{ a = MatMul(x, w1) r = Relu(a) c = MatMul(r, w2) y = MatMul(c, w3) }"
    )
    work = working(model(text)).model
    assert [group.layers for group in channels(work, ["MatMul:a"]).free] == [("MatMul:c",)]
    assert "MatMul 'MatMul:a' is on the given keep-list" in [one.reason for one in channels(work, ["MatMul:a"]).fixed]


def test_attention_through_joined_axes() -> None:
    """Exporters join the batch and the heads for a transpose, so that no axis is the heads any more."""
    text = (
        "g (float[n,t,16] x, float[16,16] wq, float[16,16] wk, int64[4] n_0_0_4_4) => (float[n,4,t,t] y) "
        f"{{ {NUMBERS} k0 = MatMul(x, wk) k1 = Reshape(k0, n_0_0_4_4) k2 = Transpose<perm = [0,2,1,3]>(k1) "
        "s = Shape(k2) b = Gather(s, zero) h = Gather(s, one) t = Gather(s, two) j = Concat<axis = 0>(rest, t, four) "
        "m = Reshape(k2, j) p = Transpose<perm = [0,2,1]>(m) u = Concat<axis = 0>(b, h, four, t) v = Reshape(p, u) "
        "q0 = MatMul(x, wq) q1 = Reshape(q0, n_0_0_4_4) q = Transpose<perm = [0,2,1,3]>(q1) y = MatMul(q, v) }"
    )
    work = working(model(text))
    assert work.is_rewritten
    assert [node.op_type for node in work.model.graph].count("Reshape") == 2
    assert isinstance(work.model, ir.Model)


def test_names_of_nodes_outlive_a_rewrite() -> None:
    text = (
        "g (float[t,n,6] x, float[1,4,6] w, float[1,4,4] r, float[4,5] w2) => (float[1,n,5] y) "
        "{ z = Constant<value = float[1,1,4] {0.0,0.0,0.0,0.0}>() a, last = RNN<hidden_size = 4>(x, w, r, , , z) "
        "y = MatMul(last, w2) }"
    )
    given = model(text)
    node = next(node for node in given.graph if node.op_type == "RNN")
    node.name = "mine"
    work = working(given)
    assert work.is_rewritten
    assert "mine" in [node.name for node in work.model.graph]
    assert np.all([value.type is not None for value in work.model.graph.initializers.values()])
