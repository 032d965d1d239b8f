"""`onnxsmith guard`: a good model passes, and each planted fault is found without running the model."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import re
import shlex
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import yaml
from safetensors.numpy import save_file

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.guarded_files import GuardedFiles
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli import application
from onnxsmith.gate.guard import guard
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from tests import documents, gallery
from tests.test_cli import called

ROOT = Path(__file__).parents[2]
HEAD = '<ir_version: 10, opset_import: ["": {}]>\n'
MODEL = HEAD.format(20) + (
    "g (float[n,4] x) => (float[n,2] y) <float[4,2] w = {1,2,3,4,5,6,7,8}> { t = MatMul(x, w) y = Relu(t) }"
)
NORMAL = (
    "g (float[n,2,3] x) => (float[n,2,3] y) <float[2] s = {1,1}, float[2] b = {0,0}, float[2] m = {0,0}, "
    "float[2] v = {1,1}, bool go = {1}, bool no = {0}, float r = {0.5}> {"
)


def found(report: Report) -> list[str]:
    return [one for file in report.part(GuardedFiles).files for one in file.findings]


def model(folder: Path, text: str = MODEL) -> Path:
    save(from_text(text), folder / "m.onnx")
    return folder / "m.onnx"


def with_data(folder: Path, location: str = "m.bin") -> Path:
    """A model whose weights are in another file."""
    proto = onnx.parser.parse_model(MODEL)
    (tensor,) = proto.graph.initializer
    tensor.ClearField("float_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in {"location": location, "offset": "0", "length": "32"}.items():
        tensor.external_data.add(key=key, value=value)
    (folder / "m.bin").write_bytes(np.arange(8, dtype="<f4").tobytes())
    (folder / "m.onnx").write_bytes(proto.SerializeToString())
    return folder / "m.onnx"


def test_good_files(tmp_path: Path) -> None:
    save_file({"a": np.zeros(3, np.float32)}, tmp_path / "w.safetensors")
    (tmp_path / "w.bin").write_bytes(bytes(range(256)))
    report = guard([model(tmp_path), with_data(tmp_path), tmp_path / "w.safetensors", tmp_path / "w.bin"])
    assert report.verdict is Verdict.DONE
    assert [one.kind for one in report.part(GuardedFiles).files] == ["model", "safetensors", "other"]
    assert report.headline == "3 files fit to be committed"


INVALID: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut off": (lambda file: file.write_bytes(file.read_bytes()[:-20]), "model/truncated"),
    "another file": (lambda file: file.write_text("version https://git-lfs.github.com/spec/v1"), "model/garbage"),
    "empty": (lambda file: file.write_bytes(b""), "model/empty"),
    "no operator": (lambda file: file.write_bytes(file.read_bytes().replace(b"Relu", b"Rulu")), "model/invalid"),
    "a tensor": (lambda file: file.write_bytes(file.read_bytes().replace(b"t\x12", b"u\x12")), "model/undefined-input"),
}


@pytest.mark.parametrize("name", INVALID)
def test_an_invalid_model(tmp_path: Path, name: str) -> None:
    file = model(tmp_path)
    change, id_ = INVALID[name]
    change(file)
    report = guard([file])
    assert found(report) == [id_]
    assert report.verdict is Verdict.DIFFERENT
    assert report.verdict.exit_code == 1


def test_data_that_is_missing_or_outside(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for location in ("/etc/passwd", "../m.bin", "none.bin"):
        report = guard([with_data(tmp_path / "in", location)])
        assert found(report) == ["model/external-missing" if location == "none.bin" else "model/external-outside"]
    (tmp_path / "m.bin").write_bytes(bytes(32))
    file = with_data(tmp_path / "in")
    (tmp_path / "in" / "m.bin").unlink()
    (tmp_path / "in" / "m.bin").symlink_to(tmp_path / "m.bin")
    assert found(guard([file])) == ["model/external-outside"]


@pytest.mark.parametrize("location", ["m\0.bin", "a" * 5000, "pipe", "folder"])
def test_a_location_that_no_data_file_has(tmp_path: Path, location: str) -> None:
    """Each is a finding of its file: the other files are judged, and nothing waits for a pipe."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    good = shutil.move(model(tmp_path), tmp_path / "good.onnx")
    report = guard([with_data(tmp_path, location), good])
    judged = {Path(one.path).name: one.findings for one in report.part(GuardedFiles).files}
    expected = "model/external-missing" if len(location) > 10 else "model/external-damaged"
    assert judged == {"m.onnx": (expected,), "good.onnx": ()}


