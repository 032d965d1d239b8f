"""Records that cannot be read, written or run again: each is a problem with a fix, and nothing is half-written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import onnxsmith
from onnxsmith.base import rooms
from onnxsmith.base.options import fields_of, spelled
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli import application, command_words
from onnxsmith.cli.commands.base import Command
from onnxsmith.gate.records import record_file
from onnxsmith.gate.records.recording import Plan, Recording
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text

MODEL = '<ir_version: 10, opset_import: ["": 20]> g (float[2] x) => (float[2] y) { a = Identity(x) y = Neg(a) }'


_DONE = Report("check", Verdict.DONE)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    save(from_text(MODEL), tmp_path / "m.onnx")
    before = Path.cwd()
    os.chdir(tmp_path)
    yield tmp_path
    os.chdir(before)


def called(command: str) -> Report:
    result = CliRunner().invoke(application.app, [*command.split(), "--json"])
    return Report.from_json(result.stdout[result.stdout.index('{\n  "schema"') :])


def change(act: Callable[[Any], object]) -> None:
    data = json.loads(Path("r.json").read_text())
    act(data)
    Path("r.json").write_text(json.dumps(data))


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda path: path.unlink(), "record/not-found"),
    "a folder": (lambda path: (path.unlink(), path.mkdir()), "record/unreadable"),
    "empty": (lambda path: path.write_text(""), "record/unreadable"),
    "not JSON": (lambda path: path.write_text("{"), "record/unreadable"),
    "not text": (lambda path: path.write_bytes(b"\xff\xfe\0"), "record/unreadable"),
    "a list": (lambda path: path.write_text("[]"), "record/unreadable"),
    "deep": (lambda path: path.write_text("[" * 100_000), "record/unreadable"),
    "another statement": (
        lambda _: change(lambda data: data.update(predicateType="https://slsa.dev/x/v1")),
        "record/unreadable",
    ),
    "newer": (
        lambda _: change(lambda data: data.update(predicateType=data["predicateType"][:-1] + "2")),
        "record/newer",
    ),
    "a field less": (lambda _: change(lambda data: data["predicate"].pop("verdict")), "record/unreadable"),
    "another type": (lambda _: change(lambda data: data["predicate"].update(command=3)), "record/unreadable"),
    "no digest": (lambda _: change(lambda data: data["subject"][0].pop("digest")), "record/unreadable"),
    "a file twice": (lambda _: change(lambda data: data["subject"].append(data["subject"][0])), "record/unreadable"),
    "no folder": (lambda _: change(lambda data: data["predicate"].update(folder=None)), "record/unreadable"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file(name: str) -> None:
    assert called("simplify m.onnx -o out.onnx --record r.json").verdict.exit_code == 0
    act, expected = BAD[name]
    act(Path("r.json"))
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.verify_record("r.json")
    assert caught.value.problem.id == expected
    assert caught.value.problem.fix


def test_a_record_of_files_alone_is_checked_without_a_run() -> None:
    found = Recording(Plan(("check", "m.onnx"), ("m.onnx",), (), ("m.onnx",), None)).record(_DONE, ".")
    assert isinstance(found, record_file.Record)
    record_file.write(found, Path("r.json"))
    command = application.command(["verify-record", "r.json", "--no-replay"])
    assert command.run().headline == "r.json: 1 file as recorded; the command was not run again"
    Path("m.onnx").write_bytes(b"")
    assert command.run().verdict.exit_code == 1


def test_an_unknown_field_is_a_note() -> None:
    called("simplify m.onnx -o out.onnx --record r.json")
    change(lambda data: data["predicate"].update(mood="good"))
    report = onnxsmith.verify_record("r.json", replay=False).report
    assert any("mood" in note for note in report.notes)


@pytest.mark.parametrize(
    "words", [["run", "m.onnx"], ["simplify"], ["simplify", "m.onnx", "--what"], ["nothing"], [], ["baseline"]]
)
def test_a_record_of_another_command_runs_nothing(words: list[str]) -> None:
    called("simplify m.onnx -o out.onnx --record r.json")
    change(lambda data: data["predicate"].update(command=words))
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.verify_record("r.json")
    assert caught.value.problem.id == "record/replay-failed"


def test_outputs_of_a_changed_record_go_nowhere_else() -> None:
    called("simplify m.onnx -o out.onnx --record r.json")
    Path("precious.onnx").write_text("precious")
    change(lambda data: data["predicate"].update(command=["simplify", "m.onnx", "--output", "precious.onnx"]))
    assert onnxsmith.verify_record("r.json").report.verdict.exit_code == 1
    assert Path("precious.onnx").read_text() == "precious"
    assert not list(Path().glob("*.json.*"))


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ("p.json", "save/needed"),
        ("m.onnx", "save/needed"),
        ("out.onnx", "save/needed"),
        ("other.txt", "save/needed"),
        ("no/r.json", "save/no-folder"),
        ("steps.toml", "record/patch-file"),
    ],
)
def test_a_record_that_cannot_be_written_there(record: str, expected: str) -> None:
    Path("other.txt").write_text("other")
    report = called(f"opset m.onnx 21 -o out.onnx --write-patch p.json --record {record}")
    assert [one.id for one in report.problems] == [expected, "record/not-written"]
    assert Path("other.txt").read_text() == "other"
    assert not Path("out.onnx").exists()


def test_an_older_record_is_replaced() -> None:
    for _ in range(2):
        assert called("simplify m.onnx -o out.onnx --record r.json").verdict.exit_code == 0


def test_the_words_of_a_command_give_the_command_again() -> None:
    typed = [
        ["simplify", "m.onnx", "--output", "s.onnx", "--only", "a", "--only", "b", "--no-external-data", "--seed", "3"],
        ["simplify", "m.onnx", "--max-growth", "0.5", "--fix-defaults", "--dim", "n=2", "--tolerance", "0.001"],
        ["rename", "--output", "r.onnx", "--", "m.onnx", "-y", "--z"],
        ["extract", "m.onnx", "--output", "e.onnx", "--from=-a", "--to", "b"],
        ["check", "m.onnx", "--target", "onnxruntime", "--time-limit", "0.0"],
    ]
    for words in typed:
        command = application.command(words)
        assert application.command(command_words.words(command)) == command
        assert sorted(command_words.words(command)) == sorted(words)


def test_every_file_of_a_command_is_marked() -> None:
    """A word that names a file is hashed only if its option says so: the help of each option that is not marked names
    no file."""
    unmarked = {
        f"{name} {spelled(field)}"
        for name, command in rooms.classes("onnxsmith.cli.commands", Command).items()
        if command.subjects is not Command.subjects
        for field in fields_of(command)
        if field.metadata["kind"] != "flag"
        if any(
            word in f"{field.metadata['help']} {field.metadata.get('metavar')}"
            for word in ("FILE", "FOLDER", ".npz", "folder")
        )
        and not field.metadata.get("reads")
        and not field.metadata.get("writes")
        and field.metadata.get("short") != "-o"
    }
    assert unmarked == {
        "bundle --onnxruntime-root", "bundle --node-modules", "bundle --for",
    }, "programs, not inputs"  # fmt: skip
