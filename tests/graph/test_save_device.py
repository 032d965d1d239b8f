"""A device or a pipe gets the bytes of a model; it is not replaced by a file."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import onnx
import pytest
from onnx import parser

import onnxsmith
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.save import save
from tests.conftest import Refused

MODEL = (
    """<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }"""
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    onnx.save(parser.parse_model(MODEL), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_a_pipe_gets_the_model_and_stays_a_pipe(source: Path) -> None:
    pipe = source.parent / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    assert onnxsmith.simplify(source, pipe).ok
    reader.join(60)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert onnx.load_from_string(read[0]).graph.node[0].op_type == "Add"


def test_a_link_to_a_device_stays_a_link(source: Path) -> None:
    link = source.parent / "nothing.onnx"
    link.symlink_to(os.devnull)
    assert save(load(source), link) == [link]
    assert link.is_symlink()
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


def test_a_pipe_takes_no_data_file(source: Path, refused: Refused) -> None:
    pipe = source.parent / "pipe"
    os.mkfifo(pipe)
    with refused("save/failed"):
        save(load(source), pipe, external_data=True)
