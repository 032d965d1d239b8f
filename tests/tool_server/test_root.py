"""Paths of a call stay in the folder of the server, in whatever form they are given."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.cli.tool_server.root import Root

HOME = Path.home()


@pytest.fixture
def root(tmp_path: Path) -> Root:
    """A folder with a model, links, and a secret beside it."""
    folder = tmp_path / "root"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "root-2").mkdir()
    (tmp_path / "root-2" / "secret.onnx").write_text("secret")
    (folder / "m.onnx").write_text("model")
    (folder / "inside.onnx").symlink_to("m.onnx")
    (folder / "out.onnx").symlink_to("../root-2/secret.onnx")
    (folder / "folder").symlink_to("../root-2")
    (folder / "sub" / "weights.bin").symlink_to("../../root-2/secret.onnx")
    (folder / "-m.onnx").write_text("model")
    os.mkfifo(folder / "pipe.onnx")
    return Root(Path(os.path.realpath(folder)))


ESCAPES = (
    "/etc/passwd",
    "..",
    "../root-2/secret.onnx",
    "sub/../../root-2/secret.onnx",
    "not-there/../../root-2/secret.onnx",
    "{root}-2/secret.onnx",
    "~/m.onnx",
    "~root/m.onnx",
    "out.onnx",
    "folder/secret.onnx",
    "folder",
    "out.onnx@reference",
    "../root-2/secret.onnx@onnxruntime:disable",
    "/etc/x.py:build",
    "../x.py:build",
    "folder/x.py:build",
    "x=/etc/passwd",
    "x=../root-2/secret.onnx",
    "x=~/photo.png",
    "x=out.onnx",
    "x=y=../root-2/secret.onnx",
    "profile:/etc/passwd",
    "profile:../board.toml",
    "a:b@c=/etc/passwd",
    "C:\\Windows\\win.ini",
    "C:/Windows/win.ini",
    "\\\\server\\share\\m.onnx",
    "..\\secret.onnx",
    "x=..\\secret.onnx",
)


@pytest.mark.parametrize("word", ESCAPES)
def test_a_path_that_leads_out_is_not_read(root: Root, word: str) -> None:
    with pytest.raises(OnnxsmithError) as raised:
        root.read(word.replace("{root}", str(root.folder)))
    assert raised.value.problem.id == "mcp/outside"


@pytest.mark.parametrize("word", [*ESCAPES[:11], "out.onnx", "folder/new.onnx"])
def test_a_path_that_leads_out_is_not_written(root: Root, word: str) -> None:
    with pytest.raises(OnnxsmithError) as raised:
        root.written(word.replace("{root}", str(root.folder)))
    assert raised.value.problem.id == "mcp/outside"


def test_a_folder_with_a_link_out_is_not_read(root: Root) -> None:
    """A model folder of transformers may hold links to weights elsewhere."""
    with pytest.raises(OnnxsmithError, match=r"the link .*weights\.bin leads to") as raised:
        root.read("sub")
    assert raised.value.problem.id == "mcp/outside"


@pytest.mark.parametrize(
    ("word", "passed"),
    [
        ("m.onnx", "m.onnx"),
        ("./sub/../m.onnx", "m.onnx"),
        ("{root}/m.onnx", "m.onnx"),
        ("inside.onnx", "m.onnx"),
        ("inside.onnx@onnxruntime:disable", "m.onnx@onnxruntime:disable"),
        ("x=inside.onnx", "x=m.onnx"),
        ("x=float32[1,3]", "x=float32[1,3]"),
        ("-m.onnx", "./-m.onnx"),
        ("absent.onnx", "absent.onnx"),
        ("net.py:build", "net.py:build"),
        ("tensorrt-10", "tensorrt-10"),
    ],
)
def test_the_command_gets_the_path_behind_all_links(root: Root, word: str, passed: str) -> None:
    assert root.read(word.replace("{root}", str(root.folder))) == passed


@pytest.mark.parametrize(
    ("word", "passed"), [("new.onnx", "new.onnx"), ("sub/n.onnx", "sub/n.onnx"), ("inside.onnx", "m.onnx")]
)
def test_an_output_in_the_folder(root: Root, word: str, passed: str) -> None:
    assert root.written(word) == passed


@pytest.mark.parametrize("word", [".env.onnx", ".git/hooks.onnx", "sub/.hidden/m.onnx", "."])
def test_hidden_files_are_not_written(root: Root, word: str) -> None:
    with pytest.raises(OnnxsmithError) as raised:
        root.written(word)
    assert raised.value.problem.id == "mcp/output"


def test_a_pipe_is_neither_read_nor_written(root: Root) -> None:
    for method in (root.read, root.written):
        with pytest.raises(OnnxsmithError) as raised:
            method("pipe.onnx")
        assert raised.value.problem.id == "mcp/not-a-file"


def test_a_word_of_many_parts(root: Root) -> None:
    with pytest.raises(OnnxsmithError) as raised:
        root.read("=" * 17)
    assert raised.value.problem.id == "mcp/argument"
