"""prune: the proof fails on a wrong cut."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.precision.pruning.channel_removal import Kept, kept_without, pruned
from onnxsmith.precision.pruning.proof import proven
from tests.precision.pruning import cut, found, model

TEXT = (
    "g (float[n,3,6,6] x, float[8,3,3,3] w1, float[8] b1, float[8] s, float[8] b, float[8] mean, float[8] var, "
    "float[8,8,1,1] w2, float[128,5] w3) => (float[n,5] y) { a = Conv(x, w1, b1) "
    "c = BatchNormalization(a, s, b, mean, var) r = Relu(c) d = Conv(r, w2) t = Add(d, r) f = Flatten(t) "
    "y = Gemm(f, w3) }"
)


def _other(kept: Kept, name: str, axis: int, change: Callable[[set[int], int], set[int]]) -> Kept:
    size = {"w3": 128}.get(name, 8)
    indices = np.array(sorted(change(set(kept[name, axis].tolist()), size)))
    assert len(indices) == len(kept[name, axis])
    return {**kept, (name, axis): indices}


def _rest(kept: set[int], size: int) -> set[int]:
    return set(range(size)) - kept


@pytest.mark.parametrize(
    ("name", "axis"),
    [("w1", 0), ("b1", 0), ("s", 0), ("b", 0), ("mean", 0), ("var", 0), ("w2", 0), ("w2", 1), ("w3", 0)],
)
def test_a_weight_with_other_channels_is_seen(name: str, axis: int) -> None:
    work, right, kept, channels = cut(model(TEXT))
    assert proven(work, right, kept, channels, None).equal
    wrong = pruned(work, _other(kept, name, axis, _rest))
    found = proven(work, wrong, kept, channels, None)
    assert found.differs
    assert not found.equal


def test_sides_of_a_residual_with_other_indices_are_seen() -> None:
    """One side keeps the other channels, consistently in all of its weights: the cut and the zeros are made of the same
    wrong indices."""
    work, _, kept, channels = cut(model(TEXT))
    other = _other(kept, "w2", 0, _rest)
    assert proven(work, pruned(work, other), other, channels, None).differs


def test_interleaved_rows_behind_a_flatten_are_seen() -> None:
    """Rows as if places came before channels: wrong in the cut and in the zeros alike."""
    work, _, kept, channels = cut(model(TEXT))
    stay = kept["w1", 0]
    rows = np.array(sorted(place * 8 + channel for place in range(16) for channel in stay))
    wrong = {**kept, ("w3", 0): rows}
    assert proven(work, pruned(work, wrong), wrong, channels, None).differs


def test_a_reader_that_was_forgotten_is_seen() -> None:
    """A channel that goes although a sum over all of them reads it."""
    given = model(
        "g (float[n,6] x, float[6,8] w1, float[8,4] w2) => (float[n,4] y) "
        "{ a = MatMul(x, w1) m = ReduceMax(a) c = MatMul(a, w2) y = Sub(c, m) }"
    )
    work, channels = found(given)
    gone = next(group for group in channels.fixed if "ReduceMax" in group.reason).channels[:7]
    kept = kept_without(channels, gone)
    assert proven(work, pruned(work, kept), kept, channels, None).differs


def test_shapes_that_do_not_follow_are_an_error() -> None:
    work, _, kept, _ = cut(model(TEXT))
    with pytest.raises(OnnxsmithError, match="the inferred shapes of the pruned model differ"):
        pruned(work, {slot: indices for slot, indices in kept.items() if slot != ("w2", 0)})
