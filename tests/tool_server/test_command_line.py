"""The arguments of a call become words of a command line, or a problem that names the nearest argument."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.cli import application
from onnxsmith.cli.tool_server.command_line import Permissions, command_line
from onnxsmith.cli.tool_server.root import Root
from onnxsmith.cli.tool_server.tools import VERBS, tools
from onnxsmith.cli.usage_schema import usage

USAGE = usage()
WRITES = Permissions(write=True)
TEXTS = {
    "export": "dynamic free input_names output_names runtime state strategy task dim",
    "simplify": "dim drop_output exactness free keep_open keep_output only opset runtime set_dim skip why",
    "compare": "dim free from runtime state to",
    "inspect": "dim name",
    "explain": "id",
    "op": "name",
    "diff": "ignore",
    "check": "dim free runtime",
}
"""Texts that name no file. A new option has to be added here, or be marked: `reads`, `writes`."""


def words(verb: str, given: dict[str, Any], folder: Path, permissions: Permissions = WRITES) -> tuple[str, ...]:
    tool = tools(USAGE, write=permissions.write, code=permissions.code)[verb]
    root = Root(Path(os.path.realpath(folder)))
    return command_line(tool, given, root, permissions, folder / "temporary").words


def refused(verb: str, given: dict[str, Any], folder: Path, permissions: Permissions = WRITES) -> Problem:
    with pytest.raises(OnnxsmithError) as raised:
        words(verb, given, folder, permissions)
    return raised.value.problem


@pytest.mark.parametrize("verb", VERBS)
def test_every_text_of_a_tool_is_confined_or_names_no_file(verb: str) -> None:
    tool = tools(USAGE, write=True, code=True)[verb]
    loose = {one.name for one in tool.parameters if one.kind == "string" and not one.reads and not one.suffixes}
    assert loose == set(TEXTS[verb].split())


@pytest.mark.parametrize("verb", VERBS)
def test_a_tool_is_what_the_command_line_says(verb: str) -> None:
    """Its description and those of its arguments; names and types; what is required."""
    about = next(one for one in USAGE["commands"] if one["name"] == verb)
    tool = tools(USAGE, write=True, code=True)[verb]
    schema = tool.schema()
    assert tool.description.startswith(about["help"])
    listed = {one["name"]: one for one in (*about["arguments"], *about["options"])}
    assert [listed[one.typed]["help"] for one in tool.parameters] == [
        one["description"] for one in schema["properties"].values()
    ]
    assert schema["required"] == [one["name"].lower() for one in about["arguments"] if one["required"]]
    assert len(schema["properties"]) == len(listed) - len({"--json", "--verbose", "--quiet"})
    assert all(name.isidentifier() for name in schema["properties"])


@pytest.mark.parametrize("verb", VERBS)
def test_a_read_only_tool_has_no_file_to_keep(verb: str) -> None:
    tool = tools(USAGE, write=False, code=False)[verb]
    assert {one.name for one in tool.parameters if one.suffixes} <= {"output"}


def test_words_are_options_then_arguments(tmp_path: Path) -> None:
    given = {
        "candidate": "b.onnx",
        "reference": "a.onnx",
        "input": ["x=1.npy", "y=2.npy"],
        "per-layer": True,
        "--seed": -3,
        "only_given": False,
        "tolerance": 0.5,
        "worst_input": "worst.npz",
    }
    assert words("compare", given, tmp_path) == (
        "--input=x=1.npy", "--input=y=2.npy", "--seed=-3", "--per-layer", "--tolerance=0.5",
        "--worst-input=worst.npz", "--", "a.onnx", "b.onnx",
    )  # fmt: skip


def test_a_choice_of_three(tmp_path: Path) -> None:
    given = {"model": "a.onnx", "output": "b.onnx"}
    assert "--no-external-data" in words("simplify", {**given, "external_data": False}, tmp_path)
    assert "--external-data" in words("simplify", {**given, "external_data": True}, tmp_path)
    assert not [one for one in words("simplify", {**given, "external_data": None}, tmp_path) if "external" in one]


@pytest.mark.parametrize(
    ("verb", "given", "says"),
    [
        ("compare", {"reference": "a.onnx", "candidat": "b.onnx"}, "write candidate"),
        ("compare", {"reference": "a.onnx"}, "add candidate"),
        ("compare", {"reference": "a.onnx", "candidate": 7}, "give a string"),
        ("compare", {"reference": "a.onnx", "candidate": "b.onnx", "seed": "7"}, "give a integer"),
        ("compare", {"reference": "a.onnx", "candidate": "b.onnx", "seed": True}, "give a integer"),
        ("compare", {"reference": "a.onnx", "candidate": "b.onnx", "input": [["x"]]}, "or a list of them"),
        ("compare", {"reference": "a.onnx", "candidate": "b.onnx", "per_layer": 1}, "give a boolean"),
        ("compare", {"reference": "a.onnx", "candidate": "b.onnx", "per_layer": True, "per-layer": True}, "leave out"),
        ("inspect", {"model": ""}, "give the path"),
        ("inspect", {"model": "a\0b"}, "leave the character out"),
        ("inspect", {"model": "\ud800"}, "whole characters"),
        ("inspect", {"model": "a.onnx", "json": True}, "leave the argument out"),
        ("explain", {"id": "x" * 100_001}, "the part around the error"),
        ("explain", {"id": "-"}, "the text itself"),
    ],
)
def test_a_wrong_argument(tmp_path: Path, verb: str, given: dict[str, Any], says: str) -> None:
    found = refused(verb, given, tmp_path)
    assert (found.id, says in found.fix) == ("mcp/argument", True), found


@pytest.mark.parametrize("name", ["html", "view", "record", "report", "worst_input", "--html"])
def test_a_read_only_server_keeps_no_file(tmp_path: Path, name: str) -> None:
    given = {"reference": "a.onnx", "candidate": "b.onnx", name: "x.html"}
    found = refused("compare", given, tmp_path, Permissions())
    assert (found.id, "--write" in found.fix) == ("mcp/read-only", True)


@pytest.mark.parametrize("name", ["net.py", "package.json", "model", "m.onnx.data", "m.ONNX "])
def test_an_output_has_the_ending_of_a_model(tmp_path: Path, name: str) -> None:
    assert refused("simplify", {"model": "a.onnx", "output": name}, tmp_path).id == "mcp/output"


@pytest.mark.parametrize(
    ("verb", "given"),
    [
        ("export", {"model": "net.py:build"}),
        ("export", {"model": "package.module:build"}),
        ("export", {"model": "folder", "transformers": True}),
        ("export", {"model": "folder", "task": "auto", "trust_remote_code": True}),
        ("compare", {"reference": "net.py:build", "candidate": "a.onnx"}),
        ("compare", {"reference": "a.onnx", "candidate": "package.module:build"}),
        ("compare", {"reference": "a.onnx", "candidate": "net.py:a.onnx"}),
        ("compare", {"reference": "a.onnx", "candidate": "net.py:build@a.onnx"}),
        ("compare", {"reference": "a.onnx", "candidate": "package.pb@module:build"}),
        ("compare", {"reference": "program.pt2", "candidate": "a.onnx"}),
        ("compare", {"reference": "a.onnx", "candidate": "program.PT2"}),
        ("inspect", {"model": "net.py:build", "program": True}),
        ("inspect", {"model": "package.onnx@module:build", "program": True}),
    ],
)
def test_code_needs_the_permission(tmp_path: Path, verb: str, given: dict[str, Any]) -> None:
    found = refused(verb, given, tmp_path)
    assert (found.id, "--allow-code" in found.fix) == ("mcp/code", True)
    assert words(
        verb, {**given, **({"output": "n.onnx"} if verb == "export" else {})}, tmp_path, Permissions(True, True)
    )


def test_runtimes_of_a_model_are_no_code(tmp_path: Path) -> None:
    given = {"reference": "a.onnx@reference", "candidate": "a.onnx@onnxruntime:disable"}
    assert words("compare", given, tmp_path)[-2:] == tuple(given.values())


@pytest.mark.parametrize(
    ("verb", "given", "file"),
    [
        ("simplify", {"model": "a.onnx"}, "model.onnx"),
        ("simplify", {"model": "a.onnx", "output": "sub/small.onnx"}, "small.onnx"),
        ("check", {"model": "a.onnx", "fix": True}, "model.onnx"),
        ("check", {"model": "a.onnx"}, ""),
    ],
)
def test_a_read_only_server_writes_into_a_temporary_folder(
    tmp_path: Path, verb: str, given: dict[str, Any], file: str
) -> None:
    outputs = [one for one in words(verb, given, tmp_path, Permissions()) if one.startswith("--output")]
    assert outputs == ([f"--output={tmp_path / 'temporary' / file}"] if file else [])


@pytest.mark.parametrize(
    "given",
    [
        {"id": "--model=/etc/passwd", "model": "a.onnx"},
        {"id": "--model", "model": "a.onnx"},
        {"id": "--help-all", "model": "a.onnx"},
    ],
)
def test_a_text_that_looks_like_an_option_is_a_text(tmp_path: Path, given: dict[str, Any]) -> None:
    """The command line would read an option in place of the last argument."""
    command = application.command(["explain", *words("explain", given, tmp_path)])
    assert (command.id, command.model) == (given["id"], "a.onnx")  # type: ignore[attr-defined]
