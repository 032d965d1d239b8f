"""prune: weights that are computed from stored tensors by moving elements."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import onnxsmith
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.graph.files.save import save
from onnxsmith.precision.pruning.channel_removal import kept_channels
from onnxsmith.precision.pruning.moved_weights import moved
from onnxsmith.precision.pruning.proof import compared
from onnxsmith.precision.pruning.pruning_preparation import working
from onnxsmith.precision.pruning.torch_parameters import of_initializers
from tests.precision.pruning import cut, model, proof, shapes

GATES = (
    "g (float[t,n,6] x, float[12,6] ih, float[12,4] hh, float[12] bi, float[12] bh, int64[1] n_0, int64[2] n_8_4, "
    "float[4,5] w2) => (float[1,n,5] y) {"
    " i0, i1 = Split<axis = 0>(ih, n_8_4) ic = Concat<axis = 0>(i1, i0) w = Unsqueeze(ic, n_0)"
    " h0, h1 = Split<axis = 0>(hh, n_8_4) hc = Concat<axis = 0>(h1, h0) r = Unsqueeze(hc, n_0)"
    " b2 = Concat<axis = 0>(bi, bh) b = Unsqueeze(b2, n_0)"
    " all, last = GRU<hidden_size = 4>(x, w, r, b) y = MatMul(last, w2) }"
)
"""A layer whose gates the exporter puts into another order: the last third of the rows comes first."""
BIAS = (
    "g (float[n,3,6,6] x, float[8,3,3,3] w1, float[8] offset, int64[4] n_1_8_1_1, float[4,8,1,1] w2) "
    "=> (float[n,4,4,4] y) { a = Conv(x, w1) o = Reshape(offset, n_1_8_1_1) b = Add(a, o) y = Conv(b, w2) }"
)


def test_a_recurrent_layer_of_moved_parameters() -> None:
    made, found = proof(model(GATES, inputs=1))
    assert found.equal
    assert shapes(made) == {"w": (1, 6, 6), "r": (1, 6, 2), "b": (1, 12), "w2": (2, 5)}


def test_the_keep_list_has_the_parameters_not_what_was_made_of_them() -> None:
    given = model(GATES, inputs=1)
    _, _, kept, channels = cut(given)
    units = [int(one) for one in kept["last", 2]]
    rows = [gate * 4 + unit for gate in range(3) for unit in units]
    found = kept_channels(working(given), channels, kept)
    assert found == {
        "bh": {"0": rows}, "bi": {"0": rows}, "hh": {"0": rows, "1": units}, "ih": {"0": rows}, "w2": {"0": units},
    }  # fmt: skip


def test_a_bias_through_a_reshape() -> None:
    made, found = proof(model(BIAS))
    assert found.equal
    assert shapes(made)["w1"] == (4, 3, 3, 3)
    assert shapes(made)["o"] == (1, 4, 1, 1)
    given = model(BIAS)
    _, _, kept, channels = cut(given)
    assert list(kept_channels(working(given), channels, kept)["offset"]) == ["0"]


def test_the_saliency_of_the_parameters_is_moved_alike() -> None:
    work = working(model(GATES, inputs=1))
    rng = np.random.default_rng(0)
    saliency = {name: rng.random(shape) for name, shape in {"ih": (12, 6), "bi": (12,), "bh": (12,)}.items()}
    found = of_initializers(work.model, saliency, work.moved)
    np.testing.assert_array_equal(found["w"][0], np.concatenate([saliency["ih"][8:], saliency["ih"][:8]]))
    np.testing.assert_array_equal(found["b"][0], np.concatenate([saliency["bi"], saliency["bh"]]))
    assert "r" not in found  # nothing is given for it
    with pytest.raises(onnxsmith.OnnxsmithError, match="prune/saliency"):
        of_initializers(work.model, {"ih": rng.random((6, 12))}, work.moved)


def test_a_weight_that_something_else_reads_is_not_stored_twice() -> None:
    text = (
        "g (float[n,4] x, float[4,8] w) => (float[n,8] y) "
        "{ a = MatMul(x, w) r = Relu(a) t = Transpose(w) b = MatMul(r, t) y = MatMul(b, w) }"
    )
    assert [node.op_type for node in working(model(text)).model.graph].count("Transpose") == 1


def test_equal_moves_of_a_tensor_are_one_weight() -> None:
    """A layer that is called twice: the exporter transposes its weight at each call."""
    made, found = proof(
        model(
            "g (float[n,4] x, float[8,4] w1, float[8,8] w2, float[3,8] w3) => (float[n,3] y) "
            "{ t1 = Transpose(w1) a = MatMul(x, t1) t2 = Transpose(w2) b = MatMul(a, t2) r = Relu(b) "
            "t3 = Transpose(w2) c = MatMul(r, t3) t4 = Transpose(w3) y = MatMul(c, t4) }"
        )
    )
    assert found.equal
    assert shapes(made) == {"t1": (4, 4), "t2": (4, 4), "t4": (4, 3)}


MOVES = {
    "Flatten": ("float[2,3,4] w", "Flatten<axis = 1>(w)"),
    "Gather": ("float[6,4] w, int64[3] n_4_m1_0", "Gather<axis = 0>(w, n_4_m1_0)"),
    "Reshape": ("float[6,4] w, int64[3] n_0_2_m1", "Reshape(w, n_0_2_m1)"),
    "Slice": (
        "float[6,4] w, int64[1] n_m5, int64[1] n_99, int64[1] n_0, int64[1] n_2",
        "Slice(w, n_m5, n_99, n_0, n_2)",
    ),
    "Split": ("float[7,4] w", "Split<axis = 0, num_outputs = 2>(w)"),
    "Squeeze": ("float[1,4,1] w", "Squeeze(w)"),
    "Transpose": ("float[2,3,4] w", "Transpose<perm = [1,2,0]>(w)"),
    "Unsqueeze": ("float[3,4] w, int64[2] n_0_m1", "Unsqueeze(w, n_0_m1)"),
}


@pytest.mark.parametrize("op", MOVES)
def test_moves_are_those_of_onnxruntime(op: str, tmp_path: Path) -> None:
    """The tensor that is stored is what onnxruntime computes, and its elements are found again in the source."""
    operands, call = MOVES[op]
    results = "z, z2" if op == "Split" else "z"
    given = model(f"g (float[1] x, {operands}) => (y) {{ {results} = {call} y = Add(x, z) }}")
    save(given, tmp_path / "m.onnx")
    wanted = next(iter(onnxsmith.run(tmp_path / "m.onnx", {"x": np.zeros(1, np.float32)}).outputs.values()))
    weight = given.graph.initializers["w"].const_value
    assert weight is not None
    source = np.asarray(weight.numpy())
    found = moved(given)
    stored = given.graph.initializers["z"].const_value
    assert stored is not None
    np.testing.assert_array_equal(stored.numpy(), wanted)
    names, which, at = found.elements("z")
    assert names == ["w"]
    assert not which.any()
    np.testing.assert_array_equal(source.ravel()[at], wanted)


def test_a_move_that_is_done_wrongly_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model with moved weights is compared with the given one before channels are followed."""
    from onnxsmith.precision.pruning import moved_weights as module

    monkeypatch.setitem(module._MOVES, "Unsqueeze", lambda _: lambda given: [given[0][None] + 1])
    work = compared(model(GATES), None, 0)
    assert not work.moved.steps
    assert "Unsqueeze" in [node.op_type for node in work.model.graph]


@pytest.mark.torch
def test_a_recurrent_layer_of_torch(tmp_path: Path) -> None:
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.r, self.o = nn.LSTM(6, 16, 2, batch_first=True, bidirectional=True), nn.Linear(32, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.o(self.r(x)[0])
            return result

    torch.manual_seed(0)
    x = torch.randn(2, 5, 6)
    onnxsmith.export(Net().eval(), (x,), output=tmp_path / "net.onnx", simplify=False)
    kept = tmp_path / "kept.json"
    result = onnxsmith.prune(tmp_path / "net.onnx", share=0.5, keep_list=kept, measure_time=False)
    assert result.report.verdict is Verdict.DONE
    found = json.loads(kept.read_text())
    rows = found["r.weight_ih_l1_reverse"]["0"]
    units = [row for row in rows if row < 16]
    assert len(units) == 8
    assert rows == [16 * gate + unit for gate in range(4) for unit in units]
    assert {name for name in found if name.startswith("r.")} == {
        f"r.{kind}_l{layer}{way}" for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        for layer in (0, 1) for way in ("", "_reverse")
    }  # fmt: skip
