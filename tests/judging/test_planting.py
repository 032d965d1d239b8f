"""Each fault that the benchmark plants leaves a valid model, and is told apart from noise by no code of onnxsmith."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest
from judging.graphs import Open
from judging.planting import PLANTERS, REVERSED, NoPlace
from judging.running import Runner, feeds
from judging.visible import Original, jittered

CLEAR = 100.0


def model(text: str, **weights: np.ndarray) -> onnx.ModelProto:
    made = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 20]> {text}')
    made.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    return made


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


CONV = (
    model(
        """g (float[1,3,9,9] x) => (float[1,4,9,9] y)
        { a = Conv <pads = [1,1,1,1], kernel_shape = [3,3]> (x, w, b) y = LeakyRelu <alpha = 0.2> (a) }""",
        w=floats(4, 3, 3, 3),
        b=floats(4),
    ),
    {"x": floats(1, 3, 9, 9, seed=1)},
)
ATTENTION = (
    model(
        """g (float[2,4,4] q, float[2,4,4] k) => (float[2,4,4] y)
        { t = Transpose <perm = [0,2,1]> (k) s = MatMul (q, t) m = Mul (s, f) p = Softmax <axis = -1> (m)
          c = MatMul (p, k) d = Sub (c, q) n = LayerNormalization <epsilon = 0.01> (d, g0, b0)
          e = Slice (n, i1, i3, i1) h = Gather <axis = 1> (n, i2) j = Concat <axis = 1> (e, h) z = Round (j)
          y = Add (z, j) }""",
        f=np.array(0.5, np.float32),
        g0=floats(4),
        b0=floats(4),
        i1=np.array([1]),
        i3=np.array([3]),
        i2=np.array([0, 2]),
    ),
    {"q": floats(2, 4, 4, seed=2), "k": 2 * floats(2, 4, 4, seed=3)},
)
QUANTIZED = (
    model(
        """g (float[3,8] x) => (float[3,5] y)
        { q = QuantizeLinear (x, s, z) d = DequantizeLinear (q, s, z) v = DequantizeLinear (w, r, o)
          y = MatMul (d, v) }""",
        s=np.array(0.02, np.float32),
        z=np.array(3, np.int8),
        w=np.random.default_rng(4).integers(-120, 120, (8, 5)).astype(np.int8),
        r=np.array(0.01, np.float32),
        o=np.array(0, np.int8),
    ),
    {"x": floats(3, 8, seed=5)},
)
PLACES = {
    "weight/random-sign": CONV,
    "weight/scaled": CONV,
    "weight/channel": CONV,
    "weight/bias-lost": CONV,
    "wiring/swapped-operands": ATTENTION,
    "wiring/swapped-parts": ATTENTION,
    "wiring/axis": ATTENTION,
    "wiring/permutation": ATTENTION,
    "wiring/gather-index": ATTENTION,
    "wiring/slice-off-by-one": ATTENTION,
    "cast/half": ATTENTION,
    "cast/whole": ATTENTION,
    "parameter/epsilon": ATTENTION,
    "parameter/pad": CONV,
    "parameter/dilation": CONV,
    "parameter/activation": CONV,
    "parameter/scale-lost": ATTENTION,
    "parameter/rounding": ATTENTION,
    "quantization/weight-scaled": QUANTIZED,
    "quantization/scale": QUANTIZED,
    "quantization/zero-point": QUANTIZED,
}


def planted(kind: str, attempt: int) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """Original and faulty model."""
    given = PLACES[kind][0]
    changed = onnx.ModelProto()
    changed.CopyFrom(given)
    PLANTERS[kind](Open(changed), np.random.default_rng(attempt))
    return (changed, given) if kind in REVERSED else (given, changed)


def test_every_planter_is_tried() -> None:
    assert set(PLACES) == set(PLANTERS)


@pytest.mark.parametrize("kind", PLANTERS)
def test_planted_fault_is_valid_and_visible(kind: str) -> None:
    found = []
    for attempt in range(6):
        original, faulty = planted(kind, attempt)
        try:
            onnx.checker.check_model(faulty, full_check=True)
            found.append(Original(original, list(feeds(PLACES[kind][1], 3, 0))).seen(faulty, CLEAR).status)
        except Exception:  # noqa: BLE001 — a place that changes a shape that others rely on is invalid, and another one is tried
            found.append("invalid")
    assert "visible" in found, found


def test_the_same_seed_plants_the_same_fault() -> None:
    one, other = planted("weight/random-sign", 3)[1], planted("weight/random-sign", 3)[1]
    assert one.SerializeToString() == other.SerializeToString()
    assert one.SerializeToString() != planted("weight/random-sign", 4)[1].SerializeToString()


@pytest.mark.parametrize("kind", PLANTERS)
def test_no_place(kind: str) -> None:
    with pytest.raises(NoPlace):
        PLANTERS[kind](Open(model("g (bool[2] x) => (bool[2] y) { y = Not (x) }")), np.random.default_rng(0))


def test_what_is_not_changed_is_not_visible() -> None:
    given, feed = CONV
    original = Original(given, list(feeds(feed, 3, 0)))
    assert original.seen(given, CLEAR).ratio == 0.0
    moved = original.seen(jittered(given, np.random.default_rng(9)), CLEAR)
    assert moved.status == "invisible"
    assert 0 < moved.ratio < 5


def test_values_that_are_gone_are_visible() -> None:
    given, feed = CONV
    changed = onnx.ModelProto()
    changed.CopyFrom(given)
    opened = Open(changed)
    opened.set("b", np.full(4, np.nan, np.float32))
    assert Original(given, [feed]).seen(changed, CLEAR).ratio == np.inf


def test_feeds_differ_and_keep_to_the_values_of_the_example() -> None:
    example = {
        "x": floats(2, 5),
        "ids": np.array([[3, 9, 4, 7, 5]]),
        "mask": np.array([1, 1, 0, 1, 0]),
        "n": np.array(7),
    }
    first, second, third = feeds(example, 3, 0)
    assert all(np.array_equal(first[name], example[name]) for name in example)
    assert not np.array_equal(second["x"], third["x"])
    for feed in (second, third):
        assert feed["x"].dtype == np.float32
        assert 3 <= feed["ids"].min() <= feed["ids"].max() <= 9
        assert feed["mask"].sum() == 3
        assert feed["n"] == 7
    assert Runner(CONV[0]).run(CONV[1])["y"].shape == (1, 4, 9, 9)
