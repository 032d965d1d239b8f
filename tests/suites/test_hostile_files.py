"""Every verb refuses files that are none, or not what it takes: with a problem, in seconds, and never with a traceback,
an unexpected error or a signal."""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import os
import random
import re
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest

import onnxsmith
from onnxsmith.base import rooms
from onnxsmith.base.options import fields_of, spelled
from onnxsmith.cli import application, command_words
from onnxsmith.cli.commands.base import Command

SEED = 20261130
SECONDS = 10
"""The most seconds of a refusal. A choice: ten times what the slowest one takes here."""
MODEL = """
<ir_version: 10, opset_import: ["": 20]>
g (float[n,3] x) => (float[n,3] y) <float[3] w = {1,2,3}>
{ y = Mul(x, w) }"""
DRIVER = """
import contextlib, faulthandler, io, json, sys, time
from onnxsmith.cli import application
for number, words in enumerate(json.loads(sys.argv[1])):
    faulthandler.dump_traceback_later(SECONDS * (1 if number else 6), exit=True)  # the first one imports what it needs
    said, sys.argv, status, begun = io.StringIO(), ["onnxsmith", *words], 0, time.monotonic()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            application.main()
        except SystemExit as end:
            status = end.code or 0
    print(json.dumps([status, said.getvalue()]), flush=True)
"""


def bytes_of_model() -> bytes:
    content: bytes = onnx.parser.parse_model(MODEL).SerializeToString()
    return content


def zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("model.onnx", bytes_of_model())
    return buffer.getvalue()


def negative() -> bytes:
    model = onnx.parser.parse_model(MODEL)
    model.graph.initializer[0].dims[:] = [-3]
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = -3
    content: bytes = model.SerializeToString()
    return content


def damaged(seed: int) -> bytes:
    draw, content = random.Random(seed), bytearray(bytes_of_model())
    for _ in range(3):
        content[draw.randrange(len(content))] = draw.randrange(256)
    return bytes(content)


BYTES: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "truncated": lambda: bytes_of_model()[:-20],
    "text": lambda: b"a text\n" * 9,
    "gzip": lambda: gzip.compress(bytes_of_model()),
    "zip": zipped,
    "negative": negative,
    "damaged": lambda: damaged(SEED),
    "damaged in another way": lambda: damaged(SEED + 1),
    "nested in TOML": lambda: b"a = " + b"[" * 20_000 + b"]" * 20_000,
    "nested in JSON": lambda: b"[" * 20_000 + b"]" * 20_000,
    "zeros": lambda: bytes(100_000),
    "array": lambda: b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 60_000,
}


def hostile(folder: Path) -> Iterator[str]:
    """Makes the files, without a suffix, and yields their names."""
    for name, content in BYTES.items():
        (folder / name).write_bytes(content())
    (folder / "directory").mkdir()
    (folder / "loop").symlink_to("loop")
    yield from (*BYTES, "directory", "loop", "missing")
    if hasattr(os, "mkfifo"):
        os.mkfifo(folder / "pipe")
        (folder / "endless").symlink_to("/dev/zero")
        yield from ("pipe", "endless")
    if hasattr(os, "geteuid") and os.geteuid() != 0:
        (folder / "locked").touch(0)
        yield "locked"


COMMANDS = {one.name: one for one in rooms.classes("onnxsmith.cli.commands", Command).values()}
SUFFIXES = (".onnx", ".npz", ".npy", ".toml", ".json", ".intoto", ".sqlite", ".py", ".png")
METAVARS = ("FILE", "FILE…", "FOLDER", "MODEL", "MODEL…", "PLAN", "STORE…")
"""Values that are files, besides those of fields that are marked so."""
WORD = re.compile(r"(\w+=)?([^=:]+?)(:\w+)?")
"""A file in a command line: `net.onnx`, `x=photo.png`, `net.py:build`."""


def taking(command: type[Command]) -> list[dataclasses.Field[Any]]:
    """Returns the fields that may be files which the command reads."""
    fields = (one for one in fields_of(command) if not one.metadata.get("writes"))
    return [one for one in fields if one.metadata.get("reads") or one.metadata.get("metavar") in METAVARS]


def usual_files(command: type[Command]) -> tuple[list[str], dict[str, re.Match[str]]]:
    """Returns the words of the usual line, and those that name files which the command reads."""
    usual = shlex.split(command.usual_line)[1:]
    outputs = command_words.written(application.command(usual)).values()
    files = {word: match for word in usual if word not in outputs and (match := WORD.fullmatch(word))}
    return usual, {word: match for word, match in files.items() if Path(match[2]).suffix in SUFFIXES}


def lines(command: type[Command], folder: Path) -> Iterator[list[str]]:
    """Yields command lines: the usual one, with each file in it replaced by each of the hostile ones, or one added if
    it has none; and a line for each option that reads a file."""
    usual, read = usual_files(command)
    valid = [_valid(one, read, folder) for one in usual]
    options = [spelled(one) for one in taking(command) if one.metadata["kind"] != "argument"]
    for name in hostile(folder):
        for word, match in read.items():
            file = _named(folder, name, Path(match[2]).suffix)
            yield [
                f"{match[1] or ''}{file}{match[3] or ''}" if one == word else _valid(one, read, folder) for one in usual
            ]
        if not read:
            yield [*usual, str(_named(folder, name, ".onnx"))]
        for option in options:
            for suffix in (".npz", ".toml", ".json", ".jsonl"):
                yield [*valid, option, str(_named(folder, name, suffix))]


def _named(folder: Path, name: str, suffix: str) -> Path:
    """Returns the hostile file under a name with this suffix."""
    file = folder / f"{name}{suffix}"
    if not os.path.lexists(file) and os.path.lexists(folder / name):
        file.symlink_to(name)
    return file


def _valid(word: str, read: Collection[str], folder: Path) -> str:
    """Returns a valid model in place of a file of the usual line."""
    return str(folder / "valid.onnx") if word in read and word.endswith(".onnx") else word


@pytest.mark.parametrize("name", [name for name, one in sorted(COMMANDS.items()) if taking(one) or usual_files(one)[1]])
def test_a_verb_refuses_hostile_files(tmp_path: Path, name: str, whole: bool) -> None:
    (tmp_path / "valid.onnx").write_bytes(bytes_of_model())
    asked = list(lines(COMMANDS[name], tmp_path))
    if not whole:
        asked = random.Random(SEED).sample(asked, min(len(asked), 10))
    environment = os.environ | {"PYTHONPATH": str(Path(onnxsmith.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-P", "-c", DRIVER.replace("SECONDS", str(SECONDS)), json.dumps(asked)],
        capture_output=True, text=True, check=False, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    for words, (status, said) in zip(asked, answers, strict=False):
        shown = f"{shlex.join(words)}: status {status}\n{said}"
        assert "Traceback" not in said, shown
        assert "internal/unexpected" not in said, shown
        assert status in (0, 1, 2, 3), shown
    assert len(answers) == len(asked), f"{shlex.join(asked[len(answers)])}: status {done.returncode}\n{done.stderr}"
