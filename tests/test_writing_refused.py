"""What a command says of a file that it cannot write: the path that was asked for, why, and what helps."""

from __future__ import annotations

import errno
import json
import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
from typer.testing import CliRunner

from onnxsmith.base.folders import replacing
from onnxsmith.base.limits import writing_refused
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.written_files import Written
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli import application
from onnxsmith.cli.application import app
from onnxsmith.cli.render.report_files import Pages, write
from onnxsmith.graph.files.save import disk_problems, save
from onnxsmith.graph.files.text import from_text
from onnxsmith.viewer.view import view
from tests import gallery

MODEL = '<ir_version: 10, opset_import: ["": 20]> g (float[N] x) => (float[N] y) { y = Neg(x) }'
REPORT = Report("inspect", Verdict.DONE, (Written({}, "nothing"),), headline="m")


def through_view(path: Path) -> None:
    view(from_text(MODEL), output=path)


def through_pages(path: Path) -> None:
    problems = write(REPORT, Pages(html=str(path))).problems
    if problems:
        raise OnnxsmithError(problems[0])


@pytest.mark.parametrize("command", [through_view, through_pages])
def test_the_fix_for_a_missing_folder_works_when_pasted(tmp_path: Path, command: Callable[[Path], None]) -> None:
    path = tmp_path / "a folder" / "in it" / "page.html"
    with pytest.raises(OnnxsmithError) as caught:
        command(path)
    found = caught.value.problem
    assert found.fix == f"`mkdir -p {shlex.quote(str(path.parent))}`"
    assert ".onnxsmith-" not in f"{found.where} {found.why}"
    assert found.where in (str(path), str(path.parent))
    subprocess.run(found.fix, shell=True, check=True)
    command(path)
    assert path.is_file()


@pytest.mark.parametrize("command", [through_view, through_pages])
def test_a_path_that_is_a_folder(tmp_path: Path, command: Callable[[Path], None]) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        command(tmp_path)
    found = caught.value.problem
    assert (found.where, found.why) == (str(tmp_path), f"{tmp_path} is a folder")
    assert found.fix.startswith("give the path of a file in it, such as ")


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OnnxsmithError) as caught:
        through_pages(tmp_path / "file" / "page.html")
    assert caught.value.problem.why == f"{tmp_path / 'file'} is a file, not a folder"


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS])
def test_a_folder_without_permission(tmp_path: Path, number: int) -> None:
    why, fix = writing_refused(tmp_path / "m.html", OSError(number, os.strerror(number), "/x/.m.html.onnxsmith-1"))
    assert why == f"this user may not write to the folder {tmp_path}: {os.strerror(number)}"
    assert fix.startswith("give another path, such as ")


def test_a_full_disk(tmp_path: Path) -> None:
    why, fix = writing_refused(tmp_path / "m.html", OSError(errno.ENOSPC, "No space left on device"))
    assert (why, fix.partition(",")[0]) == ("the disk is full", "free some space")


def test_the_page_that_failed_is_named_and_none_is_written(tmp_path: Path) -> None:
    good, bad = tmp_path / "report.html", tmp_path / "none" / "view.html"
    (tmp_path / "m.onnxtxt").write_text(MODEL)
    report = write(REPORT, Pages(str(good), str(bad), (str(tmp_path / "m.onnxtxt"),)))
    assert [one.where for one in report.problems] == [str(bad)]
    assert not good.exists()


def test_a_missing_folder_is_no_folder(tmp_path: Path) -> None:
    path = tmp_path / "none" / "m.json"
    with pytest.raises(OnnxsmithError) as caught, disk_problems(path), replacing(path) as aside:
        aside.write_text("x")
    assert caught.value.problem.id == "save/no-folder"


LONG = "n" * 251


@pytest.mark.parametrize(
    "words",
    [
        ["rename", "m.onnx", "x", "image", "-o", f"{LONG}.onnx"],
        ["dump", "m.onnx", "-o", f"{LONG}.npz.npz"],
        ["inspect", "m.onnx", "--html", f"{LONG}.html"],
        ["inspect", "m.onnx", "--weights", f"{LONG}.npz.npz"],
        ["view", "m.onnx", "-o", f"{LONG}.html"],
        ["split", "m.onnx", "--into", "2", "-o", LONG * 2],
        ["simplify", "m.onnx", "-o", "new.onnx", "--record", f"{LONG}.json"],
    ],
    ids=lambda words: " ".join(words)[:20],
)
def test_a_name_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    save(from_text(MODEL), "m.onnx")
    done = CliRunner().invoke(app, [*words, "--json"])
    first, *_ = json.loads(done.output)["problems"]
    assert first["id"] == "run/name-too-long"
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


def test_a_name_that_is_too_long_with_its_data(tmp_path: Path) -> None:
    model = from_text(MODEL)
    weight = ir.tensor(np.zeros(5000, np.float32), name="w")
    model.graph.register_initializer(ir.Value(name="w", const_value=weight))
    with pytest.raises(OnnxsmithError) as caught:
        save(model, tmp_path / f"{'n' * 250}.onnx", external_data=True)
    assert caught.value.problem.fix == "give a shorter path"
    assert save(model, tmp_path / f"{'n' * 250}.onnx") == list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["--report", "--html", "--view", "--record"])
@pytest.mark.parametrize("path", [".", "..", "/", "folder", ""])
def test_the_path_of_a_page_or_report_is_that_of_a_folder(tmp_path: Path, option: str, path: str) -> None:
    if not path and option != "--report":
        return  # an option with an empty path is not given
    with gallery.inside(tmp_path, {}):
        Path("folder").mkdir()
        Path("m.onnxtxt").write_text(MODEL)
        text, status = gallery.called(application.main, ["simplify", "m.onnxtxt", "-o", "n.onnx", option, path])
        assert status == 2
        assert text.startswith("save/not-a-file: the output path is that of a folder\n")
        assert not Path("n.onnx").exists()
