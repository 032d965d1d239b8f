"""`onnxsmith simplify` on what is no valid model: exit status 2, one problem that says what, where and why or what to
do, nothing written, nothing repaired in silence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from typer.testing import CliRunner

import onnxsmith
from onnxsmith.cli.application import app

HEAD = '<ir_version: 10, opset_import: ["": 20]>\n'
GOOD = HEAD + "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { a = Identity(x)\n y = Add(a, w) }"
PAGES = Path(onnxsmith.__file__).parent / "viewer" / "pages"


def proto(text: str = GOOD) -> onnx.ModelProto:
    model: onnx.ModelProto = parser.parse_model(text)
    return model


def of(change: Callable[[onnx.ModelProto], object], text: str = GOOD) -> bytes:
    """A model with something wrong."""
    model = proto(text)
    change(model)
    data: bytes = model.SerializeToString()
    return data


def text(body: str, head: str = HEAD) -> bytes:
    data: bytes = proto(f"{head}g {body}").SerializeToString()
    return data


def outside(location: str, **more: str) -> Callable[[onnx.ModelProto], None]:
    """Says that the weights lie in another file."""

    def change(model: onnx.ModelProto) -> None:
        tensor = model.graph.initializer[0]
        tensor.ClearField("float_data")
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in {"location": location, **more}.items():
            tensor.external_data.add(key=key, value=value)

    return change


def dims(*sizes: int) -> Callable[[onnx.ModelProto], None]:
    return lambda model: (model.graph.initializer[0].ClearField("dims"), model.graph.initializer[0].dims.extend(sizes))[
        0
    ]


BAD: dict[str, tuple[str, bytes]] = {
    "nothing": ("model/empty", b""),
    "garbage": ("model/garbage", bytes(range(1, 200))),
    "a text": ("model/garbage", b"This is a README, not a model.\n" * 9),
    "a JSON file": ("model/garbage", json.dumps({"nodes": []}).encode()),
    "a web page": ("model/garbage", b"<!DOCTYPE html><html><body>404</body></html>"),
    "a zip archive": ("model/garbage", b"PK\x03\x04" + b"x" * 60),
    "a pointer of Git LFS": ("model/garbage", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"),
    "half a model": ("model/truncated", of(lambda m: None)[:-40]),
    "a field that claims two gigabytes": ("model/truncated", b"\x08\x0a\x3a\xff\xff\xff\xff\x07" + b"x" * 50),
    "a model without a graph": ("model/no-graph", b"\x08\x0a"),
    "an empty graph": ("model/no-graph", of(lambda m: m.graph.Clear())),
    "no operator set": ("model/no-opset", of(lambda m: m.ClearField("opset_import"))),
    "two versions of an operator set": ("model/invalid", of(lambda m: m.opset_import.add(version=17))),
    "an operator set of the future": ("model/opset-too-new", of(lambda m: setattr(m.opset_import[0], "version", 999))),
    "a format of the future": ("model/ir-too-new", of(lambda m: setattr(m, "ir_version", 99))),
    "a domain that is not imported": ("model/invalid", of(lambda m: setattr(m.graph.node[0], "domain", "other"))),
    "an operator that there is not": ("model/invalid", of(lambda m: setattr(m.graph.node[0], "op_type", "Nonsense"))),
    "an operator that came later": (
        "model/invalid", text("(float[2] x) => (float[2] y) { y = Gelu(x) }", '<ir_version: 8, opset_import: ["": 17]>')
    ),
    "too few inputs": ("model/invalid", of(lambda m: m.graph.node[1].input.pop())),
    "too many outputs": ("model/invalid", of(lambda m: m.graph.node[1].output.append("z"))),
    "a required attribute is missing": ("model/invalid", text("(float[2] x) => (float[2] y) { y = Cast(x) }")),
    "an attribute of another type": (
        "model/invalid", of(lambda m: m.graph.node[0].attribute.append(helper.make_attribute("axis", "two")),
                            HEAD + "g (float[2] x) => (float[2] y) { y = Softmax(x) }")
    ),
    "an attribute that there is not": (
        "model/invalid", of(lambda m: m.graph.node[0].attribute.append(helper.make_attribute("slope", 1)))
    ),
    "an attribute twice": (
        "model/duplicate-name",
        of(lambda m: m.graph.node[0].attribute.extend([helper.make_attribute("a", 1), helper.make_attribute("a", 2)])),
    ),
    "a cycle": ("model/cyclic", of(lambda m: m.graph.node[0].input.__setitem__(0, "y"))),
    "a value that two nodes make": ("model/duplicate-name", of(lambda m: m.graph.node[1].output.__setitem__(0, "a"))),
    "two inputs of one name": ("model/duplicate-name", of(lambda m: m.graph.input.append(m.graph.input[0]))),
    "two initializers of one name": (
        "model/duplicate-name", of(lambda m: m.graph.initializer.append(m.graph.initializer[0]))
    ),
    "a value that nothing makes": ("model/undefined-input", of(lambda m: m.graph.node[0].input.__setitem__(0, "q"))),
    "weights that are not there": ("model/undefined-input", of(lambda m: m.graph.ClearField("initializer"))),
    "an output that nothing makes": ("model/undefined-output", of(lambda m: setattr(m.graph.output[0], "name", "q"))),
    "an input without a name": ("model/unnamed", of(lambda m: setattr(m.graph.input[0], "name", ""))),
    "weights without numbers": ("model/invalid", of(lambda m: m.graph.initializer[0].ClearField("float_data"))),
    "weights of another shape": ("model/invalid", of(dims(3))),
    "weights of a negative size": ("model/invalid", of(dims(-2))),
    "weights that claim four exabytes": ("model/invalid", of(dims(2**30, 2**30))),
    "weights of no dtype": ("model/invalid", of(lambda m: setattr(m.graph.initializer[0], "data_type", 0))),
    "weights of a dtype that there is not": (
        "model/invalid", of(lambda m: setattr(m.graph.initializer[0], "data_type", 99))
    ),
    "external data that is not there": ("model/external-missing", of(outside("weights.bin"))),
    "external data in the folder above": ("model/external-outside", of(outside("../secret.bin"))),
    "external data at an absolute path": ("model/external-outside", of(outside("/etc/passwd"))),
    "external data that is too short": ("model/external-damaged", of(outside("short.bin"))),
    "external data at a negative offset": ("model/external-damaged", of(outside("short.bin", offset="-4"))),
    "external data at no place": ("model/external-damaged", of(outside(""))),
    "a sparse weight of nothing": ("model/unnamed", of(lambda m: m.graph.sparse_initializer.add())),
    "an If without a branch": (
        "model/invalid",
        text("(float[2] x, bool c) => (float[2] y) { y = If(c) <then_branch = t () => (float[2] p) { p = Neg(x) }> }"),
    ),
    "a branch that gives back what is outside": (
        "model/undefined-output",
        text("(float[2] x, bool c) => (float[2] y) { y = If(c) <then_branch = t () => (float[2] x) { p = Neg(x) },"
             " else_branch = e () => (float[2] q) { q = Abs(x) }> }"),
    ),
    "a function that calls itself": (
        "model/invalid",
        text('(float[2] x) => (float[2] y) { y = f.again(x) } <domain: "f", opset_import: ["": 20, "f": 1]>'
             " again (u) => (v) { v = f.again(u) }", '<ir_version: 10, opset_import: ["": 20, "f": 1]>'),
    ),
    "a function twice": (
        "model/duplicate-name",
        text('(float[2] x) => (float[2] y) { y = f.one(x) } <domain: "f", opset_import: ["": 20]> one (u) => (v) {'
             ' v = Neg(u) } <domain: "f", opset_import: ["": 20]> one (u) => (v) { v = Abs(u) }',
             '<ir_version: 10, opset_import: ["": 20, "f": 1]>'),
    ),
}  # fmt: skip


def simplified(folder: Path, source: str = "in.onnx") -> dict[str, str]:
    """The one problem that the command reports, once it was held to leaving no trace."""
    (folder / "out.onnx").write_text("what was there before")
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    result = CliRunner().invoke(app, ["simplify", str(folder / source), "-o", str(folder / "out.onnx"), "--json"])
    assert result.exit_code == 2, result.output
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
    report = json.loads(result.stdout)
    assert report["verdict"] == "failed"
    assert len(report["problems"]) == 1
    problem: dict[str, str] = report["problems"][0]
    return problem


@pytest.mark.parametrize("case", BAD)
def test_refused(case: str, tmp_path: Path) -> None:
    wanted, data = BAD[case]
    folder = tmp_path / "models"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(b"\0" * 8)
    (folder / "short.bin").write_bytes(b"\0" * 4)
    (folder / "in.onnx").write_bytes(data)
    problem = simplified(folder)
    assert problem["id"] == wanted, problem
    assert problem["what"]
    assert "in.onnx" in problem["where"]
    assert problem["why"] or problem["fix"]
    assert (PAGES / f"{wanted}.md").is_file()


@pytest.mark.parametrize(("source", "wanted"), [("none.onnx", "model/not-found"), ("folder", "model/not-a-file")])
def test_no_file(source: str, wanted: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert simplified(tmp_path, source)["id"] == wanted


def test_every_cut_of_a_model_is_refused_or_valid(tmp_path: Path) -> None:
    """No prefix of a file crashes it, and none is taken for less of a model than it was."""
    model = proto()
    model.graph.initializer.append(numpy_helper.from_array(np.ones(64, np.float32), "v"))
    data = model.SerializeToString()
    for end in range(0, len(data), 7):
        (tmp_path / "in.onnx").write_bytes(data[:end])
        assert simplified(tmp_path)["id"].startswith("model/")


def test_nodes_out_of_order_are_sorted(tmp_path: Path) -> None:
    """Runtimes sort them; the report says that it was done."""
    text = """<ir_version: 8, opset_import: ["": 17]>
        g (float[N] x) => (float[N] y) { a = Relu(x)\n b = Identity(a)\n y = Neg(b) }"""
    proto = onnx.parser.parse_model(text)
    proto.graph.node.insert(0, proto.graph.node[2])
    del proto.graph.node[3]
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    result = onnxsmith.simplify(tmp_path / "m.onnx", output=tmp_path / "s.onnx")
    assert result.ok
    assert [node.op_type for node in onnx.load(tmp_path / "s.onnx").graph.node] == ["Relu", "Neg"]
    assert "were sorted" in result.report.headline


def test_a_model_that_the_runtime_refuses_is_explained() -> None:
    text = """<ir_version: 5, opset_import: ["": 10]>
        g (float[N] x) => (bool[N] y) { a = Identity(x)\n y = Equal(a, x) }"""
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.simplify(onnx.parser.parse_model(text), verify=onnxsmith.Verify(runtime="onnxruntime"))
    assert "--no-verify" in caught.value.problem.fix
    assert "onnxsmith explain" in caught.value.problem.fix
