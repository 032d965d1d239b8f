"""The command line names our verb for another tool's, takes arguments as options, and refuses before it loads torch."""

from __future__ import annotations

import sys
from pathlib import Path

import onnx
import pytest
from onnx import parser
from typer.testing import CliRunner, Result

from onnxsmith.base import rooms
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.cli.application import app
from onnxsmith.cli.commands.base import Command
from onnxsmith.cli.forgiving import PEERS
from onnxsmith.exporter import early_refusals

MODEL = '<ir_version: 8, opset_import: ["": 17]> g (float[1,3,4,5] x) => (float[1,3,4,5] y) { y = Relu(x) }'


def command(*words: str | Path) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def model(tmp_path: Path) -> Path:
    onnx.save(parser.parse_model(MODEL), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_the_verbs_of_peers_name_verbs_that_exist_and_are_none_themselves() -> None:
    ours = {id_.partition("/")[0] for id_ in rooms.classes("onnxsmith.cli.commands", Command)}
    assert set(PEERS.values()) <= ours
    assert not set(PEERS) & ours


@pytest.mark.parametrize(
    ("typed", "named"), [("info", "inspect"), ("simplfy", "simplify"), ("netron", "view"), ("zzz", "--help")]
)
def test_an_unknown_verb_names_ours(typed: str, named: str) -> None:
    found = command(typed, "m.onnx")
    assert found.exit_code == 2
    assert f"`onnxsmith {named}`" in found.output


@pytest.mark.parametrize("words", [["--to", "13"], ["--to=13"]])
@pytest.mark.parametrize("first", [True, False])
def test_the_last_argument_may_be_an_option(words: list[str], first: bool, model: Path) -> None:
    out = model.parent / "n.onnx"
    typed = [*words, str(model)] if first else [str(model), *words]
    assert command("opset", *typed, "-o", out).exit_code == 0
    assert onnx.load(out).opset_import[0].version == 13


def test_an_option_of_that_name_stays_an_option(model: Path) -> None:
    assert command("extract", model, "--to", "y", "-o", model.parent / "n.onnx").exit_code == 0


@pytest.mark.parametrize("port", ["x", "y"])
def test_a_layout_needs_no_option(port: str, model: Path) -> None:
    out = model.parent / "n.onnx"
    assert command("layout", model, f"{port}=NHWC", "-o", out).exit_code == 0
    graph = onnx.load(out).graph
    shapes = {
        one.name: [dim.dim_value for dim in one.type.tensor_type.shape.dim] for one in (*graph.input, *graph.output)
    }
    assert shapes[port] == [1, 4, 5, 3]


@pytest.mark.parametrize("verb", ["compare", "simplify", "run"])
@pytest.mark.parametrize("typed", ["--dynamic=x:0=n", "--dynamic-axes"])
def test_an_option_for_open_sizes_names_ours(verb: str, typed: str, model: Path) -> None:
    words = [verb, model, model] if verb == "compare" else [verb, model]
    found = command(*words, typed)
    assert found.exit_code == 2
    said = " ".join(found.output.split())
    assert f"No such option: {typed.partition('=')[0]}. Symbolic dimensions of a file get sizes without" in said
    assert "to choose, add --dim: size of a symbolic dimension" in said


def refused(source: str, name: str, tmp_path: Path, opset: int | None = None) -> str:
    (tmp_path / "f.py").write_text(source, encoding="utf-8")
    try:
        early_refusals.refuse(f"{tmp_path / 'f.py'}:{name}", opset)
    except OnnxsmithError as error:
        return f"{error.problem.id} {error.problem.fix}"
    return ""


@pytest.mark.parametrize(
    "source",
    [
        "def model(): pass", "class model: pass", "async def model(): pass", "model = 1", "from a import model",
        "import a as model", "if x:\n    def model(): pass", "try:\n    import model\nexcept E:\n    pass",
        "from a import *", "globals()['model'] = 1", "def __getattr__(name): pass", "model: int = 3",
        "for model in (): pass", "with a as model: pass", "(model := 3)", "def broken(:",
    ],
)  # fmt: skip
def test_a_name_that_may_be_there_is_not_refused(source: str, tmp_path: Path) -> None:
    assert refused(source, "model", tmp_path) == ""


@pytest.mark.parametrize("source", ["x = 1", "def f():\n    model = 1", "class C:\n    model = 1", ""])
def test_a_name_that_is_not_there_is_refused(source: str, tmp_path: Path) -> None:
    assert refused(source, "model", tmp_path).startswith("export/target-factory the file or module defines: ")


def test_an_opset_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    assert refused("def model(): pass", "model", tmp_path, 99).startswith("export/opset")
    assert refused("def model(): pass", "model", tmp_path, 17) == ""


def test_refusals_of_options_import_no_model_library() -> None:
    """In a process of its own: here everything is imported already."""
    import subprocess

    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom onnxsmith.cli.application import app\n"
        "for words in (['simplify', 'm'], ['export', 'a:b', '--opset', '99', '-o', 'm.onnx'], ['export', 'a:b']):\n"
        "    assert CliRunner().invoke(app, words).exit_code == 2, words\n"
        "print([name for name in ('torch', 'onnx_ir', 'onnxruntime') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip().endswith("[]"), done.stdout + done.stderr
