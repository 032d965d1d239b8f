"""What cannot be reduced is refused with its own problem, and nothing is written."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import onnx
import pytest

import onnxsmith
from onnxsmith.cli.commands.compare import Reduce
from tests.comparison.reduction.planted import endless, lost_nan, planted, unknown
from tests.conftest import Refused

REFUSES = "refuses onnxruntime"


@pytest.mark.parametrize(
    ("id_", "check"),
    [
        ("runtime/unknown", "refuses nothing"),
        ("runtime/unknown", "differs onnxruntime nothing"),
        ("runtime/unknown-option", "refuses onnxruntime:fastest"),
        ("runtime/unknown-option", "refuses reference:basic"),
        ("reduce/unknown-check", "explodes onnxruntime"),
        ("reduce/unknown-check", ""),
        ("reduce/unknown-check", "refuses"),
        ("reduce/unknown-check", "refuses a b"),
        ("reduce/unknown-check", "crashes"),
        ("reduce/unknown-check", "differs onnxruntime onnxruntime"),
        ("reduce/unknown-check", "differs onnxruntime:disable onnxruntime:disable_all"),
        ("reduce/unknown-check", "differs onnxruntime onnxruntime:cpu"),
        ("reduce/unknown-check", "slow onnxruntime soon"),
        ("reduce/unknown-check", "slow onnxruntime -1"),
        ("reduce/unknown-check", "slow onnxruntime nan"),
        ("reduce/unknown-check", "command python check.py"),
        ("reduce/unknown-check", "refuses 'onnxruntime"),
        ("reduce/command", "command /no/such/program {model}"),
        ("reduce/does-not-fail", "crashes reference"),
        ("reduce/does-not-fail", "slow reference 50"),
    ],
)
def test_a_check_that_is_none(id_: str, check: str, tmp_path: Path, refused: Refused) -> None:
    with refused(id_) as refusal:
        onnxsmith.reduce(planted(unknown, 1), tmp_path / "out", check=check)
    assert refusal.problem.fix
    assert not list(tmp_path.iterdir())


def test_what_does_not_fail(tmp_path: Path, refused: Refused) -> None:
    for check in ("refuses reference", "crashes onnxruntime", lambda path, feeds: False):
        with refused("reduce/does-not-fail"):
            onnxsmith.reduce(planted(lost_nan, 1), tmp_path / "out", check=check)
    assert not list(tmp_path.iterdir())


def test_a_check_that_raises_says_so(refused: Refused) -> None:
    def check(path: Path, feeds: Any) -> bool:
        raise RuntimeError("out of cheese")

    with refused("reduce/does-not-fail") as refusal:
        onnxsmith.reduce(planted(unknown, 1), check=check)
    assert "out of cheese" in refusal.problem.why


def test_a_failure_that_comes_and_goes(refused: Refused) -> None:
    asked: list[Path] = []

    def check(path: Path, feeds: Any) -> bool:
        asked.append(path)
        return len(asked) == 1

    with refused("reduce/flaky"):
        onnxsmith.reduce(planted(unknown, 1), check=check)


def test_a_failure_that_the_written_files_do_not_show(tmp_path: Path, refused: Refused) -> None:
    asked: list[Path] = []

    def check(path: Path, feeds: Any) -> bool:
        asked.append(path)
        return len(asked) < 4

    with refused("reduce/not-confirmed"):
        onnxsmith.reduce(planted(unknown, 6), tmp_path / "out", check=check)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("seconds", [0, -1, 0.02])
def test_too_little_time(seconds: float, tmp_path: Path, refused: Refused) -> None:
    command = f"command {sys.executable} -c 'import time; time.sleep(9)' {{model}}"
    with refused("reduce/time-limit"):
        onnxsmith.reduce(planted(unknown, 1), tmp_path / "out", check=command, time_limit=seconds)
    with refused("reduce/time-limit"):
        onnxsmith.reduce(planted(endless, 1), tmp_path / "out", check=REFUSES, time_limit=seconds and seconds * 20)


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x08\x0a"])
def test_garbage(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.reduce(path, tmp_path / "out", check=REFUSES)
    assert caught.value.problem.id.startswith("model/")


def test_a_folder_of_somebody_else(tmp_path: Path, refused: Refused) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "thesis.tex").write_text("years of work")
    with refused("reduce/folder-in-use"):
        onnxsmith.reduce(planted(unknown, 1), folder, check=REFUSES)
    with refused("reduce/folder-in-use"):
        onnxsmith.reduce(planted(unknown, 1), folder / "thesis.tex", check=REFUSES)
    with refused("save/no-folder"):
        onnxsmith.reduce(planted(unknown, 1), tmp_path / "no" / "out", check=REFUSES)
    assert (folder / "thesis.tex").read_text() == "years of work"


def test_the_command_line_needs_a_folder_and_one_check(tmp_path: Path, refused: Refused) -> None:
    onnx.save(planted(unknown, 1), tmp_path / "m.onnx")
    model = str(tmp_path / "m.onnx")
    with refused("reduce/no-output"):
        Reduce(model, check=REFUSES).run()
    with refused("reduce/unknown-check"):
        Reduce(model, str(tmp_path / "out")).run()
    with refused("reduce/unknown-check"):
        Reduce(model, str(tmp_path / "out"), check=REFUSES, command="true {model}").run()
    with refused("reduce/unknown-check"):
        Reduce(model, str(tmp_path / "out"), check=REFUSES, status=3).run()


def test_a_check_of_another_type(refused: Refused) -> None:
    with refused("reduce/unknown-check"):
        onnxsmith.reduce(planted(unknown, 1), check=7)  # type: ignore[arg-type]