def test_data_behind_a_link_inside_of_the_folder(tmp_path: Path) -> None:
    file = with_data(tmp_path, "link.bin")
    (tmp_path / "link.bin").symlink_to("m.bin")
    assert not found(guard([file]))


def test_size_of_a_file_and_of_its_data(tmp_path: Path) -> None:
    file = with_data(tmp_path)
    assert not found(guard([file], max_size=str(file.stat().st_size)))
    assert found(guard([file], max_size="40")) == ["guard/too-large"]
    (problem,) = guard([file], max_size="40").problems
    assert problem.where == str(file)
    assert found(guard([file], max_size="20")) == ["guard/too-large"] * 2
    assert not found(guard([file], max_size="0"))
    for size in ("100 apples", "-1", ""):
        with pytest.raises(OnnxsmithError) as raised:
            guard([file], max_size=size)
        assert raised.value.problem.id == "guard/bad-size"
        assert "MB" in raised.value.problem.why


def test_units_of_a_size_are_those_of_the_tables(tmp_path: Path) -> None:
    file = tmp_path / "w.bin"
    file.write_bytes(bytes(200_001))
    report = guard([file], max_size="200KB")
    assert found(report) == ["guard/too-large"]
    assert report.problems[0].what == "the file has 200,001 bytes, but 200,000 are allowed"
    assert not found(guard([file], max_size="200KiB"))
    (option,) = re.findall(r"--max-size \w+", report.problems[0].fix)
    assert not found(guard([file], max_size=option.split()[1]))


def archive(name: str) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as opened:
        opened.writestr(name, b"\x80\x02.")
    return written.getvalue()


TRAINS = {
    "dropout": (20, "y = Dropout(x, r, go)", True),
    "dropout that is off": (20, "y = Dropout(x, r, no)", False),
    "dropout without the input": (20, "y = Dropout(x, r)", False),
    "dropout before": (10, "y = Dropout(x)", False),
    "normalization": (20, "y, a, c = BatchNormalization<training_mode = 1>(x, s, b, m, v)", True),
    "normalization that is off": (20, "y = BatchNormalization(x, s, b, m, v)", False),
    "normalization before": (9, "y, a, c, d, e = BatchNormalization(x, s, b, m, v)", True),
    "normalization before that is off": (9, "y = BatchNormalization(x, s, b, m, v)", False),
    "oldest": (6, "y = Dropout<is_test = 0>(x)", True),
    "oldest that is off": (6, "y = Dropout<is_test = 1>(x)", False),
}


@pytest.mark.parametrize("name", TRAINS)
def test_training_mode(tmp_path: Path, name: str) -> None:
    opset, nodes, trains = TRAINS[name]
    text = HEAD.format(opset).replace("ir_version: 10", "ir_version: 4" if opset < 10 else "ir_version: 10")
    report = guard([model(tmp_path, f"{text}{NORMAL} {nodes} }}")])
    assert ("guard/training-mode" in found(report)) == trains, report.problems


LEAKS = ("/home/anna/x.py", "File '/Users/anna/net.py', line 3", "/root/x", r"C:\Users\anna\x.py", "at(/home/a")
NO_LEAKS = (
    "/usr/lib/python3/x.py",
    "https://example.com/home/anna",
    "home/anna",
    "a/home/anna",
    "/homes/x",
    "/opt/root/x",
)


@pytest.mark.parametrize("text", LEAKS + NO_LEAKS)
def test_a_path_in_any_text(tmp_path: Path, text: str) -> None:
    for place in ("model", "metadata", "graph", "node", "node metadata", "value", "value metadata", "attribute"):
        net = from_text(MODEL.replace("Relu(t)", "LeakyRelu<alpha = 0.5>(t)"))
        node = net.graph[1]
        if place == "model":
            net.doc_string = text
        elif place == "metadata":
            net.metadata_props["author"] = text
        elif place == "attribute":
            node.attributes["alpha"].doc_string = text
        else:
            holder = {"graph": net.graph, "node": node, "value": net.graph.inputs[0]}[place.partition(" ")[0]]
            if place.endswith("metadata"):
                holder.metadata_props["trace"] = text
            else:
                holder.doc_string = text
        save(net, tmp_path / "m.onnx")
        assert found(guard([tmp_path / "m.onnx"])) == (["guard/local-path"] if text in LEAKS else []), place


