"""Every runtime of ONNX models keeps what `runtimes/base.py` promises."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.base import rooms
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.runtimes.base import Options, Program, Runtime, Session, Value, default, get
from tests.conftest import Refused

HEAD = '<ir_version: 10, opset_import: ["": 20]>\n'
ALL = rooms.members("onnxsmith.runtimes", Runtime)
ELSEWHERE = ("iree", "web")
"""Those that the extra `dev` does not install: their tests in tests/runtimes skip with the reason."""
ALL = {name: runtime for name, runtime in ALL.items() if name not in ELSEWHERE or runtime.missing() is None}
ONNX = [name for name in ALL if not name.startswith("torch-")]
REAL = [name for name in ONNX if name != "fake"]
PARTIAL = ("iree", "openvino", "tract", "web")
WHOLE = [name for name in REAL if name not in PARTIAL]
"""Those that take all of ONNX; what the others take is in a test of their own in tests/runtimes."""
TWO = HEAD + "g (float[n,3] x, float[n] z) => (float[n,3] y, float[n] u) { y = Abs(x)\n u = Neg(z) }"


def model(body: str, *, opset: int = 20) -> ir.Model:
    return from_text(f'<ir_version: 10, opset_import: ["": {opset}]>\ng {body}')


@pytest.fixture(scope="module")
def sessions() -> Iterator[dict[str, Session]]:
    """A session of every runtime for the model `TWO`."""
    made = {name: get(name).prepare(from_text(TWO)) for name in ONNX}
    yield made
    for session in made.values():
        session.close()


def floats(*shape: int) -> np.ndarray:
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def run(name: str, source: ir.Model | Path, **feeds: Value) -> dict[str, Value]:
    with get(name).prepare(source) as session:
        return session.run(feeds)


def array(value: Value) -> np.ndarray:
    assert isinstance(value, np.ndarray)
    return value


def same(found: Value, wanted: Value) -> None:
    """Equal in kind, dtype, shape and value."""
    assert type(found) is type(wanted)
    if isinstance(found, list) and isinstance(wanted, list):
        for one, other in zip(found, wanted, strict=True):
            same(one, other)
    elif wanted is not None:
        assert (array(found).dtype, array(found).shape) == (array(wanted).dtype, array(wanted).shape)
        assert array(found).tolist() == array(wanted).tolist()


# The room


def test_the_runtimes_are_these() -> None:
    assert {"fake", "onnxruntime", "reference", "torch-eager"} <= set(ALL)


@pytest.mark.parametrize("name", ALL)
def test_a_runtime_says_what_it_is(name: str) -> None:
    assert ALL[name].title
    missing = ALL[name].missing()
    if ALL[name].package == "torch" and find_spec("torch") is None:
        assert missing is not None
        assert missing.id == "runtime/not-installed"
    else:
        assert missing is None


def test_an_unknown_name_is_refused_with_the_known_ones(refused: Refused) -> None:
    with refused("runtime/unknown") as refusal:
        get("nobody")
    assert "onnxruntime" in refusal.problem.fix


@pytest.mark.parametrize(("name", "module"), [("onnxruntime", "onnxruntime"), ("torch-eager", "torch")])
def test_what_is_not_installed_is_told(
    name: str, module: str, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    where = type(ALL[name]).__module__
    monkeypatch.setattr(f"{where}.find_spec", lambda asked: None if asked == module else object())
    with refused("runtime/not-installed") as refusal:
        get(name)
    assert "pip install" in refusal.problem.fix


def test_the_default_is_onnxruntime_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert default() == "onnxruntime"
    monkeypatch.setattr("onnxsmith.runtimes.onnxruntime.find_spec", lambda _: None)
    assert default() == "reference"


# Sessions


@pytest.mark.parametrize("name", ONNX)
def test_outputs_come_by_name_in_the_models_order(name: str, sessions: dict[str, Session]) -> None:
    outputs = sessions[name].run({"z": floats(2), "x": floats(2, 3)})
    assert list(outputs) == ["y", "u"]
    assert (array(outputs["y"]).shape, array(outputs["u"]).dtype) == ((2, 3), np.float32)


@pytest.mark.parametrize("name", ONNX)
def test_a_session_knows_its_signature_and_provider(name: str, sessions: dict[str, Session]) -> None:
    assert [port.name for port in sessions[name].signature.inputs] == ["x", "z"]
    assert sessions[name].provider


@pytest.mark.parametrize("name", ONNX)
def test_outputs_are_the_callers_own(name: str) -> None:
    given = floats(3)
    with get(name).prepare(
        model("(float[3] x) => (float[3] y, float[2] w) <float[2] w = {1, 2}> { y = Identity(x) }")
    ) as s:
        before = {key: array(value).copy() for key, value in s.run({"x": given}).items()}
        for value in s.run({"x": given}).values():
            array(value)[:] = 77
        after = s.run({"x": given})
    assert 77 not in given
    for key, value in after.items():
        same(value, before[key])


@pytest.mark.parametrize("name", ONNX)
def test_feeds_are_left_as_they_were(name: str, sessions: dict[str, Session]) -> None:
    feeds = {"x": floats(2, 3), "z": floats(2)}
    copies = {key: value.copy() for key, value in feeds.items()}
    sessions[name].run(feeds)
    for key, value in feeds.items():
        same(value, copies[key])


@pytest.mark.parametrize("name", ONNX)
def test_closing_twice_is_fine(name: str) -> None:
    session = get(name).prepare(from_text(TWO))
    session.close()
    session.close()


@pytest.mark.parametrize("name", ONNX)
def test_leaving_the_block_closes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Session] = []
    with get(name).prepare(from_text(TWO)) as session:
        original = type(session).close
        monkeypatch.setattr(type(session), "close", lambda self: (closed.append(self), original(self)))
    assert closed == [session]


@pytest.mark.parametrize("name", ONNX)
@pytest.mark.parametrize("suffix", [".onnx", ".onnxtxt"])
def test_a_model_may_lie_on_disk(name: str, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"m{suffix}"
    path.write_text(TWO) if suffix == ".onnxtxt" else save(from_text(TWO), path)
    assert list(run(name, path, x=floats(1, 3), z=floats(1))) == ["y", "u"]


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("hold", [False, True])
def test_a_model_may_have_external_data(name: str, tmp_path: Path, hold: bool) -> None:
    weights = np.arange(1000, dtype=np.float32)
    source = model("(float[1000] x, float[1000] w) => (float[1000] y) { y = Add(x, w) }")
    source.graph.inputs[1].const_value = ir.Tensor(weights, name="w")
    source.graph.register_initializer(source.graph.inputs[1])
    save(source, tmp_path / "m.onnx", external_data=True)
    loaded = load(tmp_path / "m.onnx")
    held = loaded.graph.initializers["w"].const_value.numpy() if hold else None
    found = run(name, loaded if hold else tmp_path / "m.onnx", x=np.ones(1000, np.float32))
    np.testing.assert_array_equal(array(found["y"]), weights + 1)
    assert held is None or held[1] == 1


@pytest.mark.parametrize("name", ONNX)
def test_a_program_is_the_wrong_source(name: str, refused: Refused) -> None:
    class Odd(Program):
        pass

    with refused("runtime/wrong-source"):
        get(name).prepare(Odd())


def test_a_provider_that_a_runtime_has_not_is_refused(refused: Refused) -> None:
    with refused("runtime/provider-missing"):
        get("reference").prepare(from_text(TWO), Options(provider="cuda"))


# Feeds


GOOD = {"x": floats(2, 3), "z": floats(2)}


@pytest.mark.parametrize("name", ONNX)
@pytest.mark.parametrize(
    ("feeds", "problem_id"),
    [
        ({"x": GOOD["x"]}, "run/missing-input"),
        ({}, "run/missing-input"),
        (GOOD | {"w": floats(1)}, "run/unknown-input"),
        (GOOD | {"x": floats(2, 3).astype(np.float64)}, "run/wrong-dtype"),
        (GOOD | {"x": floats(2, 3).astype(np.int32)}, "run/wrong-dtype"),
        (GOOD | {"x": floats(2, 3).astype(">f4")}, "run/wrong-dtype"),
        (GOOD | {"x": np.array([["a", "b", "c"]] * 2)}, "run/wrong-dtype"),
        (GOOD | {"x": floats(2, 3, 1)}, "run/wrong-shape"),
        (GOOD | {"x": floats(3)}, "run/wrong-shape"),
        (GOOD | {"x": np.array(1, np.float32)}, "run/wrong-shape"),
        (GOOD | {"x": floats(2, 4)}, "run/wrong-shape"),
        (GOOD | {"x": [[1.0, 2.0, 3.0]] * 2}, "run/not-an-array"),
        (GOOD | {"x": np.float32(1)}, "run/not-an-array"),
        (GOOD | {"x": None}, "run/not-an-array"),
    ],
)
def test_feeds_that_do_not_fit_are_refused(
    name: str, feeds: dict[str, Value], problem_id: str, sessions: dict[str, Session], refused: Refused
) -> None:
    with refused(problem_id):
        sessions[name].run(feeds)


def test_the_fake_gives_a_symbol_one_size(sessions: dict[str, Session], refused: Refused) -> None:
    with refused("run/dimension-conflict"):
        sessions["fake"].run(GOOD | {"z": floats(3)})


@pytest.mark.parametrize("name", WHOLE)
def test_a_symbol_may_have_two_sizes_where_the_nodes_take_them(name: str, refused: Refused) -> None:
    joined = model("(float[n] x, float[n] z) => (float[m] y) { y = Concat<axis=0>(x, z) }")
    assert array(run(name, joined, x=floats(2), z=floats(5))["y"]).shape == (7,)
    added = model("(float[n] x, float[n] z) => (float[n] y) { y = Add(x, z) }")
    with refused("run/dimension-conflict"):
        run(name, added, x=floats(2), z=floats(5))


@pytest.mark.parametrize("name", ONNX)
def test_a_session_goes_on_after_it_refused(name: str, sessions: dict[str, Session], refused: Refused) -> None:
    with refused("run/missing-input"):
        sessions[name].run({})
    assert list(sessions[name].run(GOOD)) == ["y", "u"]


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize(("given", "wanted"), [({}, [3, 4]), ({"w": np.array([5, 6], np.float32)}, [6, 7])])
def test_a_default_may_be_overridden(name: str, given: dict[str, Value], wanted: list[float]) -> None:
    source = model("(float[2] x, float[2] w) => (float[2] y) <float[2] w = {2, 3}> { y = Add(x, w) }")
    assert array(run(name, source, x=np.ones(2, np.float32), **given)["y"]).tolist() == wanted


@pytest.mark.parametrize("name", [*WHOLE, "fake"])
@pytest.mark.parametrize(
    ("given", "problem_id"),
    [
        (floats(2), "run/not-an-array"),
        ([[1.0, 2.0]], "run/not-an-array"),
        ([floats(2).astype(np.float64)], "run/wrong-dtype"),
        (None, "run/not-an-array"),
    ],
)
def test_sequences_that_do_not_fit_are_refused(name: str, given: Value, problem_id: str, refused: Refused) -> None:
    source = model("(seq(float[n]) s) => (int64 y) { y = SequenceLength(s) }")
    with get(name).prepare(source) as session, refused(problem_id):
        session.run({"s": given})


@pytest.mark.parametrize("name", [*WHOLE, "fake"])
def test_objects_are_no_strings(name: str, refused: Refused) -> None:
    source = model("(string[n] x) => (string[n] y) { y = Identity(x) }")
    with get(name).prepare(source) as session, refused("run/wrong-dtype"):
        session.run({"x": np.array(["a", 5], dtype=object)})


# Values


def made(dtype: type, *values: float) -> np.ndarray:
    return np.array(values, np.float64).astype(dtype)


NATIVE = [
    np.float32, np.float64, np.float16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32,
    np.uint64, np.bool_,
]  # fmt: skip
RAW = [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
"""What onnxruntime takes and gives as bits only."""


def called(dtype: type) -> str:
    return ir.DataType.from_numpy(np.dtype(dtype)).name.lower()


@pytest.fixture(scope="module")
def passing() -> Iterator[dict[tuple[str, str], Session]]:
    """Sessions of models that give their inputs back, whatever their rank: of every dtype, and of strings."""
    groups = {"native": [called(d) for d in NATIVE], "raw": [called(d) for d in RAW], "string": ["string"]}
    made = {}
    for group, dtypes in groups.items():
        ins, outs = (", ".join(f"{dtype}[] {letter}_{dtype}" for dtype in dtypes) for letter in "xy")
        nodes = "\n".join(f"y_{dtype} = Identity(x_{dtype})" for dtype in dtypes)
        for name in WHOLE:
            made[name, group] = get(name).prepare(model(f"({ins}) => ({outs}) {{ {nodes} }}"))
    yield made
    for session in made.values():
        session.close()


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("shape", [(3,), (), (0,), (3, 1)], ids=str)
@pytest.mark.parametrize("group", ["native", "raw"])
def test_values_of_every_dtype_pass_through(
    name: str, group: str, shape: tuple[int, ...], passing: dict[tuple[str, str], Session]
) -> None:
    dtypes = NATIVE if group == "native" else RAW
    given = {called(dtype): made(dtype, 1, 0, 3)[: int(np.prod(shape))].reshape(shape) for dtype in dtypes}
    found = passing[name, group].run({f"x_{key}": value for key, value in given.items()})
    for key, value in given.items():
        same(found[f"y_{key}"], value)


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize(
    "given",
    [
        np.array(["a", "Straße", ""], dtype=object),
        np.array([["a"], ["b"]], dtype=object),
        np.array("alone", dtype=object),
        np.array([], dtype=object),
        np.array(["a", "bc"]),
        np.array([b"a", "ß".encode()]),
        np.array([b"a", "ß"], dtype=object),
    ],
    ids=str,
)
def test_strings_pass_through(
    name: str,
    given: np.ndarray,
    passing: dict[tuple[str, str], Session],
) -> None:
    found = array(passing[name, "string"].run({"x_string": given})["y_string"])
    text = [item.decode() if isinstance(item, bytes) else str(item) for item in given.ravel().tolist()]
    assert (found.dtype, found.shape, found.ravel().tolist()) == (object, given.shape, text)


GRAPHS: dict[str, tuple[str, dict[str, Value], dict[str, Value]]] = {
    "to bfloat16": (
        "(float[n] x) => (bfloat16[n] y) { y = Cast<to = 16>(x) }",
        {"x": made(np.float32, 1, -2, 0.125)},
        {"y": made(ml_dtypes.bfloat16, 1, -2, 0.125)},
    ),
    "from bfloat16": (
        "(bfloat16[n] x) => (float[n] y) { y = Cast<to = 1>(x) }",
        {"x": made(ml_dtypes.bfloat16, 1, -2, 0.125)},
        {"y": made(np.float32, 1, -2, 0.125)},
    ),
    "int8": (
        "(int8[n] x) => (int32[n] y) { y = Cast<to = 6>(x) }",
        {"x": made(np.int8, -128, 127)},
        {"y": made(np.int32, -128, 127)},
    ),
    "int4": (
        "(float[n] x) => (int4[n] y) <float one = {1}, int4 zero = {0}> { y = QuantizeLinear(x, one, zero) }",
        {"x": made(np.float32, -8, 7, 3)},
        {"y": made(ml_dtypes.int4, -8, 7, 3)},
    ),
    "uint4": (
        "(float[n] x) => (uint4[n] y) <float one = {1}, uint4 zero = {0}> { y = QuantizeLinear(x, one, zero) }",
        {"x": made(np.float32, 15, 7, 0)},
        {"y": made(ml_dtypes.uint4, 15, 7, 0)},
    ),
    "bool": ("(float[n] x) => (bool[n] y) { y = IsNaN(x) }", {"x": floats(2)}, {"y": np.array([False, False])}),
    "scalar": (
        "(float[n] x) => (float y) { y = ReduceSum<keepdims = 0>(x) }",
        {"x": floats(2)},
        {"y": np.array(0, np.float32)},
    ),
    "several dtypes": (
        ('(float[n] x) => (bfloat16[n] y, string s, int64[1] n) <string s = {"a"}> {\n'
         " y = Cast<to = 16>(x)\n n = Shape(x) }"),
        {"x": made(np.float32, 1)},
        {"y": made(ml_dtypes.bfloat16, 1), "s": np.array("a", dtype=object), "n": np.array([1])},
    ),
    "element of a sequence": (
        "(float[n] x, float[m] z, int64 i) => (float[k] y) { s = SequenceConstruct(x, z)\n y = SequenceAt(s, i) }",
        {"x": floats(2), "z": floats(3), "i": np.array(1)},
        {"y": floats(3)},
    ),
    "sequence out": (
        "(float[n] x, float[m] z) => (seq(float[k]) y) { y = SequenceConstruct(x, z) }",
        {"x": floats(2), "z": floats(3)},
        {"y": [floats(2), floats(3)]},
    ),
    "sequence in": (
        "(seq(float[n]) s) => (int64 y) { y = SequenceLength(s) }",
        {"s": [floats(2), floats(3)]},
        {"y": np.array(2)},
    ),
    "sequence of strings": (
        "(string[n] x) => (seq(string[n]) y) { y = SequenceConstruct(x, x) }",
        {"x": np.array(["a"], dtype=object)},
        {"y": [np.array(["a"], dtype=object)] * 2},
    ),
    "branch": (
        ("(bool c, float[n] x) => (float[n] y) { y = If(c) <then_branch = p () => (float[n] t) { t = Neg(x) },"
         " else_branch = q () => (float[n] f) { f = Identity(x) }> }"),
        {"c": np.array(True), "x": made(np.float32, 1)},
        {"y": made(np.float32, -1)},
    ),
    "loop": (
        ("(int64 n, bool c, float[2] x) => (float[2] y, float[k,2] z) { y, z = Loop(n, c, x) <body = b"
         " (int64 i, bool d, float[2] v) => (bool e, float[2] w, float[2] u) { w = Add(v, v)\n u = Identity(w)\n"
         " e = Identity(d) }> }"),
        {"n": np.array(3), "c": np.array(True), "x": made(np.float32, 1, 2)},
        {"y": made(np.float32, 8, 16), "z": np.array([[2, 4], [4, 8], [8, 16]], np.float32)},
    ),
    "output listed twice": (
        "(float[n] x) => (float[n] y, float[n] y) { y = Neg(x) }",
        {"x": made(np.float32, 1)},
        {"y": made(np.float32, -1)},
    ),
}  # fmt: skip


_TENSORS = {"several dtypes", "sequence out", "sequence in", "sequence of strings"}
"""Graphs that take or give more than tensors of numbers."""
_NARROW = {"to bfloat16", "from bfloat16", "int4", "uint4"}
BEYOND = {
    "iree": _TENSORS | _NARROW | {"element of a sequence", "loop"},
    "openvino": _TENSORS,
    "tract": _TENSORS | _NARROW | {"element of a sequence", "loop"},
    "web": _TENSORS | _NARROW,
}
"""Graphs that a runtime refuses, as its docstring says."""


@pytest.mark.parametrize(
    ("name", "case"), [(name, case) for name in REAL for case in GRAPHS if case not in BEYOND.get(name, ())]
)
def test_every_runtime_gives_the_same(name: str, case: str) -> None:
    body, feeds, wanted = GRAPHS[case]
    found = run(name, model(body, opset=21), **feeds)
    assert list(found) == list(wanted)
    for key, value in wanted.items():
        same(found[key], value)


@pytest.mark.parametrize(("name", "case"), [(name, case) for name in REAL for case in sorted(BEYOND.get(name, ()))])
def test_what_a_runtime_lacks_is_refused(name: str, case: str) -> None:
    body, feeds, _ = GRAPHS[case]
    with pytest.raises(OnnxsmithError) as refusal:
        run(name, model(body, opset=21), **feeds)
    assert refusal.value.problem.id in {"runtime/dtype-unsupported", "runtime/no-kernel", "runtime/unknown-operator"}


@pytest.mark.parametrize("name", REAL)
def test_what_the_kernels_refuse_is_a_problem(name: str, refused: Refused) -> None:
    with get(name).prepare(model("(float[a,b] x, float[c,d] z) => (float[a,d] y) { y = MatMul(x, z) }")) as session:
        with refused("runtime/failed"):
            session.run({"x": floats(2, 3), "z": floats(2, 3)})
        assert array(session.run({"x": floats(2, 2), "z": floats(2, 2)})["y"]).shape == (2, 2)
