"""Values are the same to the bit for the same seed, of the right dtype, and inside what the graph allows."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure.signature import Dim, Port, Signature
from onnxsmith.verification.inputs.draw_description import SPREADS, Manner
from onnxsmith.verification.inputs.generate import Feed, Generator
from onnxsmith.verification.inputs.input_ranges import Allowed
from onnxsmith.verification.inputs.shapes import shape_of, size_of
from onnxsmith.verification.inputs.string_inputs import Texts
from tests.conftest import Refused

DTYPES = [d.name.lower() for d in ir.DataType if d != ir.DataType.UNDEFINED]


def generator(*ports: Port, **more: Any) -> Generator:
    return Generator(Signature(ports, ()), **more)


def one(port: Port, *, sizes: dict[str, int] | None = None, seed: int = 0, spread: str = "normal", **more: Any) -> Any:
    return generator(port, **more).feed(sizes or {}, seed=seed, spread=spread).values[port.name]


@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (0,)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_values_are_arrays_of_the_ports_dtype_and_shape(dtype: str, shape: tuple[int, ...]) -> None:
    found = one(Port("x", dtype, shape))
    assert isinstance(found, np.ndarray)
    assert found.shape == shape
    assert found.dtype == (object if dtype == "string" else ir.DataType[dtype.upper()].numpy())


@pytest.mark.parametrize("shape", [(), (1,), (2,), (64,)], ids=str)
@pytest.mark.parametrize("dtype", [name for name in DTYPES if name != "string"])
@pytest.mark.parametrize("seed", range(4))
def test_values_are_not_all_zero(dtype: str, shape: tuple[int, ...], seed: int) -> None:
    assert one(Port("x", dtype, shape), seed=seed).astype(np.complex128).any()


@pytest.mark.parametrize("dtype", [name for name in DTYPES if name != "string"])
def test_values_are_finite(dtype: str) -> None:
    assert np.isfinite(one(Port("x", dtype, (200,))).astype(np.complex128)).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_same_seed_gives_the_same_values(dtype: str) -> None:
    first, second = (one(Port("x", dtype, (20,)), seed=7) for _ in range(2))
    assert first.tolist() == second.tolist()
    if dtype != "string":
        assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("dtype", ["float", "int64", "bool", "string"])
def test_another_seed_gives_other_values(dtype: str) -> None:
    first, second = (one(Port("x", dtype, (40,)), seed=seed) for seed in (1, 2))
    assert first.tolist() != second.tolist()


@pytest.mark.parametrize("dtype", ["float", "int64", "bool", "string"])
def test_two_inputs_do_not_get_the_same_values(dtype: str) -> None:
    values = generator(Port("x", dtype, (40,)), Port("z", dtype, (40,))).feed({}).values
    assert values["x"].tolist() != values["z"].tolist()


def test_values_do_not_depend_on_other_inputs() -> None:
    alone = one(Port("x", "float", (5,)))
    together = generator(Port("a", "float", (3,)), Port("x", "float", (5,))).feed({}).values["x"]
    assert alone.tolist() == together.tolist()


def test_values_stay_the_same_from_version_to_version() -> None:
    assert one(Port("x", "float", (2,))).tolist() == pytest.approx([-0.64854, 1.08172], abs=2e-5)
    assert one(Port("x", "int64", (6,))).tolist() == one(Port("x", "int32", (6,))).tolist()


# Kinds


def test_a_sequence_has_two_different_elements() -> None:
    found = one(Port("x", "float", ("n",), kind="sequence"), sizes={"n": 3})
    assert [value.shape for value in found] == [(3,), (3,)]
    assert found[0].tolist() != found[1].tolist()


def test_an_optional_and_a_default_are_left_out() -> None:
    ports = (Port("o", "float", (1,), kind="optional"), Port("w", "float", (1,), default=True), Port("x", "float", ()))
    assert list(generator(*ports).feed({}).values) == ["x"]


# Limits


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint8", "uint64"])
@pytest.mark.parametrize(("low", "high"), [(0, 9), (3, 3), (100, 109), (0, 0), (5, 127)])
def test_integers_stay_inside_their_limits(dtype: str, low: int, high: int) -> None:
    found = one(Port("x", dtype, (300,)), allowed={"x": Allowed(low, high)})
    assert low <= found.min() <= found.max() <= high


def test_negative_limits_are_kept() -> None:
    found = one(Port("x", "int64", (100,)), allowed={"x": Allowed(-20, -11)})
    assert set(found.tolist()) == set(range(-20, -10))


@pytest.mark.parametrize("dtype", ["uint8", "uint4", "int4", "int2", "uint2", "int8"])
def test_limits_beyond_the_dtype_are_cut(dtype: str) -> None:
    kind = ir.DataType[dtype.upper()]
    least, most = (kind.min, kind.max)
    found = one(Port("x", dtype, (300,)), allowed={"x": Allowed(-1000, 1000)}).astype(int)
    assert least <= found.min() <= found.max() <= most
    assert len(set(found.tolist())) > 1


def test_choices_are_the_only_values() -> None:
    found = one(Port("x", "int64", (50,)), allowed={"x": Allowed(8, 17, (8, 16, 17))})
    assert set(found.tolist()) == {8, 16, 17}


def test_a_chosen_value_fills_the_input() -> None:
    made = generator(Port("x", "int64", (3,)), allowed={"x": Allowed(8, 16, (8, 16))})
    assert made.choices() == {"x": (8, 16)}
    assert made.feed({}, chosen={"x": 16}).values["x"].tolist() == [16, 16, 16]


def test_texts_are_those_that_the_model_knows() -> None:
    assert set(one(Port("x", "string", (50,)), texts={"x": Texts((("cat",), ("dog",)))}).tolist()) == {"cat", "dog"}


def test_a_model_limits_its_own_inputs() -> None:
    model = from_text(
        '<ir_version: 10, opset_import: ["": 20]>\n'
        "g (int64[n] i, float[n] x, string[n] s, bool[n] b, int64[1] d) => (float[n] y)"
        " <float[3] table = {1, 2, 3}, int64[1] d = {5}> { g = Gather(table, i)\n y = Add(g, x) }"
    )
    made = Generator.for_model(model)
    assert made.allowed == {"i": Allowed(0, 2, (), "Gather")}
    assert ("Straße",) in made.texts["s"].grams
    assert set(made.feed({"n": 40}).values["i"].tolist()) == {0, 1, 2}


# Spreads and examples


@pytest.mark.parametrize(("spread", "low", "high"), [("normal", -9, 9), ("unit", 0, 1), ("positive", 1, 2)])
def test_a_spread_has_its_range(spread: str, low: float, high: float) -> None:
    found = one(Port("x", "float", (2000,)), spread=spread)
    assert low <= found.min() < found.max() <= high
    assert bool(found.min() < -1) is (spread == "normal")
    assert spread in SPREADS


def test_floats_follow_an_example() -> None:
    example = np.linspace(10, 20, 50, dtype=np.float32)
    found = one(Port("x", "float", (500,)), examples={"x": example})
    assert 10 <= found.min() < 14 < 16 < found.max() <= 20


def test_integers_follow_an_example_where_the_graph_limits_nothing() -> None:
    example = np.array([100, 102])
    assert set(one(Port("x", "int64", (50,)), examples={"x": example}, allowed={}).tolist()) == {100, 101, 102}
    limited = one(Port("x", "int64", (50,)), examples={"x": example}, allowed={"x": Allowed(0, 3, (), "Gather")})
    assert limited.max() <= 3


@pytest.mark.parametrize(
    "example", [np.array([]), np.array([5.0]), np.array([5.0, 5.0]), np.full(3, np.nan), np.array([np.inf, np.nan])]
)
def test_an_example_that_says_nothing_is_passed_over(example: np.ndarray) -> None:
    assert one(Port("x", "double", (5,)), examples={"x": example}).tolist() == one(Port("x", "double", (5,))).tolist()


def test_gaps_in_an_example_are_passed_over() -> None:
    found = one(Port("x", "double", (50,)), examples={"x": np.array([1.0, np.nan, 2.0, np.inf])})
    assert 1 <= found.min() < found.max() <= 2


# Sizes


@pytest.mark.parametrize(
    ("dim", "size"),
    [(4, 4), ("n", 6), ("x.0", 3), ("2*n", 12), ("n + m", 8), ("n/2", 3), ("floor(n/4)", 1), ("n//4", 1), ("a-b", 9)],
)
def test_a_dimension_is_worth_its_size(dim: Dim, size: int) -> None:
    assert size_of(dim, {"n": 6, "m": 2, "x.0": 3, "a-b": 9}) == size


@pytest.mark.parametrize(
    "dim", ["nobody", "n + nobody", "n - 7", "n/4", "batch size", "?", "n n", "((", ")", "", "1/0", "n;"]
)
def test_a_dimension_without_a_size_is_told(dim: str, refused: Refused) -> None:
    with refused("feeds/unknown-size"):
        size_of(dim, {"n": 6})


def test_an_unknown_rank_is_told(refused: Refused) -> None:
    with refused("feeds/unknown-rank") as refusal:
        shape_of(Port("x", "float", None), {})
    assert "--input 'x=" in refusal.problem.fix


def test_a_feed_says_how_it_came_about() -> None:
    port = Port("x", "int64", ("n",))
    feed = generator(port).feed({"n": 2}, seed=3, spread="unit", chosen={"x": 1})
    assert isinstance(feed, Feed)
    assert (feed.label, feed.sizes) == ("n=2, x:=1, seed 3, unit", {"n": 2})


def test_examples_of_the_largest_numbers_are_followed() -> None:
    port = Port("x", "double", (100,))
    example = np.array([1.7e308, -1.6e308, 0.0, 1e-310])
    feed = Generator(Signature((port,), ()), examples={"x": example}).feed({}, seed=0)
    values = feed.values["x"]
    assert np.isfinite(values).all()
    assert np.abs(values).max() > 1e307


@pytest.mark.parametrize("nodes", ["y = Sub(one, x)", "y = Div(one, x)", "c = Cast<to = 9>(x)\n y = Not(c)"])
def test_floats_are_no_masks_and_no_counts(nodes: str) -> None:
    dtype = "bool" if "Not" in nodes else "float"
    graph = f"g (float[n,m] x) => ({dtype}[n,m] y) <float one = {{1}}> {{ {nodes} }}"
    model = from_text(f'<ir_version: 10, opset_import: ["": 20]>\n{graph}')
    found = Generator.for_model(model).feed({"n": 4, "m": 6}).values["x"]
    assert len(set(found.ravel().tolist())) == 24
    assert found.min() < 0


def test_floats_that_become_indices_stay_inside() -> None:
    model = from_text(
        '<ir_version: 10, opset_import: ["": 20]>\n'
        "g (float[n] x, float[m,2] t) => (float[n,2] y) { c = Cast<to = 7>(x)\n y = Gather(t, c) }"
    )
    found = Generator.for_model(model).feed({"n": 90, "m": 3}).values["x"]
    assert 0 <= found.min() < 1 < 2 < found.max() < 3


@pytest.mark.parametrize(("spread", "low", "high"), [("large", 8, 60), ("small", 1e-3, 1e-2)])
def test_a_feed_has_other_magnitudes(spread: str, low: float, high: float) -> None:
    found = np.abs(one(Port("x", "float", (900,)), spread=spread))
    assert low < found.max() < high


def test_corners_that_index_are_whole_and_in_order() -> None:
    model = from_text(
        '<ir_version: 10, opset_import: ["": 20]> g (int64[n,4] x) => (float[n,2] y) '
        f"<float[9,2] t = {{{','.join(['0'] * 18)}}}, int64 a = {{0}}, int64 b = {{2}}> "
        "{ l = Gather<axis = 1>(x, a) h = Gather<axis = 1>(x, b) s = Sub(h, l) p = Gather(t, s) q = Gather(t, l) "
        "y = Add(p, q) }"
    )
    boxes = Generator.for_model(inferred(model)[0]).feed({"n": 40}).values["x"]
    assert 0 <= boxes.min() <= boxes.max() <= 8
    assert (boxes[:, 2] >= boxes[:, 0]).all()
    assert (boxes[:, 2] > boxes[:, 0]).any()


def test_values_are_missing_where_the_graph_puts_others_in_their_place() -> None:
    model = from_text(
        '<ir_version: 10, opset_import: ["": 20, "ai.onnx.ml": 3]> g (float[n,3] x) => (float[n,3] y) '
        "{ y = ai.onnx.ml.Imputer<imputed_value_floats = [1.0]>(x) }"
    )
    made = Generator.for_model(model)
    assert np.isnan(made.feed({"n": 20}, manner=Manner("edges")).values["x"]).any()
    assert not np.isnan(made.feed({"n": 20}).values["x"]).any()


def test_an_age_lies_on_both_sides_of_its_limit() -> None:
    model = from_text(
        '<ir_version: 10, opset_import: ["": 20]> g (float[n] x) => (bool[n] y) <float k = {18}> { y = Less(x, k) }'
    )
    drawn = Generator.for_model(model).feed({"n": 60}).values["x"]
    assert (drawn > 18).sum() > 5
    assert (drawn < 18).sum() > 5


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int2", "uint2"])
def test_integers_of_less_than_a_byte(dtype: str) -> None:
    text = f"g ({dtype}[n,64] x) => (float[n,64] y) {{ y = Cast<to = 1>(x) }}"
    model = from_text(f'<ir_version: 13, opset_import: ["": 25]> {text}')
    info = ml_dtypes.iinfo(dtype)
    for seed in range(4):
        values = Generator.for_model(model).feed({"n": 3}, seed=seed).values["x"]
        assert isinstance(values, np.ndarray)
        assert str(values.dtype) == dtype
        assert info.min <= values.astype(int).min() < values.astype(int).max() <= info.max
