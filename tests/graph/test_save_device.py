"""An output is a file. A device or a pipe is refused and stays as it is, except for streams, which get the bytes."""

from __future__ import annotations

import dataclasses
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

import onnxsmith
from onnxsmith.base import rooms
from onnxsmith.base.folders import beside, replacing
from onnxsmith.base.options import fields_of
from onnxsmith.cli.commands.base import Command
from onnxsmith.cli.side_files import SideFiles
from onnxsmith.editor.patch import together
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.save import save
from onnxsmith.verification.by_layer.value_bundle import Writer
from onnxsmith.verification.inputs.input_files import write_image, write_npz
from tests.conftest import Refused

MODEL = (
    """<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }"""
)
COMMANDS = rooms.classes("onnxsmith.cli.commands", Command)
SIDE = ("html", "view", "record", "reports")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    onnx.save(parser.parse_model(MODEL), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def made(folder: Path, suffix: str) -> Path:
    path = folder / f"pipe{suffix}"
    if not path.exists():
        os.mkfifo(path)
    return path


def outputs() -> Iterator[tuple[str, str]]:
    """Yields every command with each of its options that name an output."""
    for name, kind in COMMANDS.items():
        for field in dataclasses.fields(kind):  # type: ignore[arg-type]
            if field.metadata.get("writes") or field.metadata.get("short") == "-o":
                yield name, field.name


def command(name: str, **values: Any) -> Command:
    kind = COMMANDS[name]
    missing = {
        field.name: ("m.onnx",) if str(field.type).startswith("tuple") else "m.onnx"
        for field in dataclasses.fields(kind)  # type: ignore[arg-type]
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    }
    return kind(**missing | values)


@pytest.mark.parametrize(("name", "option"), list(outputs()))
@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_every_output_of_every_command_is_a_file(
    tmp_path: Path, name: str, option: str, kind: str, refused: Refused
) -> None:
    path = pipe = made(tmp_path, ".npz")
    if kind == "link":
        path = tmp_path / "link.npz"
        path.symlink_to(pipe)
    with refused("save/not-a-file"):
        SideFiles().refuse_loss(command(name, **{option: str(path)}))
    assert stat.S_ISFIFO(pipe.lstat().st_mode)


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("option", SIDE)
def test_every_file_beside_the_output_is_a_file(tmp_path: Path, name: str, option: str, refused: Refused) -> None:
    path = str(made(tmp_path, ".html"))
    with refused("save/not-a-file"):
        SideFiles(**{option: (path,) if option == "reports" else path}).refuse_loss(command(name))


def test_no_option_names_an_output_in_a_group_of_settings() -> None:
    """`SideFiles.streamed` replaces fields of the command itself."""
    nested = {
        (name, one.name) for name, kind in COMMANDS.items() for one in fields_of(kind) if one.metadata.get("writes")
    }
    assert nested <= set(outputs())


WRITERS: dict[str, tuple[str, Callable[[Path, Path], Any]]] = {
    "simplify": (".onnx", lambda source, path: onnxsmith.simplify(source, path)),
    "opset": (".onnx", lambda source, path: onnxsmith.edit(source, path).opset(18).finish()),
    "merge": (".onnx", lambda source, path: onnxsmith.merge(source, source, path, prefixes=("", "b_"))),
    "dump": (".npz", lambda source, path: onnxsmith.dump(source, path)),
    "dump in safetensors": (".safetensors", lambda source, path: onnxsmith.dump(source, path)),
    "run": (".npz", lambda source, path: onnxsmith.run(source, random=True, output=path)),
    "inspect": (".npz", lambda source, path: onnxsmith.inspect(source, weights=path)),
    "view": (".html", lambda source, path: onnxsmith.view(source, output=path)),
    "split": ("", lambda source, path: onnxsmith.split(source, path, into=2)),
    "bisect": (".onnx", lambda source, path: onnxsmith.bisect(source, model=path)),
    "save": (".onnx", lambda source, path: save(load(source), path)),
    "values": (".npz", lambda _, path: Writer(path)),
    "arrays": (".npz", lambda _, path: write_npz(path, {"a": np.ones(1)})),
    "picture": (".png", lambda _, path: write_image(np.ones((1, 4, 4), np.float32), path)),
    "patch": (".toml", lambda _, path: together(path, "", {}).__enter__()),
    "report": (".html", lambda _, path: replacing(path).__enter__()),
    "folder": ("", lambda _, path: beside(path).__enter__()),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_pipe_stays_a_pipe_and_nothing_waits_for_its_reader(source: Path, name: str, refused: Refused) -> None:
    suffix, write = WRITERS[name]
    pipe = made(source.parent, suffix)
    with refused("save/not-a-file"):
        write(source, pipe)
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert sorted(path.name for path in source.parent.iterdir()) == ["m.onnx", pipe.name]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root makes devices")
def test_a_device_stays_a_device(source: Path, refused: Refused) -> None:
    device = source.parent / "zero.npz"
    try:
        os.mknod(device, 0o600 | stat.S_IFCHR, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("this container makes no devices")
    with refused("save/not-a-file"):
        onnxsmith.dump(source, device)
    assert stat.S_ISCHR(device.lstat().st_mode)


def test_a_link_to_the_null_device_stays_a_link(source: Path) -> None:
    link = source.parent / "nothing.onnx"
    link.symlink_to(os.devnull)
    assert save(load(source), link) == [link]
    values = link.with_suffix(".npz")
    values.symlink_to(os.devnull)
    assert onnxsmith.dump(source, values).ok
    assert link.is_symlink()
    assert values.is_symlink()
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


def test_a_pipe_that_is_open_gets_the_model(source: Path) -> None:
    """As bash opens one for `>(command)`."""
    reading, writing = os.pipe()
    assert onnxsmith.simplify(source, f"/dev/fd/{writing}").ok
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert onnx.load_from_string(pipe.read()).graph.node[0].op_type == "Add"


def test_a_stream_takes_no_data_file(source: Path, refused: Refused) -> None:
    link = source.parent / "nothing.onnx"
    link.symlink_to(os.devnull)
    with refused("save/failed"):
        save(load(source), link, external_data=True)


@pytest.mark.parametrize(("path", "to"), [("-", "file"), ("/dev/stdout", "pipe"), ("/dev/fd/1", "file")])
def test_standard_output_gets_the_model_and_standard_error_the_report(source: Path, path: str, to: str) -> None:
    words = [sys.executable, "-m", "onnxsmith", "simplify", str(source), "-o", path]
    out = source.parent / "out"
    with out.open("wb") as file:
        file.write(b"before")
        file.flush()
        done = subprocess.run(
            words,
            stdout=file if to == "file" else subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=source.parent,
            check=True,
        )
    said = out.read_bytes().removeprefix(b"before") if to == "file" else done.stdout
    assert onnx.load_from_string(said).graph.node[0].op_type == "Add"
    assert b"verified" in done.stderr
    assert sorted(file.name for file in source.parent.iterdir()) == ["m.onnx", "out"]


@pytest.mark.skipif(shutil.which("mkfifo") is None, reason="POSIX only")
@pytest.mark.parametrize("path", ["/dev/stdin", "/dev/stderr", "/dev/fd/0", "/dev/fd/2", "/dev/fd/99"])
def test_the_other_standard_streams_take_no_output(source: Path, path: str, refused: Refused) -> None:
    with refused("save/not-a-file"):
        onnxsmith.simplify(source, path)
