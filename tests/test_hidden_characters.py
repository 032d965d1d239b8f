"""What is printed has no hidden character: no name in a model or of a file moves the cursor of a terminal."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from rich.text import Text

from onnxsmith.base import rooms
from onnxsmith.base.printable import json_printable, printable
from onnxsmith.base.problem import Problem, problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli import application, printed_streams
from onnxsmith.cli.commands.base import Command
from onnxsmith.cli.render import terminal
from onnxsmith.testing.failure import raise_unless_done
from tests import gallery
from tests.test_circumstances import command

HIDDEN = "\x1b[2J\x1b]0;t\x07\r\x08\x7f\x9b2J\u202e\u2066\u200b\u2028"
"""Clears the screen, sets the title, rings, returns, and turns the text around."""
FILE = f"m{HIDDEN}.onnx"
COMMANDS = {one.name: one for one in rooms.classes("onnxsmith.cli.commands", Command).values()}
LINES = {name: shlex.split(one.usual_line)[1:] for name, one in COMMANDS.items() if name != "mcp"}
"""The usual line of each command, with the words that name a model replaced by the hostile file."""
STYLE = re.compile(r"\x1b\[[\d;]*m")


def hostile(hidden: str = HIDDEN) -> onnx.ModelProto:
    """A model with hidden characters in each of its texts."""
    x, y, n = (f"{name}{hidden}" for name in "xyn")
    weight = numpy_helper.from_array(np.ones((4, 4), np.float32), f"w{hidden}")
    nodes = [
        helper.make_node("MatMul", [x, weight.name], ["h" + hidden], name=f"matmul{hidden}", doc_string=hidden),
        helper.make_node("Identity", ["h" + hidden], ["i" + hidden], name=f"identity{hidden}"),
        helper.make_node("Relu", ["i" + hidden], [y], name=f"relu{hidden}"),
    ]
    nodes[0].metadata_props.add(key=f"key{hidden}", value=f"value{hidden}")
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [n, 4], doc_string=hidden) for name in (x, y)]
    graph = helper.make_graph(nodes, f"g{hidden}", ports[:1], ports[1:], [weight], doc_string=f"doc{hidden}")
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(f"domain{hidden}", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10, doc_string=f"doc{hidden}")
    model.producer_name, model.producer_version, model.domain = f"p{hidden}", f"v{hidden}", f"d{hidden}"
    model.metadata_props.add(key=f"key{hidden}", value=f"value{hidden}")
    return model


def unknown(hidden: str = HIDDEN) -> onnx.ModelProto:
    """A model with a node of no known operator, which reads a tensor that nothing gives."""
    model = hostile(hidden)
    model.graph.node[2].op_type, model.graph.node[2].domain = f"Op{hidden}", f"domain{hidden}"
    model.graph.node[2].input.append(f"nothing{hidden}")
    return model


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / f"f{HIDDEN}"
    folder.mkdir()
    with gallery.inside(folder, {}):
        onnx.save(hostile(), FILE)
        other = hostile()
        other.graph.node[2].op_type = "Abs"
        onnx.save(other, f"other{HIDDEN}.onnx")
        onnx.save(unknown(), f"unknown{HIDDEN}.onnx")
        yield folder


def hidden(text: str) -> list[str]:
    """The characters of a text that are not seen, but for the end of a line."""
    kinds = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    return sorted({one for one in text if one != "\n" and unicodedata.category(one) in kinds})


def words(name: str, file: str) -> list[str]:
    """The usual line of a command, on this file."""
    line = LINES[name]
    read = {"net.onnx": file, "bad.onnx": file, "new.onnx": f"other{HIDDEN}.onnx", "relu": f"relu{HIDDEN}"}
    return [read.get(word, word) for word in line]


@pytest.mark.parametrize("file", [FILE, f"unknown{HIDDEN}.onnx"], ids=["valid", "invalid"])
@pytest.mark.parametrize("name", LINES)
def test_every_command(here: Path, name: str, file: str) -> None:
    for more in ([], ["--verbose"], ["--quiet"], ["--json"]):
        text, _ = gallery.called(application.main, [*words(name, file), *more])
        assert hidden(text) == [], more


@pytest.mark.parametrize("kind", [hostile, unknown], ids=["valid", "invalid"])
@pytest.mark.parametrize("name", LINES)
def test_no_name_makes_a_line_of_its_own(tmp_path: Path, name: str, kind: Callable[[str], onnx.ModelProto]) -> None:
    """A line that looks like one of onnxsmith's is one of onnxsmith's."""
    with gallery.inside(tmp_path, {}):
        onnx.save(kind("\nFORGED\n"), "m.onnx")
        onnx.save(hostile("\nFORGED\n"), f"other{HIDDEN}.onnx")
        text, _ = gallery.called(application.main, [*words(name, "m.onnx"), "--verbose"])
    assert [line for line in text.splitlines() if line.startswith("FORGED")] == []


def test_a_terminal_gets_the_styles_of_the_report_alone(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    text, _ = gallery.called(application.main, ["inspect", FILE, "--verbose"])
    assert "\x1b[" in text
    assert hidden(STYLE.sub("", text)) == []


@pytest.mark.parametrize(
    "wrong",
    [
        [f"verb{HIDDEN}"],
        ["inspect", FILE, f"--option{HIDDEN}"],
        ["inspect", FILE, "--dim", f"n{HIDDEN}=x"],
        ["run", FILE, "--seed", HIDDEN],
        ["inspect", FILE, f"name{HIDDEN}"],
        ["rename", FILE, f"x{HIDDEN}", f"new{HIDDEN}", "-o", f"no{HIDDEN}/out.onnx"],
        ["edit", FILE, f"patch{HIDDEN}.toml", "-o", "out.onnx"],
        ["inspect", FILE, "--report", f"report{HIDDEN}"],
    ],
)
def test_wrong_words(here: Path, wrong: list[str]) -> None:
    text, status = gallery.called(application.main, wrong)
    assert status == 2
    assert hidden(text) == []


def test_a_process_of_its_own(here: Path) -> None:
    """Its streams are those of the system, and native libraries write to them too."""
    done = command("simplify", FILE, "-o", f"new{HIDDEN}.onnx", cwd=here)
    assert (done.returncode, hidden(done.stdout + done.stderr)) == (0, [])
    assert printable(f"{HIDDEN}.onnx: ") in done.stdout


def test_json_says_the_same_in_escapes(here: Path) -> None:
    text, status = gallery.called(application.main, ["inspect", FILE, "--json"])
    assert status == 0
    assert hidden(text) == []
    assert json.loads(text)["models"][0]["path"].endswith(FILE)
    assert json_printable('"\U000e0041é"') == '"\\udb40\\udc41é"'


def test_a_command_with_the_name_of_a_file_can_be_pasted(here: Path) -> None:
    odd = os.fsdecode(f"it's{HIDDEN}\\".encode() + b"\xff1.onnx")
    Path(odd).write_bytes(b"")
    (found,) = here.glob("it*")
    shown = printable(f"`ls {shlex.quote(found.name)}`")
    assert hidden(shown) == []
    listed = subprocess.run(["bash", "-c", f"printf %s {shown[4:-1]}"], capture_output=True, check=True).stdout
    assert listed == os.fsencode(found.name)
    assert printable(f"the model's name{chr(7)}, and it's used") == r"the model's name\x07, and it's used"


def test_an_error_in_python_has_none() -> None:
    assert hidden(str(problem("a/b", HIDDEN, where=HIDDEN, why=HIDDEN, fix=HIDDEN))) == []
    assert hidden(repr(Report("a", Verdict.DONE, headline=HIDDEN))) == []
    with pytest.raises(AssertionError) as raised:
        raise_unless_done(Report("a", Verdict.DIFFERENT, headline=HIDDEN, problems=(Problem("a/b", HIDDEN, HIDDEN),)))
    assert hidden(str(raised.value)) == []


def test_what_other_code_prints_has_none_but_the_start_of_a_bar() -> None:
    output = io.StringIO()
    with contextlib.redirect_stderr(output), contextlib.redirect_stdout(output), printed_streams.cleaned():
        sys.stdout.write(HIDDEN + "\n")
        sys.stderr.write("\r50%|█████     |")
        sys.stderr.write("\x1b[A\r\x1b[2J\n")
        sys.stderr.writelines([HIDDEN])
    assert output.getvalue().count("\r") == 2
    assert hidden(output.getvalue().replace("\x1b[A", "").replace("\r", "")) == []


def test_a_stage_has_none_in_a_bar() -> None:
    output = io.StringIO()
    with contextlib.redirect_stderr(output), printed_streams.cleaned():
        bar = terminal.console(stderr=True)
        assert bar.file is output
        bar.print(Text(HIDDEN))
    assert hidden(output.getvalue()) == []
