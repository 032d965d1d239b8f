"""The folder in which the commands of `stops` run, and what a reader finds of their outputs."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDE = 1000
"""Sets the width of the hidden layers: each model has 4 MB of external data."""
NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.wide = nn.Linear(8, {wide})
        self.deep = nn.Linear({wide}, {wide})
        self.fc = nn.Linear({wide}, 4)

    def forward(self, x):
        return self.fc(self.deep(self.wide(torch.relu(self.conv(x)).mean((2, 3)))))

def build():
    torch.manual_seed({seed})
    return Net().eval(), (torch.randn(2, 3, 8, 8),)
"""
HEAD = '<ir_version: 10, opset_import: ["": 20]> g (float[batch,4] h) => (float[batch,4] p) { p = Softmax(h) }'
BAD = """<ir_version: 10, opset_import: ["": 20]>
g (float[2,3] x) => (float[2,3] y) <int64[2] to = {5, 5}> { a = Relu(x) b = Reshape(a, to) y = Neg(b) }"""
TINY = '<ir_version: 10, opset_import: ["": 20]> g (float[N] x) => (float[N] y) { y = Neg(x) }'
TEXTS = {
    "patch.toml": '[[step]]\ndo = "replace"\nfind = "Relu(x)"\nby = "Max(x, 0)"\n',
    "plan.toml": 'models = ["models/*.onnx"]\nsteps = ["inspect"]\nworkers = 1\n',
    "refuses.py": "import sys, time\ntime.sleep(0.3)\nsys.exit(b'Reshape' in open(sys.argv[1], 'rb').read())\n",
}


def net(seed: int, activation: str = "Relu", function: bool = False) -> onnx.ModelProto:
    """Makes the model that the command lines of the help name: its tensors and nodes are called as theirs."""
    draw = np.random.default_rng(seed)
    sizes = {
        "conv.weight": (8, 3, 3, 3), "conv.bias": (8,), "w0": (8, WIDE), "w1": (WIDE, WIDE),
        "fc.weight": (4, WIDE), "fc.bias": (4,),
    }  # fmt: skip
    scale = {"w0": 0.5, "w1": WIDE**-0.5, "fc.weight": WIDE**-0.5}
    weights = [
        numpy_helper.from_array(draw.normal(0, scale.get(name, 0.3), size).astype(np.float32), name)
        for name, size in sizes.items()
    ]
    linear = helper.make_node("Gemm", ["deep", "fc.weight", "fc.bias"], ["linear"], name="node_linear", transB=1)
    nodes = [
        helper.make_node("Conv", ["x", "conv.weight", "conv.bias"], ["conv"], name="node_conv", pads=[1, 1, 1, 1]),
        helper.make_node(activation, ["conv"], ["relu"], name="node_relu"),
        helper.make_node("GlobalAveragePool", ["relu"], ["pooled"], name="node_pool"),
        helper.make_node("Flatten", ["pooled"], ["mean"], name="node_flatten"),
        helper.make_node("MatMul", ["mean", "w0"], ["wide"], name="node_wide"),
        helper.make_node("MatMul", ["wide", "w1"], ["deep"], name="node_deep"),
        linear,
    ]
    functions, opsets = [], [helper.make_opsetid("", 18)]
    if function:
        opsets.append(helper.make_opsetid("my.model", 1))
        body = helper.make_node("Gemm", ["a", "b", "c"], ["d"], transB=1)
        functions.append(helper.make_function("my.model", "Head", ["a", "b", "c"], ["d"], [body], opsets[:1]))
        nodes[-1] = helper.make_node("Head", linear.input, linear.output, name="node_linear", domain="my.model")
    ports = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", *shape])
        for name, shape in {"x": [3, 8, 8], "linear": [4]}.items()
    ]
    graph = helper.make_graph(nodes, "net", ports[:1], ports[1:], weights)
    return helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=9)


def write_inputs(folder: Path, seed: int) -> None:
    """Writes the models and data that the command lines read."""
    (folder / "models").mkdir(parents=True, exist_ok=True)
    models = {"net": net(seed), "new": net(seed, "LeakyRelu"), "functions": net(seed, function=True)}
    models |= {f"models/{name}": models[name] for name in ("net", "new")}
    for name, model in models.items():
        place = f"{Path(name).name}.onnx.data"
        (folder / name).parent.joinpath(place).unlink(missing_ok=True)  # onnx appends to it
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        onnx.save(copy, folder / f"{name}.onnx", save_as_external_data=True, location=place, size_threshold=1000)
    for name, text in {"head": HEAD, "bad": BAD, "tiny": TINY}.items():
        onnx.save(onnx.parser.parse_model(text), folder / f"{name}.onnx")
    for name, text in {**TEXTS, "net.py": NET.format(wide=WIDE, seed=seed)}.items():
        (folder / name).write_text(text, encoding="utf-8")
    draw = np.random.default_rng(seed)
    np.savez(folder / "inputs.npz", x=draw.normal(size=(3, 3, 8, 8)).astype(np.float32))


