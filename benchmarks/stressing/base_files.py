"""A folder with every file that the commands read, and the command lines that read them."""

from __future__ import annotations

import json
import random
import shlex
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from PIL import Image

from onnxsmith.base import rooms
from onnxsmith.base.options import fields_of, spelled
from onnxsmith.cli import application, command_words
from onnxsmith.cli.commands.base import Command
from stressing import base_models, model_mutations

COMMANDS = {one.name: one for one in rooms.classes("onnxsmith.cli.commands", Command).values()}
KEY, BASES = "KEY", "bases"
PROGRAM = """
import torch

def build():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten())
    return net.eval(), (torch.randn(2, 3, 8, 8),)
"""
PATCH = """
[[step]]
do = "replace"
find = "Relu(x)"
by = "Max(x, 0)"

[[step]]
do = "rename"
tensor = "relu"
to = "activation"

[[step]]
do = "set-dim"
dims = ["batch=2"]
"""
REPLACEMENTS = '[[replace]]\nfind = "Relu(x)"\nby = "Clip(x, 0, 6)"\n'
PLAN = 'models = ["models/*.onnx"]\nsteps = ["inspect"]\nworkers = 1\n\n[settings.fast]\ninspect = "--verbose"\n'
TARGET = """name = "small"
title = "A small device"
unlisted = "refused"
opsets = [13, 20]
[operators.Relu]
dtypes = ["float32"]
[operators.Conv]
note = "two dimensions"
"""
SETTINGS = 'size = [8, 8]\nmean = [0.5, 0.5, 0.5]\nstd = [0.2, 0.2, 0.2]\ncolour = "rgb"\n'
TEXT = (
    '<ir_version: 10, opset_import: ["": 20]>\ng (float[batch,4] x) => (float[batch,4] y) { r = Relu(x) y = Neg(r) }\n'
)
BAD = '<ir_version: 10, opset_import: ["": 20]> g (float[2,3] x) => (float[2,3] y) <int64[2] to = {5, 5}> '
CONFIG = {
    "architectures": ["BertForSequenceClassification"],
    "model_type": "bert",
    "hidden_size": 8,
    "intermediate_size": 8,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
    "vocab_size": 20,
    "max_position_embeddings": 16,
}
TOKENIZER = {
    "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
    "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
    "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "a": 1, "b": 2}, "unk_token": "[UNK]"},
}  # fmt: skip
CALLS = (
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {},
     "clientInfo": {"name": "c", "version": "1"}}},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}},
    {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "inspect", "arguments": {"model": "net.onnx"}}},
    {"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "guard", "arguments": {
     "files": ["../canary.onnx", "net.onnx"]}}},
)  # fmt: skip
"""Messages of a client to the server of `mcp`."""
MORE = {
    "view": ("onnxsmith view net.onnx --with report.json -o page.html", "onnxsmith view net.onnx new.onnx --svg a.svg"),
    "guard": ("onnxsmith guard weights.safetensors net.onnx models/net.onnx",),
    "bench": ("onnxsmith bench net.onnx --dim batch=1 --against before.json --seconds 0.1",),
    "compare": ("onnxsmith compare net.onnx@reference new.onnx --per-layer",),
    "export": ("onnxsmith export tokenizer --task text-classification -o made.onnx",),
    "mcp": ("onnxsmith mcp < calls.jsonl",),
    "explain": ("onnxsmith explain - < build.log", "onnxsmith explain model/truncated net.onnx"),
    "op": ("onnxsmith op Resize --json",),
    "check": ("onnxsmith check net.onnx --target profile:target.toml", "onnxsmith check net.onnx --target onnxruntime"),
    "fleet show": ("onnxsmith fleet show fleet.sqlite",),
    "replace": ("onnxsmith replace net.onnx replacements.toml -o other.onnx",),
    "inspect": ("onnxsmith inspect net.onnxtxt", "onnxsmith inspect net.onnx relu"),
    "diff": ("onnxsmith diff net.onnxtxt net.onnx",),
    "baseline check": ("onnxsmith baseline check --no-time",),
    "bundle": ("onnxsmith bundle net.onnx -o bundle --task image-classification --labels labels.txt --size 8x8",),
    "run": ("onnxsmith run net.onnx --input inputs.npz -o outputs.npz",),
}
"""Lines for what the usual line of a verb does not read."""
VALUES: dict[str, tuple[str, ...]] = {
    "input": ("inputs.npz", "x=array.npy", "x=photo.png"),
    "sample": ("inputs.npz", "x=array.npy"),
    "target": ("profile:target.toml", "onnxruntime"),
    "labels": ("labels.txt",),
    "tokenizer": ("tokenizer",),
    "settings": ("settings.toml",),
    "licence": ("labels.txt",),
    "keep": ("keep.txt",),
    "saliency": ("inputs.npz",),
    "data": ("photos", "inputs.npz", "data.jsonl"),
    "calibration": ("inputs.npz", "data.jsonl"),
    "onnx": ("new.onnx",),
}
"""A valid value for options that read a file. Another one gets any of the files."""
PLACES = {"baseline check": ("baseline.json", "baseline.zip"), "bench": ("before.json",)}
SHORTER = {"bench": ["--seconds", "0.1"], "baseline record": ["--no-time"], "baseline accept": ["--no-time"]}
SHOWN = (["--json"], ["--json"], ["--verbose"], ["--quiet"], ["--html", "r.html"], ["--report", "r.md"],
         ["--report", "r.sarif"], ["--report", "r.xml"])  # fmt: skip


