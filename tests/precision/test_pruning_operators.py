"""prune: channels are followed through operators; the result is the given model without the channels, or they stay."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.base import rooms
from onnxsmith.precision.pruning.operators.base import Operator
from tests.precision.pruning import found, model, proof, reasons, shapes

CONV = "float[8,3,3,3] w1, float[8] b1"
X = f"float[n,3,6,6] x, {CONV}"

CASES: dict[str, tuple[str, dict[str, tuple[int, ...]]]] = {
    "chain": (
        (f"g ({X}, float[4,8,3,3] w2) => (float[n,4,2,2] y) {{ a = Conv(x, w1, b1) r = Relu(a) y = Conv(r, w2) }}"),
        {"w1": (4, 3, 3, 3), "b1": (4,), "w2": (4, 4, 3, 3)},
    ),
    "batch normalisation": (
        (
            f"g ({X}, float[8] s, float[8] b, float[8] mean, float[8] var, float[4,8,3,3] w2)"
            " => (float[n,4,2,2] y) "
            "{ a = Conv(x, w1, b1) c = BatchNormalization(a, s, b, mean, var) r = Sigmoid(c) y = Conv(r, w2) }"
        ),
        {"s": (4,), "b": (4,), "mean": (4,), "var": (4,), "w2": (4, 4, 3, 3)},
    ),
    "residual": (
        (
            f"g ({X}, float[8,8,1,1] w2, float[8,1,1] slope, float[4,8,3,3] w3) => (float[n,4,2,2] y) "
            "{ a = Conv(x, w1, b1) r = Exp(a) c = Conv(r, w2) s = Add(r, c) p = PRelu(s, slope) y = Conv(p, w3) }"
        ),
        {"w1": (4, 3, 3, 3), "w2": (4, 4, 1, 1), "slope": (4, 1, 1), "w3": (4, 4, 3, 3)},
    ),
    "joined": (
        (
            f"g ({X}, float[6,3,3,3] w2, float[4,14,1,1] w3) => (float[n,4,4,4] y) "
            "{ a = Conv(x, w1, b1) c = Conv(x, w2) j = Concat<axis = 1>(a, c) r = Tanh(j) y = Conv(r, w3) }"
        ),
        {"w1": (4, 3, 3, 3), "w2": (3, 3, 3, 3), "w3": (4, 7, 1, 1)},
    ),
    "joined with a fixed tensor": (
        (
            f"g ({X}, float[4,11,1,1] w3) => (float[n,4,6,6] y) "
            "{ a = Conv<pads = [1,1,1,1]>(x, w1, b1) j = Concat<axis = 1>(x, a) r = Tanh(j) y = Conv(r, w3) }"
        ),
        {"w1": (4, 3, 3, 3), "w3": (4, 7, 1, 1)},
    ),
    "divided": (
        (
            f"g ({X}, int64[2] n_2_6, float[4,2,1,1] w2, float[4,6,1,1] w3) => (float[n,4,4,4] y) "
            "{ a = Conv(x, w1, b1) c, d = Split<axis = 1>(a, n_2_6) e = Conv(c, w2) f = Conv(d, w3) y = Add(e, f) }"
        ),
        {"w1": (4, 3, 3, 3), "w2": (4, 1, 1, 1), "w3": (4, 3, 1, 1)},
    ),
    "gated": (
        (
            f"g ({X}, float[4,4,1,1] w2) => (float[n,4,4,4] y) "
            "{ a = Conv(x, w1, b1) c, d = Split<axis = 1, num_outputs = 2>(a) s = Sigmoid(d) m = Mul(c, s) "
            "y = Conv(m, w2) }"
        ),
        {"w1": (4, 3, 3, 3), "b1": (4,), "w2": (4, 2, 1, 1)},
    ),
    "a slice": (
        (
            f"g ({X}, int64[1] n_2, int64[1] n_8, int64[1] n_1, float[4,6,1,1] w2, float[4,8,1,1] w3)"
            " => (float[n,4,4,4] y) "
            "{ a = Conv(x, w1, b1) c = Slice(a, n_2, n_8, n_1) d = Conv(c, w2) e = Conv(a, w3) y = Add(d, e) }"
        ),
        {"w1": (4, 3, 3, 3), "w2": (4, 3, 1, 1), "w3": (4, 4, 1, 1)},
    ),
    "taken in another order": (
        (
            f"g ({X}, int64[8] n_7_1_2_4_3_5_6_0, float[4,8,1,1] w2) => (float[n,4,4,4] y) "
            "{ a = Conv(x, w1, b1) c = Gather<axis = 1>(a, n_7_1_2_4_3_5_6_0) y = Conv(c, w2) }"
        ),
        {"w1": (4, 3, 3, 3), "w2": (4, 4, 1, 1)},
    ),
    "depthwise": (
        (
            f"g ({X}, float[16,1,3,3] w2, float[16] b2, float[4,16,1,1] w3) => (float[n,4,2,2] y) "
            "{ a = Conv(x, w1, b1) c = Conv<group = 8>(a, w2, b2) y = Conv(c, w3) }"
        ),
        {"w1": (4, 3, 3, 3), "w2": (8, 1, 3, 3), "b2": (8,), "w3": (4, 8, 1, 1)},
    ),
    "grouped": (
        (
            f"g ({X}, float[12,4,3,3] w2, float[12] b2, float[4,12,1,1] w3) => (float[n,4,2,2] y) "
            "{ a = Conv(x, w1, b1) c = Conv<group = 2>(a, w2, b2) y = Conv(c, w3) }"
        ),
        {"w1": (4, 3, 3, 3), "w2": (6, 2, 3, 3), "b2": (6,), "w3": (4, 6, 1, 1)},
    ),
    "flattened": (
        (
            f"g ({X}, float[128,5] w2) => (float[n,5] y) "
            "{ a = Conv(x, w1, b1) r = Relu(a) f = Flatten(r) y = Gemm(f, w2) }"
        ),
        {"w1": (4, 3, 3, 3), "w2": (64, 5)},
    ),
    "reshaped": (
        (
            f"g ({X}, int64[2] n_m1_128, float[128,5] w2) => (float[n,5] y) "
            "{ a = Conv(x, w1, b1) r = Relu(a) f = Reshape(r, n_m1_128) y = MatMul(f, w2) }"
        ),
        {"w1": (4, 3, 3, 3), "w2": (64, 5)},
    ),
    "Gemm with a transposed weight": (
        (
            "g (float[n,6] x, float[8,6] w1, float[8] b1, float[10,8] w2, float[1,10] b2, float[10,4] w3, float[4] b3)"
            " => (float[n,4] y) "
            "{ a = Gemm<transB = 1>(x, w1, b1) r = Relu(a) c = Gemm<transB = 1, alpha = 0.5>(r, w2, b2) "
            "y = Gemm(c, w3, b3) }"
        ),
        {"w1": (4, 6), "b1": (4,), "w2": (5, 4), "b2": (1, 5), "w3": (5, 4), "b3": (4,)},
    ),
    "a matrix on the left": (
        (
            "g (float[n,6,5] x, float[8,6] w1, float[8,1] b1, float[4,8] w2) => (float[n,4,5] y) "
            "{ a = MatMul(w1, x) c = Add(a, b1) y = MatMul(w2, c) }"
        ),
        {"w1": (4, 6), "b1": (4, 1), "w2": (4, 4)},
    ),
    "transposed convolution": (
        (
            f"g ({X}, float[8,6,2,2] w2, float[6] b2, float[6,4,2,2] w3) => (float[n,4,9,9] y) "
            "{ a = Conv(x, w1, b1) c = ConvTranspose<strides = [2,2]>(a, w2, b2) r = Relu(c) "
            "y = ConvTranspose(r, w3) }"
        ),
        {"w1": (4, 3, 3, 3), "w2": (4, 3, 2, 2), "b2": (3,), "w3": (3, 4, 2, 2)},
    ),
    "transposed convolutions in groups": (
        (
            f"g ({X}, float[8,3,2,2] w2, float[6] b2, float[6,2,2,2] w3, float[4,12,1,1] w4)"
            " => (float[n,4,6,6] y) { a = Conv(x, w1, b1) c = ConvTranspose<group = 2>(a, w2, b2) r = Relu(c) "
            "d = ConvTranspose<group = 6>(r, w3) y = Conv(d, w4) }"
        ),
        {"w1": (4, 3, 3, 3), "w2": (4, 2, 2, 2), "b2": (4,), "w3": (4, 2, 2, 2), "w4": (4, 8, 1, 1)},
    ),
    "excited": (
        (
            f"g ({X}, float[2,8,1,1] w2, float[8,2,1,1] w3, float[4,8,1,1] w4) => (float[n,4,4,4] y) "
            "{ a = Conv(x, w1, b1) p = GlobalAveragePool(a) d = Conv(p, w2) r = Relu(d) u = Conv(r, w3) "
            "s = HardSigmoid(u) m = Mul(a, s) y = Conv(m, w4) }"
        ),
        {"w1": (4, 3, 3, 3), "w2": (1, 4, 1, 1), "w3": (4, 1, 1, 1), "w4": (4, 4, 1, 1)},
    ),
    "averaged over places": (
        (
            f"g ({X}, int64[2] n_2_3, float[8,4] w2) => (float[n,4] y) "
            "{ a = Conv(x, w1, b1) m = ReduceMean<keepdims = 0>(a, n_2_3) y = MatMul(m, w2) }"
        ),
        {"w1": (4, 3, 3, 3), "w2": (4, 4)},
    ),
    "places last": (
        (
            f"g ({X}, float[8,4] w2) => (float[n,4,4,4] y) "
            "{ a = Conv(x, w1, b1) t = Transpose<perm = [0,2,3,1]>(a) y = MatMul(t, w2) }"
        ),
        {"w1": (4, 3, 3, 3), "w2": (4, 4)},
    ),
    "pooled, padded and resized": (
        (
            f"g (float[1,3,6,6] x, {CONV}, int64[8] n_0_0_1_1_0_0_1_1, int64[4] n_1_8_12_12, float[4,8,1,1] w2)"
            " => (float[1,4,12,12] y) { a = Conv(x, w1, b1) m = MaxPool<kernel_shape = [2,2]>(a) "
            'p = Pad(m, n_0_0_1_1_0_0_1_1) r = Resize<mode = "linear">(p, , , n_1_8_12_12) y = Conv(r, w2) }'
        ),
        {"w1": (4, 3, 3, 3), "w2": (4, 4, 1, 1)},
    ),
    "depth to space": (
        (
            f"g ({X}, float[4,2,1,1] w2) => (float[n,4,8,8] y) "
            "{ a = Conv(x, w1, b1) d = DepthToSpace<blocksize = 2>(a) y = Conv(d, w2) }"
        ),
        {"w1": (4, 3, 3, 3), "w2": (4, 1, 1, 1)},
    ),
    "pairs of channels": (
        (
            f"g (float[1,3,6,6] x, {CONV}, int64[4] n_1_4_8_4, float[4,4,1,1] w2) => (float[1,4,8,4] y) "
            "{ a = Conv(x, w1, b1) r = Reshape(a, n_1_4_8_4) y = Conv(r, w2) }"
        ),
        {"w1": (4, 3, 3, 3), "w2": (4, 2, 1, 1)},
    ),
    "shuffled": (
        (
            f"g ({X}, int64[5] n_m1_2_4_4_4, int64[4] n_m1_8_4_4, float[4,8,1,1] w2)"
            " => (float[n,4,4,4] y) { a = Conv(x, w1, b1) d = Reshape(a, n_m1_2_4_4_4) "
            "t = Transpose<perm = [0,2,1,3,4]>(d) r = Reshape(t, n_m1_8_4_4) y = Conv(r, w2) }"
        ),
        {"w1": (4, 3, 3, 3), "w2": (4, 4, 1, 1)},
    ),
}


@pytest.mark.parametrize("case", list(CASES))
def test_half_of_the_channels_go(case: str) -> None:
    text, expected = CASES[case]
    made, compared = proof(model(text))
    assert compared.equal, (compared.unsure, compared.outputs)
    left = shapes(made)
    assert {name: left[name] for name in expected} == expected


HEADS = (
    "g (float[n,t,16] x, float[16,16] wq, float[16] bq, float[16,16] wk, float[16,16] wv, int64[4] n_0_0_4_4, "
    "int64[3] n_0_0_16, float[1] half, float[16,16] wo, float[16] scale) => (float[n,t,16] y) { "
    "q0 = MatMul(x, wq) q1 = Add(q0, bq) q2 = Reshape(q1, n_0_0_4_4) q = Transpose<perm = [0,2,1,3]>(q2) "
    "k0 = MatMul(x, wk) k2 = Reshape(k0, n_0_0_4_4) k = Transpose<perm = [0,2,3,1]>(k2) "
    "v0 = MatMul(x, wv) v2 = Reshape(v0, n_0_0_4_4) v = Transpose<perm = [0,2,1,3]>(v2) "
    "a0 = MatMul(q, k) a1 = Mul(a0, half) a = Softmax<axis = -1>(a1) h0 = MatMul(a, v) "
    "h1 = Transpose<perm = [0,2,1,3]>(h0) h = Reshape(h1, n_0_0_16) o = MatMul(h, wo) r = Add(o, x) "
    "y = LayerNormalization(r, scale) }"
)


def test_whole_heads_go() -> None:
    made, compared = proof(model(HEADS))
    assert compared.equal, (compared.unsure, compared.outputs)
    left = shapes(made)
    assert {name: left[name] for name in ("wq", "bq", "wk", "wv", "wo")} == {
        "wq": (16, 8), "bq": (8,), "wk": (16, 8), "wv": (16, 8), "wo": (8, 16),
    }  # fmt: skip
    free = found(model(HEADS))[1].free
    assert [(len(group.channels), len(group.layers)) for group in free] == [(4, 3)]


FUSED = (
    "g (float[n,t,16] x, float[16,48] w, int64[5] n_0_0_3_4_4, int64[3] n_0_0_16, float[16,16] wo) "
    "=> (float[n,t,16] y) { p = MatMul(x, w) r = Reshape(p, n_0_0_3_4_4) t1 = Transpose<perm = [2,0,3,1,4]>(r) "
    "q0, k0, v0 = Split<axis = 0, num_outputs = 3>(t1) zero = Constant<value_ints = [0]>() "
    "q = Squeeze(q0, zero) k1 = Squeeze(k0, zero) v = Squeeze(v0, zero) k = Transpose<perm = [0,1,3,2]>(k1) "
    "a0 = MatMul(q, k) a = Softmax<axis = -1>(a0) h0 = MatMul(a, v) h1 = Transpose<perm = [0,2,1,3]>(h0) "
    "h = Reshape(h1, n_0_0_16) y = MatMul(h, wo) }"
)


def test_heads_of_one_weight_for_all_three() -> None:
    """The channels of the weight are three parts of four heads: the heads are not the outermost part."""
    made, compared = proof(model(FUSED))
    assert compared.equal, (compared.unsure, compared.outputs)
    assert {name: shapes(made)[name] for name in ("w", "wo")} == {"w": (16, 24), "wo": (8, 16)}


OLD = '<ir_version: 7, opset_import: ["": 11]>\n'


def test_sizes_in_attributes_of_older_opsets() -> None:
    given = model(
        f"g (float[1,3,6,6] x, {CONV}, float[4,2,1,1] w2, float[4,6,1,1] w3, float[4,2,1,1] w4) => (float[1,4,4,4] y) "
        "{ a = Conv(x, w1, b1) c, d = Split<axis = 1, split = [2,6]>(a) e = Conv(c, w2) f = Conv(d, w3) "
        "u = Unsqueeze<axes = [0]>(c) v = Squeeze<axes = [0]>(u) w = Conv(v, w4) s = Add(e, f) y = Add(s, w) }",
        head=OLD,
    )
    made, compared = proof(given)
    assert compared.equal, (compared.unsure, compared.outputs)
    assert {name: shapes(made)[name] for name in ("w1", "w3", "w4")} == {
        "w1": (4, 3, 3, 3), "w3": (4, 3, 1, 1), "w4": (4, 1, 1, 1)
    }  # fmt: skip


def test_a_computed_target_of_a_reshape() -> None:
    given = model(
        f"g ({X}, int64[1] n_0, int64[1] n_1, int64[1] n_m1, float[128,5] w2) => (float[n,5] y) "
        "{ a = Conv(x, w1, b1) h = Shape(x) b = Slice(h, n_0, n_1) s = Concat<axis = 0>(b, n_m1) "
        "f = Reshape(a, s) y = MatMul(f, w2) }"
    )
    made, compared = proof(given)
    assert compared.equal, (compared.unsure, compared.outputs)
    assert shapes(made)["w2"] == (64, 5)


def test_half_precision() -> None:
    """Weights of two bytes are cut as such."""
    given = model(
        "g (float[n,6] x, float[6,8] w1, float[8,4] w2) => (float[n,4] y) { a = MatMul(x, w1) y = MatMul(a, w2) }"
    )
    for value in (*given.graph.initializers.values(), *given.graph.inputs, *given.graph.outputs):
        value.type = ir.TensorType(ir.DataType.FLOAT16)
        if value.const_value is not None:
            value.const_value = ir.tensor(value.const_value.numpy().astype(np.float16), name=value.name)
    made, compared = proof(given)
    assert compared.equal, (compared.unsure, compared.outputs)
    assert made.graph.initializers["w1"].dtype == ir.DataType.FLOAT16
    assert shapes(made) == {"w1": (6, 4), "w2": (4, 4)}


TAIL = "float[4,8,1,1] w2) => (float[n,4,4,4] y) "
REFUSED: dict[str, tuple[str, str]] = {
    "an output": (
        f"g ({X}) => (float[n,8,4,4] y) {{ a = Conv(x, w1, b1) y = Relu(a) }}",
        "the channels reach the output 'y' of the graph",
    ),
    "a shared weight": (
        (
            "g (float[n,8] x, float[8,8] w, float[8,4] w2) => (float[n,4] y) "
            "{ a = MatMul(x, w) r = Relu(a) c = MatMul(r, w) y = MatMul(c, w2) }"
        ),
        "MatMul 'MatMul:a' also reads the weight 'w', and needs all of it",
    ),
    "a matrix that is an embedding, too": (
        (
            "g (float[n,8] x, float[8,8] w, float[8,4] w2) => (float[n,4] y, float[1,8] z) "
            "{ one = Constant<value_ints = [1]>() z = Gather(w, one) a = MatMul(x, w) r = Relu(a) y = MatMul(r, w2) }"
        ),
        "Gather 'Gather:z' also reads the weight 'w', and needs all of it",
    ),
    "a softmax over channels": (
        f"g ({X}, {TAIL}{{ a = Conv(x, w1, b1) s = Softmax<axis = 1>(a) y = Conv(s, w2) }}",
        "Softmax 'Softmax:s' computes each channel from all channels",
    ),
    "a layer normalisation": (
        (
            "g (float[n,8] x, float[8,8] w, float[8] s, float[8,4] w2) => (float[n,4] y) "
            "{ a = MatMul(x, w) l = LayerNormalization(a, s) y = MatMul(l, w2) }"
        ),
        "LayerNormalization 'LayerNormalization:l' computes each channel from all channels",
    ),
    "a sum over channels": (
        (f"g ({X}, int64[1] n_1) => (float[n,1,4,4] y) {{ a = Conv(x, w1, b1) y = ReduceSum(a, n_1) }}"),
        "ReduceSum 'ReduceSum:y' reduces it",
    ),
    "an operator that is not understood": (
        f"g ({X}, {TAIL}{{ a = Conv(x, w1, b1) s = Trilu(a) y = Conv(s, w2) }}",
        "prune cannot follow channels through Trilu 'Trilu:s'",
    ),
    "channels of an input": (
        (
            "g (float[n,8] x, float[8,8] w, float[8,4] w2) => (float[n,4] y) "
            "{ a = MatMul(x, w) s = Add(a, x) y = MatMul(s, w2) }"
        ),
        "the channels are combined with 'x', an input of the graph, whose channels stay",
    ),
    "a branch": (
        (
            "g (float[n,8] x, float[8,8] w, float[8,4] w2) => (float[n,4] y) { a = MatMul(x, w) "
            "c = Constant<value = bool {1}>() s = If (c) <then_branch = t () => (p) { p = Relu(a) }, "
            "else_branch = e () => (q) { q = Neg(a) }> y = MatMul(s, w2) }"
        ),
        "the channels are read in a branch or body of If 'If:s'",
    ),
    "one channel": (
        "g (float[n,8] x, float[8,1] w, float[1,4] w2) => (float[n,4] y) { a = MatMul(x, w) y = MatMul(a, w2) }",
        "it has one channel",
    ),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_channels_that_stay(case: str) -> None:
    text, reason = REFUSED[case]
    assert reason in reasons(model(text))


def test_a_broadcast_channel_stays() -> None:
    """One channel that is added to eight is no channel of theirs."""
    given = model(
        f"g ({X}, float[1,3,3,3] w0, {TAIL}{{ a = Conv(x, w1, b1) c = Conv(x, w0) s = Add(a, c) y = Conv(s, w2) }}"
    )
    made, compared = proof(given)
    assert compared.equal, (compared.unsure, compared.outputs)
    assert {name: shapes(made)[name] for name in ("w0", "w1")} == {"w0": (1, 3, 3, 3), "w1": (4, 3, 3, 3)}


def test_each_family_says_which_operators_it_knows() -> None:
    """No operator has two families."""
    known = [
        op for family in rooms.members("onnxsmith.precision.pruning.operators", Operator).values() for op in family.ops
    ]
    assert len(known) == len(set(known)) > 100


NEW = '<ir_version: 11, opset_import: ["": 23]>\n'
QUERIES = (
    "g (float[n,5,6] x, float[6,16] wq, float[6,8] wk, float[6,12] wv, float[24,6] wo) => (float[n,5,6] y) "
    "{ q = MatMul(x, wq) k = MatMul(x, wk) v = MatMul(x, wv) "
    "a = Attention<q_num_heads = 4, kv_num_heads = 2>(q, k, v) y = MatMul(a, wo) }"
)


def test_heads_of_the_standard_attention_go_with_the_queries_that_read_them() -> None:
    made, found = proof(model(QUERIES, head=NEW))
    assert found.equal
    assert shapes(made) == {"wq": (6, 8), "wk": (6, 4), "wv": (6, 6), "wo": (12, 6)}
    (node,) = (one for one in made.graph if one.op_type == "Attention")
    assert (node.attributes["q_num_heads"].as_int(), node.attributes["kv_num_heads"].as_int()) == (2, 1)


def test_heads_on_an_axis_of_their_own() -> None:
    text = (
        "g (float[n,5,6] x, float[6,16] wq, float[6,16] wk, float[6,16] wv, int64[4] n_0_5_4_4, int64[3] n_0_5_16, "
        "float[1,1,5,5] mask, float[16,6] wo) => (float[n,5,6] y) "
        "{ q = MatMul(x, wq) k = MatMul(x, wk) v = MatMul(x, wv) q1 = Reshape(q, n_0_5_4_4) k1 = Reshape(k, n_0_5_4_4) "
        "v1 = Reshape(v, n_0_5_4_4) q2 = Transpose<perm = [0,2,1,3]>(q1) k2 = Transpose<perm = [0,2,1,3]>(k1) "
        "v2 = Transpose<perm = [0,2,1,3]>(v1) a = Attention(q2, k2, v2, mask) b = Transpose<perm = [0,2,1,3]>(a) "
        "c = Reshape(b, n_0_5_16) y = MatMul(c, wo) }"
    )
    made, found = proof(model(text, head=NEW))
    assert found.equal
    assert shapes(made)["wq"] == shapes(made)["wk"] == shapes(made)["wv"] == (6, 8)
    masked = text.replace("float[1,1,5,5] mask", "float[1,4,5,5] mask")
    assert any("has a mask for each head" in why for why in reasons(model(masked, head=NEW)))


def test_heads_with_a_cache_stay() -> None:
    text = QUERIES.replace("float[n,5,6] x,", "float[n,5,6] x, float[n,2,p,4] pk, float[n,2,p,6] pv,").replace(
        "(q, k, v)", "(q, k, v, , pk, pv)"
    )
    assert any("keeps keys and values from run to run" in why for why in reasons(model(text, inputs=3, head=NEW)))