def test_simplified_is_asked_for(tmp_path: Path) -> None:
    file = model(tmp_path, MODEL.replace("y = Relu(t)", "u = Identity(t) v = Relu(u) y = Relu(v)"))
    assert not found(guard([file]))
    report = guard([file], simplified=True)
    assert found(report) == ["guard/not-simplified"]
    assert report.problems[0].what == "`simplify` would remove at least 2 nodes of 4"
    assert not found(guard([model(tmp_path)], simplified=True))


def test_files_that_are_not_there(tmp_path: Path) -> None:
    for files, id_ in (
        ([], "guard/no-file"),
        ([tmp_path], "guard/no-file"),
        ([tmp_path / "m.onnx"], "model/not-found"),
    ):
        with pytest.raises(OnnxsmithError) as raised:
            guard(files)
        assert raised.value.problem.id == id_


def test_the_command(tmp_path: Path) -> None:
    text, status = gallery.called(application.main, ["guard", str(model(tmp_path))])
    assert (status, text.splitlines()[-1]) == (0, "1 file fit to be committed")
    text, status = gallery.called(application.main, ["guard", str(model(tmp_path)), "--max-size", "10"])
    assert status == 1
    assert "guard/too-large" in text


def test_the_command_imports_no_runtime(tmp_path: Path) -> None:
    model(tmp_path)
    code = (
        "import sys\nfrom onnxsmith.cli import application\ntry:\n    application.main()\nfinally:\n"
        "    print(sorted({'torch', 'onnxruntime', 'openvino'} & set(sys.modules)))"
    )
    status, out, err = called("guard", "m.onnx", "--simplified", cwd=tmp_path, code=code)
    assert (status, err) == (0, "")
    assert out.endswith("[]\n")


def hook(folder: Path, *args: str) -> tuple[int, str]:
    """Exit status and output of the hook on what is staged in a repository, as pre-commit calls it."""
    (about,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert {"id", "name", "entry", "language", "files"} <= set(about)
    listing = ["git", "diff", "--staged", "--name-only", "-z"]
    staged = subprocess.run(listing, cwd=folder, check=True, capture_output=True, text=True).stdout.split("\0")
    files = [name for name in staged if name and re.search(about["files"], name)]
    variables = documents.environment(Path(tempfile.mkdtemp(dir=folder.parent)) / "bin", ROOT / "src")
    words = [*shlex.split(about["entry"]), *about.get("args", []), *args, *files]
    done = subprocess.run(words, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_hook_stops_a_commit(tmp_path: Path) -> None:
    folder = tmp_path / "repository"
    (folder / "a folder").mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    model(folder / "a folder")
    (folder / "notes.txt").write_text("/home/anna")
    subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
    assert hook(folder)[0] == 0
    (folder / "weights.pt").write_bytes(archive("weights/data.pkl"))
    subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
    status, text = hook(folder)
    assert status == 1
    assert "1 of 2 files NOT FIT to be committed: weights.pt: guard/pickled" in text


def test_the_hook_stops_a_data_file_that_grew(tmp_path: Path) -> None:
    """Only the data file is staged: the model beside it is as it was."""
    folder = tmp_path / "repository"
    folder.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    with_data(folder)
    commit = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "-m", "first"]
    subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
    subprocess.run(commit, cwd=folder, check=True)
    names = ("m.bin", "m.onnx.data", "m.onnx_data", "m.onnx_data_1", "m.weights", "m.dat")
    for name in names:
        (folder / name).write_bytes(bytes(2000))
    subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
    assert hook(folder)[0] == 0
    status, text = hook(folder, "--max-size", "1000", "--json")
    report = json.loads(text)
    assert status == 1
    assert [(one["id"], one["where"]) for one in report["problems"]] == [
        ("guard/too-large", one) for one in sorted(names)
    ]


def test_the_hook_looks_at_what_may_be_a_pickle(tmp_path: Path) -> None:
    folder = tmp_path / "repository"
    folder.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    content = pickle.dumps({"a": 1})
    for ending in (
        "onnx",
        "pt",
        "pt2",
        "pth",
        "ckpt",
        "pkl",
        "pickle",
        "joblib",
        "npy",
        "npz",
        "dat",
        "bin",
        "safetensors",
    ):
        (folder / f"w.{ending}").write_bytes(content)
    (folder / "w.pkl.gz").write_bytes(gzip.compress(content))
    subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
    status, text = hook(folder, "--json")
    assert status == 1
    assert [one["id"] for one in json.loads(text)["problems"]] == ["guard/pickled"] * 14
