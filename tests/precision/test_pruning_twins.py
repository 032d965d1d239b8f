"""prune: a weight that is stored as it is and transposed."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnxsmith.precision.pruning.channel_groups import twins
from onnxsmith.precision.pruning.channel_removal import kept_channels
from onnxsmith.precision.pruning.pruning_preparation import working
from tests.precision.pruning import cut, model, proof, shapes

TEXT = (
    "g (float[n,9] x, float[6,9] w, float[6,6] v, float[9,6] t) => (float[n,9] y) "
    "{ a = Gemm<transB = 1>(x, w) r = Relu(a) b = Gemm<transB = 1>(r, v) s = Relu(b) y = Gemm<transB = 1>(s, t) }"
)


def tied(*, same: bool = True) -> ir.Model:
    made = model(TEXT)
    weight = made.graph.initializers["w"].const_value
    assert weight is not None
    array = np.ascontiguousarray(weight.numpy().T)
    array[0, 0] += 0.0 if same else 1.0
    made.graph.initializers["t"].const_value = ir.tensor(array, name="t")
    return made


def test_both_lose_the_same_channels() -> None:
    made, found = proof(tied())
    assert found.equal
    assert shapes(made) == {"w": (3, 9), "v": (3, 3), "t": (9, 3)}
    work, _, kept, channels = cut(tied())
    assert twins(work) == [("w", "t")]
    np.testing.assert_array_equal(kept["w", 0], kept["t", 1])
    assert len(channels.free) == 1
    assert len(cut(tied(same=False))[3].free) == 2


def test_both_are_named_where_none_is_known_as_a_parameter() -> None:
    _, _, kept, channels = cut(tied())
    found = kept_channels(working(tied()), channels, kept)
    assert found["w"]["0"] == found["t"]["1"]


def test_matrices_of_few_numbers_are_no_twins() -> None:
    made = model("g (float[n,6] x, float[6,6] a, float[6,6] b) => (float[n,6] y) { c = MatMul(x, a) y = MatMul(c, b) }")
    for name in ("a", "b"):
        made.graph.initializers[name].const_value = ir.tensor(np.eye(6, dtype=np.float32), name=name)
    assert twins(made) == []
