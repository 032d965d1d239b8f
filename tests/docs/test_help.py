"""The help: every command at one place, usual options that exist, and command lines that work as they stand."""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from PIL import Image

import onnxsmith
from onnxsmith.base import rooms
from onnxsmith.base.options import called, fields_of
from onnxsmith.base.report.parts.target_checks import Stage
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli import application
from onnxsmith.cli.commands.base import Command
from onnxsmith.cli.help import this_folder
from onnxsmith.cli.help.situations import SITUATIONS
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from tests import advice, gallery

COMMANDS = {command.name: command for command in rooms.classes("onnxsmith.cli.commands", Command).values()}
SHARED = {"json", "html", "report", "verbose", "quiet", "view", "record"}
NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        return self.fc(torch.relu(self.norm(self.conv(x))).mean((2, 3)))

def build():
    torch.manual_seed(0)
    net = Net().eval()
    with torch.no_grad():  # pictures of other colours are of other classes
        net.fc.weight *= 20
        net.fc.bias -= net(torch.rand(64, 3, 1, 1).expand(64, 3, 8, 8)).mean(0)
    return net, (torch.randn(2, 3, 8, 8),)
"""
HEAD = """<ir_version: 10, opset_import: ["": 20]> g (float[batch,4] h) => (float[batch,4] p) { p = Softmax(h) }"""
COMPILED = """<ir_version: 10, opset_import: ["com.microsoft": 1]>
g (float[4] x) => (float[4] y) {
  y = com.microsoft.EPContext <ep_cache_context = "code", source = "CPUExecutionProvider"> (x)
}"""
BAD = """<ir_version: 10, opset_import: ["": 20]>
g (float[2,3] x) => (float[2,3] y) <int64[2] to = {5, 5}> { a = Relu(x) b = Reshape(a, to) y = Neg(b) }"""
PATCH = """
[[step]]
do = "replace"
find = "Relu(x)"
by = "Max(x, 0)"
"""
PLAN = """
models = ["models/*.onnx"]
steps = ["inspect"]
workers = 1
"""


def run(line: str) -> tuple[str, int]:
    """What a command line of the help prints, and its exit status."""
    words = shlex.split(line)
    assert words.pop(0) == "onnxsmith", line
    if "<" in words:
        at = words.index("<")
        with mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(words[at + 1]).read_bytes()))):
            return gallery.called(application.main, words[:at])
    expanded = chain.from_iterable(sorted(map(str, Path().glob(one))) if "models/*" in one else [one] for one in words)
    return gallery.called(application.main, list(expanded))


def works(line: str) -> str:
    text, status = run(line)
    assert status == 0, f"{line}\n{text}"
    return text


def sort_photos(rng: np.random.Generator) -> None:
    """Makes photographs in folders by class: the class that the network sees in them."""
    for number in range(40):
        picture = np.clip(rng.normal(rng.integers(0, 256, 3), 30, (8, 8, 3)), 0, 255).astype(np.uint8)
        (values,) = onnxsmith.run(
            "net.onnx", {"x": np.float32(picture.transpose(2, 0, 1)[None] / 255)}
        ).outputs.values()
        folder = Path("photos", f"{int(np.argmax(values))}")
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(folder / f"{number}.png")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the command lines name."""
    folder = tmp_path_factory.mktemp("help")
    rng = np.random.default_rng(0)
    (folder / "net.py").write_text(NET)
    (folder / "patch.toml").write_text(PATCH)
    (folder / "plan.toml").write_text(PLAN)
    (folder / "labels.txt").write_text("cat\ndog\nbird\nfish\n")
    (folder / "build.log").write_text("[1/3] …\nNo Op registered for Gelu with domain_version of 17\n")
    np.savez(folder / "inputs.npz", x=rng.normal(size=(3, 3, 8, 8)).astype(np.float32))
    Image.fromarray(rng.integers(0, 256, (8, 8, 3), np.uint8)).save(folder / "photo.png")
    save(from_text(HEAD), folder / "head.onnx")
    save(from_text(BAD), folder / "bad.onnx")
    save(from_text(COMPILED), folder / "compiled.onnx")
    (folder / "models").mkdir()
    with gallery.inside(folder, {}):
        works("onnxsmith export net.py:build -o net.onnx --dynamic x:0=batch")
        with onnxsmith.edit("net.onnx", "new.onnx") as model:
            model.replace("Relu(x)", "Max(x, 0)")
        sort_photos(rng)
        works("onnxsmith set-dim net.onnx batch=1 -o one.onnx")
        works("onnxsmith outline net.onnx my.model::Head --node node_linear -o functions.onnx")
        works("onnxsmith simplify net.onnx -o smaller.onnx --record record.json")
        shutil.copy("net.onnx", "models")
        shutil.copy("net.onnx", "half.onnx")
        works("onnxsmith baseline record models/*.onnx --no-time")
        works("onnxsmith fleet run plan.toml --name yesterday")
        for name in ("one", "two"):
            shutil.copy("fleet.sqlite", f"{name}.sqlite")
    return folder


@pytest.fixture
def here(prepared: Path, tmp_path: Path) -> Iterator[Path]:
    shutil.copytree(prepared, tmp_path / "here")
    with gallery.inside(tmp_path / "here", {}):
        yield tmp_path / "here"