PARTS = {".data", ".sqlite-wal", ".sqlite-shm", ".sqlite-journal"}
"""Suffixes of files that belong to another file: to a model, or to a store."""
Found = str | dict[str, str] | None
"""A digest of a file; the digests of the files of a folder; None for nothing."""
BROKEN = "broken"
OTHER = "another whole file"
"""Says that an output need not be one of the recorded ones, only whole."""


def is_whole(file: Path) -> bool:
    """Whether a file is an output or an input of its own."""
    return not file.name.startswith(".") and file.suffix not in PARTS


def state(path: Path) -> Found:
    """Returns what a reader finds at `path`: a digest of the content, of a model with its external data."""
    if path.is_dir():
        files = sorted(one for one in path.rglob("*") if one.is_file() and is_whole(one))
        return {str(one.relative_to(path)): _digest(one) for one in files}
    return _digest(path) if path.exists() else None


def _digest(file: Path) -> str:
    try:
        content = _content(file)
    except Exception as error:  # noqa: BLE001 — whatever a reader raises, the file is broken
        return f"{BROKEN}: {type(error).__name__}: {error}"[:200]
    return hashlib.sha256(content).hexdigest()[:16]


def _content(file: Path) -> bytes:
    if file.suffix == ".onnx":
        return onnx.load(file).SerializeToString(deterministic=True)
    content = file.read_bytes()
    if file.suffix == ".json":
        json.loads(content)
    elif file.suffix == ".html" and not content.rstrip().endswith(b"</html>"):
        raise ValueError("the page has no end")
    elif file.suffix in (".npz", ".data.zip"):
        assert zipfile.ZipFile(file).testzip() is None
    elif file.suffix == ".sqlite":
        return _keys(file)
    return content


def _keys(file: Path) -> bytes:
    """Returns the keys of the rows of a store; raises if it is corrupt. Reads a copy: SQLite makes files beside a store
    that it opens."""
    with tempfile.TemporaryDirectory() as folder:
        for part in file.parent.glob(f"{file.name}*"):
            shutil.copy2(part, folder)
        store = sqlite3.connect(Path(folder) / file.name)
        if store.execute("PRAGMA integrity_check").fetchone() != ("ok",):
            raise ValueError("the store is corrupt")
        keys = store.execute("SELECT key FROM rows ORDER BY key").fetchall()
        store.close()
    return json.dumps(keys).encode()


def states(folder: Path) -> dict[str, Found]:
    """Returns the states of what is in a folder and is neither hidden nor a part of another file."""
    return {one.name: state(one) for one in folder.iterdir() if is_whole(one)}


def fault(now: Found, old: Found, new: list[Found]) -> str:
    """Returns what is wrong with an output: "torn", "lost" or nothing. `new` has the states after undisturbed runs. A
    file that differs between them has only to be whole."""
    if now == old or now in new:
        return ""
    if now is None:
        return "lost"
    if new[-1] == OTHER:
        digests = now.values() if isinstance(now, dict) else [now]
        return "torn" if any(one.startswith(BROKEN) for one in digests) else ""
    if isinstance(now, str):
        return "torn" if now.startswith(BROKEN) or new[0] == new[-1] else ""
    first, last = new[0], new[-1]
    if isinstance(first, dict) and isinstance(last, dict) and now.keys() == first.keys():
        wrong = [name for name, one in now.items() if first[name] == last[name] != one or one.startswith(BROKEN)]
        return "torn" if wrong else ""
    return "torn"


def unneeded_data(folder: Path) -> list[str]:
    """Returns the data files that no model of the folder names."""
    data = [one.name for one in folder.glob("*.data")]
    models = [one.read_bytes() for one in folder.glob("*.onnx")]
    return [name for name in data if not any(name.encode() in model for model in models)]


def copied(source: Path, target: Path) -> Path:
    """Copies a folder, in place of an older copy."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, symlinks=True)
    return target


def changed(before: dict[str, Found], after: dict[str, Found]) -> list[str]:
    """Returns the names that a run made or changed."""
    return sorted(name for name in after if before.get(name) != after[name])


def copied_file(source: Path, target: Path) -> None:
    """Copies a file."""
    shutil.copy2(source, target)
