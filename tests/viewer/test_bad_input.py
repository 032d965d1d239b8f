"""Models and reports that cannot be shown: each is a problem with a fix, and nothing is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.cli.commands.inspect import View
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from tests.viewer.models import HEAD

TEXT = HEAD + "g (float[3] x) => (float[3] y) { [first] t = Neg(x) [second] y = Relu(t) }"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    save(from_text(TEXT), tmp_path / "m.onnx")
    return tmp_path


def problem_of(folder: Path, command: View) -> Problem:
    before = sorted(folder.iterdir())
    with pytest.raises(OnnxsmithError) as caught:
        command.run()
    assert sorted(folder.iterdir()) == before, "something was written"
    return caught.value.problem


def good() -> dict[str, object]:
    return onnxsmith.dump("m.onnx", runtime="reference").report.to_dict()


REPORTS: dict[str, tuple[str, Callable[[], str | bytes]]] = {
    "empty": ("report/unreadable", lambda: ""),
    "cut off": ("report/unreadable", lambda: json.dumps(good())[:-40]),
    "a list": ("report/unreadable", lambda: "[]"),
    "a number": ("report/unreadable", lambda: "3"),
    "deep": ("report/unreadable", lambda: "[" * 100_000),
    "another tool's": ("report/unreadable", lambda: json.dumps({"results": [{"name": "first", "time": 3}]})),
    "of a newer schema": ("report/unreadable", lambda: json.dumps(good() | {"schema": 2, "version": "99.0"})),
    "with a newer part": (
        "report/unreadable",
        lambda: json.dumps(good() | {"parts": [{"kind": "heat", "nodes": {}}], "version": "99.0"}),
    ),
    "with broken hashes": ("report/unreadable", lambda: json.dumps(good() | {"models": [{"path": 3}]})),
    "a model": ("report/unreadable", lambda: b"\x08\x0a\xff\xfe" + Path("m.onnx").read_bytes()),
    "without parts": ("view/no-figures", lambda: json.dumps(good() | {"parts": []})),
}


@pytest.mark.parametrize("kind", REPORTS)
def test_reports(folder: Path, kind: str) -> None:
    id_, make = REPORTS[kind]
    content = make()
    (folder / "r.json").write_bytes(content if isinstance(content, bytes) else content.encode())
    found = problem_of(folder, View("m.onnx", with_=("r.json",)))
    assert (found.id, found.where) == (id_, "r.json")
    assert found.fix


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the file is empty"),
        ("hello, not json", "it is not JSON, from line 1 on"),
        ("[]", "the file is JSON, but contains a list"),
        ("null", "the file is JSON, but contains null"),
        ('{"a": 1}', "the file is JSON, but lacks these fields of a report: schema, command, verdict, parts"),
        ('{"to": "float16", "keep": ["first"]}', "it is a list of nodes to keep"),
    ],
)
def test_what_is_no_report_is_said_in_words(folder: Path, text: str, why: str) -> None:
    (folder / "r.json").write_text(text)
    found = problem_of(folder, View("m.onnx", with_=("r.json",)))
    assert (found.id, found.what) == ("report/unreadable", "this is not an onnxsmith report")
    assert found.why.startswith(why)


def test_a_damaged_field_is_named_without_the_words_of_python(folder: Path) -> None:
    for change, said in (
        ({"models": [{"path": 3}]}, "0.path: "),
        ({"verdict": "odd"}, "'odd' is not a valid Verdict"),
        ({"parts": [{"kind": "values"}]}, "Values: model: Field required"),
        ({"parts": [3]}, "a field does not have the form"),
    ):
        (folder / "r.json").write_text(json.dumps(good() | change))
        found = problem_of(folder, View("m.onnx", with_=("r.json",)))
        assert found.what == "this is not a report that this version can read"
        assert found.why.startswith(said)


def test_the_version_of_a_newer_report_is_told(folder: Path) -> None:
    for kind, said in (
        ("of a newer schema", "schema 2"),
        ("with a newer part", "the report has a part of the kind 'heat'"),
    ):
        (folder / "r.json").write_text(str(REPORTS[kind][1]()), encoding="utf-8")
        why = problem_of(folder, View("m.onnx", with_=("r.json",))).why
        assert why.startswith(said)
        assert why.endswith(f"; onnxsmith 99.0 wrote it, this is {onnxsmith.__version__}")


def test_new_keys_of_a_newer_report_are_passed_over(folder: Path) -> None:
    data = good() | {"mood": "fine", "version": "99.0"}
    (folder / "r.json").write_text(json.dumps(data), encoding="utf-8")
    report = View("m.onnx", with_=("r.json",)).run()
    assert "largest magnitude" in str(report.parts)


def test_a_folder_or_nothing_as_a_report(folder: Path) -> None:
    (folder / "sub").mkdir()
    for name in ("sub", "none.json", "nul\0.json"):
        assert problem_of(folder, View("m.onnx", with_=(name,))).id == "view/report"


MODELS: dict[str, tuple[str, bytes | None]] = {
    "empty": ("model/empty", b""),
    "noise": ("model/", b"\xff\x00\xab" * 100),
    "a web page": ("model/", b"<!doctype html><html></html>"),
    "without a graph": ("model/", b"\x08\x0a"),
    "nothing": ("model/not-found", None),
}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("second", [False, True])
def test_models(folder: Path, kind: str, second: bool) -> None:
    id_, content = MODELS[kind]
    if content is not None:
        (folder / "bad.onnx").write_bytes(content)
    command = View("m.onnx", "bad.onnx") if second else View("bad.onnx")
    found = problem_of(folder, command)
    assert found.id.startswith(id_)
    assert found.where.endswith("bad.onnx")


def test_a_model_that_was_cut_off(folder: Path) -> None:
    whole = (folder / "m.onnx").read_bytes()
    (folder / "bad.onnx").write_bytes(whole[: len(whole) // 2])
    assert problem_of(folder, View("bad.onnx")).id.startswith("model/")


def test_a_model_without_names_metadata_and_producer(folder: Path) -> None:
    save(from_text(HEAD + "g (float[3] x) => (float[3] y) { t = Neg(x) y = Relu(t) }"), folder / "plain.onnx")
    report = View("plain.onnx").run()
    assert report.headline == "plain.onnx: 2 nodes"
    assert (folder / "plain.html").exists()
