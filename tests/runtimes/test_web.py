"""onnxruntime-web gives what onnxruntime gives, or says that it cannot."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.base.system import children
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure.versions import newest
from onnxsmith.runtimes import _web_package
from onnxsmith.runtimes._web_host import NodeError, translate
from onnxsmith.runtimes.base import Options, Session, get
from onnxsmith.runtimes.web import Web
from tests.conftest import Refused

ABSENT = Web().missing()
needs_web = pytest.mark.skipif(ABSENT is not None, reason=f"{ABSENT.what if ABSENT else ''} (make test installs it)")
NATIVE = [
    "bool",
    "double",
    "float",
    "float16",
    "int16",
    "int32",
    "int64",
    "int8",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
]


def model(body: str, *, opset: int = 21) -> ir.Model:
    return from_text(f'<ir_version: 10, opset_import: ["": {opset}]>\ng {body}')


def prepared(body: str) -> Session:
    return get("web").prepare(model(body))


def run(body: str, **feeds: Any) -> dict[str, Any]:
    with prepared(body) as session:
        return session.run(feeds)


def node_of(session: Session) -> int:
    """The process id of the child's node. Beside it there is the guard that ends it with the child."""
    child = session.isolated._child._process.pid  # type: ignore[attr-defined]
    started = Path(f"/proc/{child}/task/{child}/children").read_text().split()
    return int(next(one for one in started if Path(f"/proc/{one}/comm").read_text().strip() != "sh"))


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ends(pid: int) -> bool:
    until = time.monotonic() + 20
    while is_running(pid) and time.monotonic() < until:
        time.sleep(0.05)
    return not is_running(pid)


@needs_web
@pytest.mark.parametrize("shape", [(3,), (0,), (1, 3), ()], ids=str)
def test_dtypes_pass_through(shape: tuple[int, ...]) -> None:
    ins, outs = (", ".join(f"{dtype}[] {letter}_{dtype}" for dtype in [*NATIVE, "string"]) for letter in "xy")
    nodes = "\n".join(f"y_{dtype} = Identity(x_{dtype})" for dtype in [*NATIVE, "string"])
    feeds = {f"x_{d}": np.array([1, 0, 3]).astype(ir.DataType[d.upper()].numpy()) for d in NATIVE}
    feeds["x_string"] = np.array(["a", "", "Straße"], dtype=object)
    feeds = {name: value[: int(np.prod(shape))].reshape(shape) for name, value in feeds.items()}
    found = run(f"({ins}) => ({outs}) {{ {nodes} }}", **feeds)
    for name, value in feeds.items():
        other = found["y" + name[1:]]
        assert (other.dtype, other.shape, other.tolist()) == (value.dtype, value.shape, value.tolist())


@needs_web
def test_64_bits_stay_64_bits() -> None:
    for value in (np.array([-(2**63), 2**53 + 1]), np.array([2**64 - 1], np.uint64)):
        name = ir.DataType.from_numpy(value.dtype).name.lower()
        assert run(f"({name}[n] x) => ({name}[n] y) {{ y = Identity(x) }}", x=value)["y"].tolist() == value.tolist()


@needs_web
def test_outputs_keep_their_order_and_names() -> None:
    x = np.array([1, -2], np.float32)
    found = run(
        """(float[n] x, float[n] unread) => (float[n] z, float[n] x, float[n] y, float[1] w, float[n] z)
    <float[1] w = {5}> {
        y = Abs(x)
        z = Identity(y)
    }""",
        x=x,
        unread=x,
    )
    assert list(found) == ["z", "x", "y", "w"]
    assert {name: value.tolist() for name, value in found.items()} == {
        "z": [1, 2], "x": [1, -2], "y": [1, 2], "w": [5],
    }  # fmt: skip


@needs_web
@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("(bfloat16[n] x) => (bfloat16[n] y) { y = Identity(x) }", "bfloat16"),
        ("(float[n] x) => (seq(float[n]) y) { y = SequenceConstruct(x) }", "returns only tensors"),
        ("(optional(float[n]) x) => (float[n] y) { y = OptionalGetElement(x) }", "returns only tensors"),
    ],
)
def test_what_it_has_not_is_refused(body: str, named: str, refused: Refused) -> None:
    with refused("runtime/dtype-unsupported") as refusal:
        prepared(body)
    assert named in refusal.problem.why


@needs_web
def test_a_default_cannot_be_overridden(refused: Refused) -> None:
    body = "(float[2] x, float[2] w) => (float[2] y) <float[2] w = {2, 3}> { y = Add(x, w) }"
    ones = np.ones(2, np.float32)
    assert run(body, x=ones)["y"].tolist() == [3, 4]
    with refused("runtime/dtype-unsupported"):
        run(body, x=ones, w=ones)


@needs_web
def test_an_operator_that_it_does_not_know(refused: Refused) -> None:
    with refused("runtime/unknown-operator") as refusal:
        get("web").prepare(
            from_text(
                '<ir_version: 10, opset_import: ["": 21, "mine": 1]> g (float[n] x) => (float[n] y) { y = mine.Op(x) }'
            )
        )
    assert refusal.problem.what.startswith("onnxruntime-web does not know")


@needs_web
def test_an_opset_that_is_too_new(refused: Refused) -> None:
    with refused("runtime/opset-unsupported") as refusal:
        get("web").prepare(model("(float[n] x) => (float[n] y) { y = Neg(x) }", opset=newest().opset))
    assert "npm install" in refusal.problem.fix
    assert 20 < Web().newest_opset() < newest().opset