def test_every_command_has_its_situation() -> None:
    listed = [name for _, names in SITUATIONS for name in names]
    assert sorted(listed) == sorted({name.split()[0] for name in COMMANDS})


@pytest.mark.parametrize("name", COMMANDS)
def test_the_usual_options_are_ten_of_its_own(name: str) -> None:
    command = COMMANDS[name]
    known = {called(field) for field in fields_of(command)} | SHARED
    assert set(command.usual_options) <= known
    assert len(command.usual_options) <= 10
    assert command.usual_line.startswith(f"onnxsmith {name}")


@pytest.mark.parametrize("name", ["export", "simplify", "compare", "quantize", "check"])
def test_the_long_commands_show_what_people_use(name: str) -> None:
    shown, status = gallery.called(application.main, [name, "--help"])
    whole, status_of_whole = gallery.called(application.main, [name, "--help-all"])
    assert (status, status_of_whole) == (0, 0)
    assert "--help-all" in shown
    assert "--help-all" not in whole
    for field in fields_of(COMMANDS[name]):
        if field.metadata["kind"] != "argument":
            option = "--" + (field.metadata.get("name") or field.name).rstrip("_").replace("_", "-")
            assert f"{option} " in whole
    assert len(shown.splitlines()) < len(whole.splitlines())
    assert len(COMMANDS[name].examples) == 3


def test_the_command_line_as_data() -> None:
    text, status = gallery.called(application.main, ["--json-usage"])
    assert status == 0
    usage = json.loads(text)
    assert usage["verdicts"] == {"done": 0, "different": 1, "cannot-tell": 1, "failed": 2}
    assert [one["name"] for one in usage["commands"]] == sorted(COMMANDS)
    for one in usage["commands"]:
        whole, _ = gallery.called(application.main, [*one["name"].split(), "--help-all"])
        for option in one["options"]:
            assert f"{option['name']} " in f"{whole} ", (one["name"], option)
            assert isinstance(
                option["default"],
                {"integer": int, "number": float | int, "boolean": bool, "string": str}[option["type"]] | None,
            ), option
        assert [argument["name"] for argument in one["arguments"] if argument["name"] not in whole] == []
        assert one["usual_line"] in whole


SKILL = (Path(onnxsmith.__file__).parent / "SKILL.md").read_text(encoding="utf-8")


def test_the_skill_names_what_there_is() -> None:
    """Its commands, their options, the verdicts with their exit statuses, and the stages of targets."""
    lines = re.findall(r"`(onnxsmith (?!COMMAND)[^`]+)`", SKILL)
    assert len(lines) > 15
    assert [fault for line in lines for fault in advice.faults(f"`{line}`") if "--json-usage" not in line] == []
    rows = re.findall(r"^\| `([a-z-]+)` +\| (\d) ", SKILL, re.MULTILINE)
    assert dict(rows) == {one.value: str(one.exit_code) for one in Verdict}
    for stage in ("parsed", "built", "ran", "agreed", "fits the table"):
        assert f"`{stage}`" in SKILL
        assert stage in {one.value for one in Stage}
    known = {text for one in advice.options().values() for text in one}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", SKILL)) <= known | {"--json-usage", "--help-all"}


KEY = "KEY"
OTHER_PROGRAMS = {"fleet bisect"}  # makes environments with uv, which needs a network
LINES = [
    (name, line)
    for name, command in COMMANDS.items()
    for line in (command.usual_line, *dict(command.examples).values())
]


@pytest.mark.parametrize(("name", "line"), LINES, ids=[line.removeprefix("onnxsmith ") for _, line in LINES])
def test_each_line_of_the_help_runs(here: Path, name: str, line: str) -> None:
    if name in OTHER_PROGRAMS:
        assert run(f"{line} --help")[1] == 0
        return
    if KEY in line:
        with sqlite3.connect("fleet.sqlite") as store:
            line = line.replace(KEY, store.execute("select key from rows").fetchone()[0])
    if name == "baseline accept":
        shutil.copy("new.onnx", "models/net.onnx")
    text, status = run(line)
    assert status in ((0, 1) if name in ("diff", "check", "diagnose", "guard") else (0,)), text


def test_what_can_be_done_in_a_folder(here: Path) -> None:
    for name in ("bad.onnx", "compiled.onnx"):
        (here / name).unlink()
    text, status = gallery.called(application.main, [])
    assert status == 0
    lines = [line.strip().split("  ")[0] for line in text.splitlines() if line.startswith("  onnxsmith")]
    assert len(lines) == 3
    assert lines[0].startswith("onnxsmith export net.py:build")
    for line in lines:
        works(line)


def test_a_folder_without_models(tmp_path: Path) -> None:
    assert "No model is in this folder" in this_folder.page(tmp_path)
    (tmp_path / "broken.py").write_text("import torch\ndef build(:")
    (tmp_path / "other.py").write_text("def build():\n    pass\n")
    (tmp_path / "needs.py").write_text("import torch\ndef build(path):\n    pass\n")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    assert "No model is in this folder" in this_folder.page(tmp_path)