@dataclass(frozen=True)
class Line:
    """A command line: its words, the files in it that can be changed, and the file at its standard input."""

    words: tuple[str, ...]
    files: tuple[str, ...]
    stdin: str = ""

    def outputs(self) -> list[str]:
        """Returns the files that the line would write; none if the words are no command."""
        try:
            return list(command_words.written(application.command(self.words)).values())
        except Exception:  # noqa: BLE001 — hostile words make any error here; the run itself says whether it is told
            return []


def prepare(folder: Path, call: Callable[[Sequence[str], Path], None]) -> None:
    """Makes the folder. `call` runs a command line of ours in it."""
    draw = np.random.default_rng(0)
    base_models.write(folder / BASES)
    net = base_models.net()
    onnx.save(net, folder / "net.onnx")
    net.graph.node[2].op_type = "Abs"
    onnx.save(net, folder / "new.onnx")
    onnx.save(base_models.functions(), folder / "functions.onnx")
    head = "(float[batch,4] h) => (float[batch,4] p) { p = Softmax(h) }"
    onnx.save(onnx.parser.parse_model(f"{base_models.HEAD} g {head}"), folder / "head.onnx")
    onnx.save(onnx.parser.parse_model(BAD + "{ a = Relu(x) b = Reshape(a, to) y = Neg(b) }"), folder / "bad.onnx")
    texts = {
        "net.onnxtxt": TEXT, "net.py": PROGRAM, "patch.toml": PATCH, "plan.toml": PLAN, "target.toml": TARGET,
        "settings.toml": SETTINGS, "replacements.toml": REPLACEMENTS, "labels.txt": "cat\ndog\nbird\nfish\n",
        "keep.txt": "node_conv\nnode_lin*\n", "build.log": "No Op registered for Gelu with domain_version of 17\n",
        "data.jsonl": '{"text": "a b", "label": 1}\n' * 4, "calls.jsonl": "".join(f"{json.dumps(one)}\n" for one in CALLS),
    }  # fmt: skip
    for name, content in texts.items():
        (folder / name).write_text(content)
    (folder / "tokenizer").mkdir()
    (folder / "tokenizer" / "config.json").write_text(json.dumps(CONFIG))
    (folder / "tokenizer" / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    values = draw.normal(size=(3, 3, 8, 8)).astype(np.float32)
    np.savez(folder / "inputs.npz", x=values)
    np.save(folder / "array.npy", values)
    header = json.dumps({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
    (folder / "weights.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(16))
    for number in range(6):
        picture = Image.fromarray(draw.integers(0, 256, (8, 8, 3), np.uint8))
        (folder / "photos" / f"{number % 2}").mkdir(parents=True, exist_ok=True)
        picture.save(folder / "photos" / f"{number % 2}" / f"{number}.png")
    picture.save(folder / "photo.png")
    (folder / "models").mkdir()
    shutil.copy(folder / "net.onnx", folder / "models")
    for line in (
        "fleet run plan.toml",
        "baseline record models/net.onnx --no-time --runtime reference",
        "inspect net.onnx --report report.json",
        "rename net.onnx x image -o named.onnx --runtime reference --record record.json",
        "bench net.onnx --dim batch=1 --seconds 0.1 --save before.json",
        "bundle net.onnx -o old --for python",
    ):
        call(shlex.split(line), folder)
    for name in ("one", "two"):
        shutil.copy(folder / "fleet.sqlite", folder / f"{name}.sqlite")


def key_of(folder: Path) -> str:
    """Returns the key of a cell in the store of the folder."""
    with sqlite3.connect(folder / "fleet.sqlite") as store:
        (key,) = store.execute("select key from rows").fetchone()
    store.close()
    return str(key)


def line(verb: str, draw: random.Random, folder: Path) -> Line:
    """Draws a command line of a verb, of files in the folder."""
    command = COMMANDS[verb]
    words = shlex.split(draw.choice((command.usual_line, *MORE.get(verb, ()), *dict(command.examples).values())))[1:]
    stdin = ""
    if "<" in words:
        at = words.index("<")
        words, stdin = words[:at], words[at + 1]
    words = [*(one for word in words for one in _expanded(word, folder)), *SHORTER.get(verb, ())]
    reading = [one for one in fields_of(command) if one.metadata.get("reads") and one.metadata["kind"] != "argument"]
    if reading and draw.random() < 0.3:
        option = draw.choice(reading)
        words += [spelled(option), draw.choice(VALUES.get(option.name, tuple(_files(folder))))]
    if draw.random() < 0.4:
        words += draw.choice(SHOWN)
    if command.takes_view() and draw.random() < 0.05:
        words += ["--view", "view.html"]
    made = Line(tuple(words), (), stdin)
    outputs = made.outputs()
    files = [name for word in words if word not in outputs for name in _named(word, folder)]
    files += [stdin] * bool(stdin) + [one for one in PLACES.get(verb, ()) if (folder / one).exists()]
    if verb.startswith("fleet") and (folder / "fleet.sqlite").exists():
        files.append("fleet.sqlite")
    if not files or draw.random() < 0.05:
        made = Line(tuple(_strange(words, outputs, files, draw)), (), stdin)
    return Line(made.words, tuple(dict.fromkeys(files)), stdin)


def _expanded(word: str, folder: Path) -> Iterator[str]:
    if word == KEY:
        yield key_of(folder)
    elif "*." in word and "/" in word:
        yield from sorted(str(one.relative_to(folder)) for one in folder.glob(word))
    else:
        yield word.replace("photos/", "photos")


def _files(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir() if one.name != BASES and not one.name.startswith("."))


def _named(word: str, folder: Path) -> Iterator[str]:
    """Yields the file that a word names, alone or as a part: `x=array.npy`, `profile:target.toml`, `net.py:build`."""
    for separator in ("\0", "=", ":", "@"):
        for one in word.split(separator):
            if one.strip("./") and len(one) < 100 and (folder / one).exists():
                yield one
                return


def _strange(words: list[str], outputs: list[str], files: list[str], draw: random.Random) -> Iterator[str]:
    """Yields the words, one of them, which is no file and no option, replaced by a hostile text."""
    free = [n for n, one in enumerate(words) if one not in (*outputs, *files) and not one.startswith("-") and n > 1]
    place = draw.choice(free or [len(words)])
    odd = draw.choice(model_mutations.TEXTS).replace("\0", "").replace("/", ":")
    yield from (odd if n == place else one for n, one in enumerate(words))
    if place == len(words):
        yield odd
