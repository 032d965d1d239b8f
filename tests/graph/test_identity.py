"""Which model files a report is about: their hashes, before and after a step, with data files and without."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

import onnxsmith
from onnxsmith.base.report.base import ModelFile, Report
from onnxsmith.base.result import Result
from onnxsmith.editor.edit import edit
from onnxsmith.editor.split import split
from onnxsmith.graph import model_identity
from onnxsmith.graph.files import digest
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from tests.conftest import Refused

TEXT = (
    '<ir_version: 10, opset_import: ["": 20]>\n'
    "g (float[2,3] x) => (float[2,3] y) <float[3,3] v = {1,2,3,4,5,6,7,8,9}, float[3,3] w = {9,8,7,6,5,4,3,2,1}> {\n"
    "[first] s = MatMul(x, v)\n[same] t = Identity(s)\n[act] u = Relu(t)\n[second] y = MatMul(u, w) }"
)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    save(from_text(TEXT), tmp_path / "m.onnx")
    return Path("m.onnx")


def report_of(done: Result | Report) -> Report:
    return done.report if isinstance(done, Result) else done


READERS: dict[str, Callable[[Path], Result | Report]] = {
    "inspect": lambda path: onnxsmith.inspect(path),
    "dump": lambda path: onnxsmith.dump(path, runtime="reference"),
    "run": lambda path: onnxsmith.run(path, {"x": np.zeros((2, 3), np.float32)}, runtime="reference"),
    "diff": lambda path: onnxsmith.diff(path, path),
    "check": lambda path: onnxsmith.check(path, ["onnxruntime"]),
    "compare": lambda path: onnxsmith.compare(f"{path}@reference", f"{path}@reference"),
    "bench": lambda path: onnxsmith.bench(path, seconds=0.2),
    "explain": lambda path: onnxsmith.explain("model/not-found", path),
    "view": lambda path: onnxsmith.view(path),
}
WRITERS: dict[str, Callable[[Path], Result | Report]] = {
    "simplify": lambda path: onnxsmith.simplify(path, "new.onnx", verify=False),
    "prune": lambda path: onnxsmith.prune(path, "new.onnx", share=0.4, multiple=1, measure_time=False),
    "quantize": lambda path: onnxsmith.quantize(path, "new.onnx", to="float16", measure_time=False),
    "bisect": lambda path: onnxsmith.bisect(path, "new.onnx"),
    "merge": lambda path: onnxsmith.merge(path, path, "new.onnx", verify=False),
}


@pytest.mark.parametrize("verb", READERS)
def test_what_is_read(model: Path, verb: str) -> None:
    (found,) = report_of(READERS[verb](model)).models
    assert (found.path, found.role, found.sha256) == ("m.onnx", "read", sha256(model))


@pytest.mark.parametrize("verb", WRITERS)
def test_what_is_written(model: Path, verb: str) -> None:
    found = {one.role: one for one in report_of(WRITERS[verb](model)).models}
    assert found["read"].sha256 == sha256(model)
    new = Path("new.onnx")
    assert ("written" in found) == new.exists()
    if new.exists():
        assert found["written"].sha256 == sha256(new)


def test_a_model_that_is_replaced(model: Path) -> None:
    before = sha256(model)
    report = onnxsmith.simplify(model, model, verify=False).report
    assert [(one.role, one.sha256) for one in report.models] == [("read", before), ("written", sha256(model))]
    with edit(model, "edited.onnx", verify=False) as work:
        work.rename("u", "other")
    assert work.result is not None
    assert [one.sha256 for one in work.result.report.models] == [sha256(model), sha256(Path("edited.onnx"))]


def test_the_pieces_of_a_model(model: Path) -> None:
    report = split(model, "pieces", into=2, verify=False).report
    assert [one.role for one in report.models] == ["read", "written", "written"]


def test_a_report_in_json(model: Path) -> None:
    report = onnxsmith.inspect(model)
    assert Report.from_json(report.to_json()) == report
    old = report.to_dict()
    del old["models"]
    assert Report.from_json(json.dumps(old)).models == ()


def test_a_model_without_a_file() -> None:
    assert onnxsmith.inspect(from_text(TEXT)).models == ()


def with_data(folder: Path, last: int = 1) -> ModelFile:
    """A file whose 1,200 bytes of weights lie beside it; the last number is given."""
    folder.mkdir()
    numbers = ",".join(["1"] * 299 + [str(last)])
    head = '<ir_version: 10, opset_import: ["": 20]>'
    text = f"{head} g (float[300] x) => (float[300] y) <float[300] w = {{{numbers}}}> {{ y = Add(x, w) }}"
    save(from_text(text), folder / "m.onnx", external_data=True)
    found = model_identity.model_file(folder / "m.onnx", "read")
    assert found is not None
    return found


def test_data_files(tmp_path: Path) -> None:
    one, same, other = with_data(tmp_path / "1"), with_data(tmp_path / "2"), with_data(tmp_path / "3", last=2)
    (data,) = one.data
    assert (data.name, data.bytes, data.covered) == ("m.onnx.data", 1200, 1200)
    assert data.sha256 == sha256(tmp_path / "1" / "m.onnx.data")
    assert one.same_graph(same)
    assert one.same_weights(same)
    assert one.same_graph(other)
    assert not one.same_weights(other)


def test_a_large_data_file_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest, "_WHOLE", 400)
    monkeypatch.setattr(digest, "_PIECE", 100)
    one = with_data(tmp_path / "1").data[0]
    assert (one.bytes, one.covered) == (1200, 400)
    assert one.sha256 != with_data(tmp_path / "2", last=2).data[0].sha256, "the last piece is read"
    content = bytearray((tmp_path / "1" / "m.onnx.data").read_bytes())
    (tmp_path / "longer").write_bytes(content + content[-4:])
    assert digest.bounded(tmp_path / "longer") != digest.bounded(tmp_path / "1" / "m.onnx.data")


def test_a_data_file_outside_the_folder_is_not_read(tmp_path: Path) -> None:
    with_data(tmp_path / "1")
    file = tmp_path / "1" / "m.onnx"
    file.write_bytes(file.read_bytes().replace(b"m.onnx.data", b"../m.o.data"))
    (tmp_path / "m.o.data").write_bytes(bytes(1200))
    found = model_identity.model_file(file, "read")
    assert found is not None
    assert found.data == ()


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "empty.onnx").touch()
    assert model_identity.model_file(tmp_path / "none.onnx", "read") is None
    assert model_identity.model_file(tmp_path / "empty.onnx", "read") is None
    assert model_identity.read([tmp_path, "x.py:build", None, 3, "\0.onnx"]) == ()


@pytest.mark.parametrize("verb", ["check", "dump", "bench"])
def test_an_invalid_model_is_blamed_for_an_unforeseen_error(tmp_path: Path, verb: str, refused: Refused) -> None:
    """An attribute has the wrong type, which the code that generates inputs does not expect."""
    broken = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 20]>
        g (float[N,3] x) => (bool y) { s = Shape(x)\n b = Cast<to = 9>(s)\n y = ReduceMax(b) }""")
    broken.graph.node[1].attribute[0].CopyFrom(onnx.helper.make_attribute("to", "BOOL"))
    onnx.save(broken, tmp_path / "m.onnx")
    with refused("model/invalid") as refusal:
        READERS[verb](tmp_path / "m.onnx")
    assert "Expected: 'INT', actual: 'STRING'" in refusal.problem.why


def test_contradicting_types_are_blamed(model: Path, refused: Refused) -> None:
    proto = onnx.load(model)
    proto.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.UNDEFINED
    onnx.save(proto, model)
    with refused("model/shape-conflict"):
        onnxsmith.run(model, random=True)


def test_a_valid_model_is_not_blamed(model: Path) -> None:
    @model_identity.identifies("path")
    def verb(path: Path) -> Report:
        raise ValueError(path)

    with pytest.raises(ValueError, match=r"m\.onnx"):
        verb(model)


def test_a_data_file_whose_name_is_no_text_is_a_fault_of_the_file(model: Path, refused: Refused) -> None:
    """Protobuf returns such a name as bytes."""
    proto = onnx.load(model)
    for tensor in proto.graph.initializer:
        tensor.ClearField("raw_data")
        tensor.ClearField("float_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        entry = tensor.external_data.add()
        entry.key, entry.value = "location", "weights"
    Path("ext.onnx").write_bytes(proto.SerializeToString().replace(b"weights", b"\xffeights"))
    with refused("model/invalid"):
        onnxsmith.diff(model, "ext.onnx")