@needs_web
@pytest.mark.parametrize("level", Web.levels)
def test_levels_of_optimisation(level: str) -> None:
    x = np.ones(2, np.float32)
    with prepared("(float[n] x) => (float[n] y) { a = Neg(x)\n y = Neg(a) }") as session:
        assert session.at(level).run({"x": x})["y"].tolist() == x.tolist()


@needs_web
def test_another_device_is_refused(refused: Refused) -> None:
    with refused("runtime/provider-missing"):
        get("web").prepare(model("(float[n] x) => (float[n] y) { y = Neg(x) }"), Options(provider="cuda"))


@needs_web
def test_a_crash_of_node_is_told_and_survived(refused: Refused) -> None:
    with prepared("(float[n] x) => (float[n] y) { y = Neg(x) }") as session:
        os.kill(node_of(session), signal.SIGKILL)
        x = np.ones(2, np.float32)
        with refused("runtime/died"):
            session.run({"x": x})
        np.testing.assert_array_equal(session.run({"x": x})["y"], -x)


@needs_web
def test_an_endless_loop_is_stopped_and_node_ends_with_it(refused: Refused) -> None:
    body = """(int64 n, float[2] x) => (float[2] y) { c = Constant<value_int = 1>()\n d = Cast<to = 9>(c)
    y = Loop(n, d, x) <body = b (int64 i, bool d, float[2] v) => (bool e, float[2] w) { w = Add(v, v)
    e = Identity(d) }> }"""
    with get("web").prepare(model(body), Options(time_limit=30)) as session:
        session.time_limit = 1.0  # type: ignore[attr-defined]
        node = node_of(session)
        with refused("runtime/timeout"):
            session.run({"n": np.array(2**60), "x": np.ones(2, np.float32)})
        assert ends(node)


@needs_web
@pytest.mark.parametrize("size", [100_000, 30_000])
def test_more_memory_than_webassembly_has_is_a_problem(size: int, refused: Refused) -> None:
    body = "(int64[2] s) => (float[a,b] y) { y = ConstantOfShape(s) }"
    with prepared(body) as session:
        with refused("runtime/memory"):
            session.run({"s": np.array([size, size])})
        assert session.run({"s": np.array([2, 3])})["y"].shape == (2, 3)


@needs_web
def test_a_model_that_webassembly_cannot_hold_is_refused_first(
    monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    monkeypatch.setattr("onnxsmith.runtimes.web._LARGEST", 10)
    with refused("runtime/memory"):
        prepared("(float[n] x) => (float[n] y) { y = Neg(x) }")


@needs_web
@pytest.mark.parametrize("folder", ["", "deeper"])
def test_external_data_is_read(folder: str, tmp_path: Path) -> None:
    weights = np.arange(1000, dtype=np.float32)
    source = model("(float[1000] x, float[1000] w) => (float[1000] y) { y = Add(x, w) }")
    source.graph.inputs[1].const_value = ir.Tensor(weights, name="w")
    source.graph.register_initializer(source.graph.inputs[1])
    path = tmp_path / folder / "m.onnx"
    path.parent.mkdir(exist_ok=True)
    save(source, path, external_data=True)
    with get("web").prepare(path) as session:
        np.testing.assert_array_equal(session.run({"x": np.ones(1000, np.float32)})["y"], weights + 1)


def test_messages_name_this_runtime() -> None:
    said = translate(NodeError("Unsupported model IR version: 99, max supported IR version: 13")).problem
    assert (said.id, "npm" in said.fix, "onnxruntime-web" in said.what) == ("runtime/ir-unsupported", True, True)


# Where it is looked for


def placed(root: Path) -> Path:
    folder = root / "node_modules" / "onnxruntime-web"
    (folder / "dist").mkdir(parents=True)
    (folder / "dist" / "ort.wasm.min.mjs").touch()
    (folder / "package.json").write_text('{"version": "1.2.3"}')
    return folder


def test_the_package_is_found_above_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(_web_package.VARIABLE, raising=False)
    folder = placed(tmp_path)
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert _web_package.package() == folder
    assert _web_package.version(folder) == "1.2.3"


def test_the_environment_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    placed(tmp_path / "one")
    monkeypatch.chdir(tmp_path / "one")
    monkeypatch.setenv(_web_package.VARIABLE, str(placed(tmp_path / "two")))
    assert _web_package.package() == tmp_path / "two" / "node_modules" / "onnxruntime-web"
    monkeypatch.setenv(_web_package.VARIABLE, str(tmp_path / "none"))
    assert _web_package.package() is None


@pytest.mark.parametrize(("lacks_node", "named"), [(True, "node and the npm"), (False, "the npm package")])
def test_what_is_not_installed_is_told(
    lacks_node: bool, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    monkeypatch.setenv(_web_package.VARIABLE, str(tmp_path))
    monkeypatch.setattr(_web_package, "node", lambda: None if lacks_node else "node")
    with refused("runtime/not-installed") as refusal:
        get("web")
    assert refusal.problem.what.startswith(named)
    assert "npm install onnxruntime-web" in refusal.problem.fix
    assert ("nodejs.org" in refusal.problem.fix) == lacks_node


def test_looking_for_it_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children.HERE, "start", None)
    Web().missing()
