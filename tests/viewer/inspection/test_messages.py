"""Each file of `viewer/messages/` holds messages as users reported them; each of them leads to its file, however
pasted."""

from __future__ import annotations

import importlib
import io
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.parts.explanations import MessageCause
from onnxsmith.base.report.parts.item_views import NodeView
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli import application
from onnxsmith.cli.commands.explain import Explain
from onnxsmith.runtimes._onnxruntime_errors import translate
from onnxsmith.viewer.inspection import cause_matching
from onnxsmith.viewer.inspection.cause_matching import Example, Message, filled, known

MODEL = """
<ir_version: 10, opset_import: ["": 20]>
g (float[2, n] x) => (float[2, n] y, float[2, n] z) {
    [first] a = Relu(x)
    [second] b = Sqrt(a)
    y = Neg(b)
    z = Abs(b)
}
"""
EXAMPLES = [(message, example) for message in known().values() for example in message.examples]
COMMANDS = sorted({one.run for message in known().values() for one in message.helps if one.run})
LINK = r"https://github\.com/[^/]+/[^/]+/(issues/\d+|pull/\d+|blob/\S+\.py)"
"""A thread, or the source that raises the message if no thread quotes it."""
PROGRAMS = {"pip", "git", "python"}


def ids(text: str) -> list[str]:
    return [found.message.id for found in cause_matching.match(text)]


def at(example: tuple[Message, Example]) -> str:
    return f"{example[0].id}: {example[1].link}"


def test_there_are_messages_of_every_tool() -> None:
    assert len(known()) >= 40
    tools = {message.tool for message in known().values()}
    assert tools >= {"onnx", "onnxruntime", "tensorrt", "openvino", "coreml", "torch", "tf2onnx", "tflite"}


def test_the_command_of_a_failed_run_keeps_what_decides_the_cause() -> None:
    commands = 0
    for message, example in EXAMPLES:
        fix = translate(RuntimeError(example.text)).problem.fix
        if message.tool != "onnxruntime" or not fix.startswith("`onnxsmith explain"):
            continue
        commands += 1
        asked = shlex.split(fix[1 : fix.rindex("`")])[2]
        whole, found = (cause_matching.match(text)[:1] for text in (example.text, asked))
        assert [one.message.id for one in found] == [one.message.id for one in whole], example.link
        of_file = {"file", "said"}  # the name of a file may be a temporary one; `said` is a part of the message
        names = [{name: text for name, text in one.names.items() if name not in of_file} for one in (*found, *whole)]
        assert names[: len(found)] == names[len(found) :], example.link
    assert commands > 100


@pytest.mark.parametrize("example", EXAMPLES, ids=at)
def test_a_message_leads_to_its_own_file_first(example: tuple[Message, Example]) -> None:
    message, shown = example
    assert ids(shown.text)[0] == message.id
    names = cause_matching.match(shown.text)[0].names
    assert names == names | dict(shown.names)


@pytest.mark.parametrize("example", EXAMPLES, ids=at)
def test_a_message_with_prefixes_colours_and_a_traceback_around_it(example: tuple[Message, Example]) -> None:
    message, shown = example
    lines = [f"E   \x1b[31m{line}\x1b[0m" for line in shown.text.splitlines()]
    before = 'Traceback (most recent call last):\n  File "/home/me/net.py", line 7, in <module>\n    main()\n'
    assert ids(before + "\n".join(lines) + "\n2024-01-01 done\n")[0] == message.id


@pytest.mark.parametrize("example", EXAMPLES, ids=at)
def test_a_message_that_a_terminal_broke_into_lines(example: tuple[Message, Example]) -> None:
    message, shown = example
    text = " ".join(shown.text.split())
    assert ids("\n".join(text[start : start + 37] for start in range(0, len(text), 37)))[0] == message.id


@pytest.mark.parametrize("message", known().values(), ids=lambda message: message.id)
def test_a_file_is_complete_and_plain(message: Message) -> None:
    assert re.fullmatch(r"[a-z0-9]+/[a-z0-9]+(-[a-z0-9]+)*", message.id)
    assert message.why.endswith(".")
    assert not message.what.endswith(".")
    assert message.helps
    assert all(one.say.endswith(".") for one in message.helps)
    assert all(re.fullmatch(LINK, link) for link in message.links)
    places = {
        name
        for text in (message.what, *(one.run + one.patch for one in message.helps))
        for name in re.findall(r"\{(\w+)\|", text)
    }
    read = {group.rstrip("0123456789") for pattern in message.patterns for group in pattern.groupindex}
    computed = {"opset"} if {"op", "attribute"} <= read else set()  # the opset that has the attribute
    computed |= {"input"} | ({"operand"} if "other" in read else set())  # of the model
    assert places <= read | computed | {"op", "node", "tensor"}
    assert all(bool(one.patch) == (".toml" in one.run) for one in message.helps)
    assert "{" not in filled(message.what, {})


def parsed(words: list[str]) -> None:
    app = typer.main.get_command(application.app)
    command = app.commands[words[0]]  # type: ignore[attr-defined]
    with command.make_context(words[0], words[1:]):
        pass


@pytest.mark.parametrize("run", [run for run in COMMANDS if run.startswith("onnxsmith ")])
def test_a_command_is_there_with_its_arguments(run: str) -> None:
    parsed(shlex.split(filled(run, {}))[1:])


def test_a_command_that_is_not_there_fails() -> None:
    with pytest.raises(Exception, match=r"[Nn]o such option"):
        parsed(["simplify", "model.onnx", "--nothing"])


@pytest.mark.torch
@pytest.mark.parametrize("run", [run for run in COMMANDS if " " not in run])
def test_a_function_is_there(run: str) -> None:
    module, *path = run.split(".")
    found = importlib.import_module(module)
    for name in path:
        found = getattr(found, name)


def test_other_programs_are_few() -> None:
    assert {run.split()[0] for run in COMMANDS if " " in run} == PROGRAMS | {"onnxsmith"}


@pytest.mark.parametrize(
    "text",
    [
        "hello there my friend",
        "Traceback (most recent call last):\n  File 'main.py', line 42, in <module>\nKeyError: 'port'",
        "[1]    34247 segmentation fault (core dumped)  ./myserver --port 8080",
        "ERROR: Could not find a version that satisfies the requirement flash-attn",
        "npm ERR! code ERESOLVE could not resolve dependency tree",
        "the node is fine and the model runs",
        "error: linker `cc` not found; note: No such file or directory (os error 2)",
    ],
)
def test_a_message_of_another_program_is_not_known(text: str) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.explain(text)
    assert caught.value.problem.id == "explain/unknown-message"
    assert "perhaps" not in caught.value.problem.fix


@pytest.mark.parametrize(
    "text", ["ModuleNotFoundError: No module named 'numpy'", "ValueError: shapes (3,4) not aligned"]
)
def test_near_causes_do_not_make_a_message_known(text: str) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.explain(text)
    assert caught.value.problem.id == "explain/unknown-message"


def test_a_message_with_similar_words_names_the_nearest_as_such() -> None:
    with pytest.raises(OnnxsmithError) as caught:
        onnxsmith.explain("onnx runtime cannot allocate the buffer of requested size in arena")
    assert "onnxruntime/out-of-memory" in caught.value.problem.fix
    assert "which may describe another cause" in caught.value.problem.fix


def test_the_report_has_the_cause_the_names_and_commands_with_them() -> None:
    text = "[TRT] [E] If_534_OutputLayer: IIfConditionalOutputLayer inputs must have the same shape."
    report = onnxsmith.explain(text)
    cause = report.part(MessageCause)
    assert report.verdict is Verdict.DONE
    assert cause.id == "tensorrt/if-shapes"
    assert cause.names["node"] == "If_534"
    assert "onnxsmith inspect model.onnx If_534" in [one.run for one in cause.helps]
    assert Report.from_json(report.to_json()) == report


def test_a_name_with_spaces_is_quoted() -> None:
    text = "Nodes in a graph must be topologically sorted, however input 'a b; rm x' of node: "
    commands = [one.run for one in onnxsmith.explain(text).part(MessageCause).helps]
    assert "onnxsmith inspect model.onnx 'a b; rm x'" in commands


def test_a_cause_has_a_page() -> None:
    report = onnxsmith.explain("tensorrt/if-shapes")
    assert report.headline.startswith("the two branches of If")
    assert "tensorrt/if-shapes: " in onnxsmith.explain("all").to_json()


def test_a_general_cause_comes_last_and_gives_its_names() -> None:
    text = 'While parsing node number 70 [DCN -> "250"]:\nERROR: X.cpp:134\n[8] No importer registered for op: DCN'
    first, second = cause_matching.match(text)
    assert (first.message.id, second.message.id) == ("tensorrt/no-importer", "tensorrt/parsing-node")
    assert first.names["tensor"] == "250"
    parts = onnxsmith.explain(text).parts
    assert [part.id for part in parts if isinstance(part, MessageCause)] == ["tensorrt/no-importer"]


def failing(name: str) -> str:
    return f"Non-zero status code returned while running Sqrt node. Name:'{name}' Status Message: no"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnxtxt"
    path.write_text(MODEL)
    return path


def views(report: Report) -> Iterator[NodeView]:
    return (part for part in report.parts if isinstance(part, NodeView))


def test_the_node_is_looked_up_in_the_model(model: Path) -> None:
    report = Explain(failing("second"), str(model)).run()
    (node,) = views(report)
    assert (node.name, node.op, node.index) == ("second", "Sqrt", 1)
    assert node.inputs[0].type == "float[2,n]"
    assert f"onnxsmith inspect {model} second" in [one.run for one in report.part(MessageCause).helps]


def test_the_producer_of_a_named_tensor_is_shown(model: Path) -> None:
    report = onnxsmith.explain('While parsing node number 1 [Sqrt -> "b"]:', model)
    assert [node.name for node in views(report)] == ["second"]


def test_a_name_that_the_model_does_not_have_falls_back_to_the_operator_and_says_so(model: Path) -> None:
    report = onnxsmith.explain(failing("secnd"), model)
    assert [node.name for node in views(report)] == ["second"]
    assert any("no node or tensor called secnd; similar names: second" in note for note in report.notes)


def test_a_model_without_the_operator_is_said(model: Path) -> None:
    report = onnxsmith.explain("No importer registered for op: Mish", model)
    assert not list(views(report))
    assert any("0 nodes with operator Mish" in note for note in report.notes)


def test_a_message_without_a_name_says_so(model: Path) -> None:
    report = onnxsmith.explain("Network must have at least one output", model)
    assert any("names no node" in note for note in report.notes)


BRANCHED = """
<ir_version: 10, opset_import: ["": 20]>
g (bool c, float[2] x) => (float[2] y) {
    [first] a = Relu(x)
    [choice] b = If(c) <then_branch = t () => (float[2] p) { [one] q = Neg(a) [two] p = Abs(q) },
        else_branch = e () => (float[2] r) { [three] s = Neg(a) [four] r = Sqrt(s) }>
    [last] y = Neg(b)
}
"""
ASSERTION = "INVALID_GRAPH: Assertion failed: ctx->tensors().count(inputName)"


@pytest.mark.parametrize(
    ("said", "names"),
    [
        (f"In node 1 (parseGraph): {ASSERTION}", ["second"]),
        (f"ERROR: In node 2: {ASSERTION}", [""]),
        (f"In node 1 with name: second and operator: Sqrt (parseGraph): {ASSERTION}", ["second"]),
        (f"In node 1 with name:  and operator: Sqrt (parseGraph): {ASSERTION}", ["second"]),
        (f"While parsing node number 1 [Sqrt]:\n{ASSERTION}", ["second"]),
        (f"In node 9 (parseGraph): {ASSERTION}", []),
    ],
)
def test_a_node_is_found_by_its_number(model: Path, said: str, names: list[str]) -> None:
    report = onnxsmith.explain(said, model)
    assert report.part(MessageCause).id == "tensorrt/missing-input"
    assert [node.name for node in views(report)] == names
    assert any("number 9" in note for note in report.notes) == (not names)


def test_numbers_count_in_the_graph_of_the_node(tmp_path: Path) -> None:
    path = tmp_path / "m.onnxtxt"
    path.write_text(BRANCHED)
    report = onnxsmith.explain(f"In node 2 (parseGraph): {ASSERTION}", path)
    assert [node.name for node in views(report)] == ["last"]
    report = onnxsmith.explain(f'While parsing node number 1 [Sqrt -> "r"]:\n{ASSERTION}', path)
    assert [node.name for node in views(report)] == ["four"]
    report = onnxsmith.explain(f"While parsing node number 1 [Sqrt]:\n{ASSERTION}", path)
    assert [node.name for node in views(report)] == ["four"]


@pytest.mark.parametrize(
    ("text", "id_", "names"),
    [
        ("Unsupported ONNX opset", "torch/unsupported-opset", {}),
        ("RuntimeError: Unsupported onnx_opset_version: 25", "torch/unsupported-opset", {"opset": "25"}),
        ("Load model failed:This is an invalid model. Graph output (q) does not exist in the graph.",
         "onnxruntime/missing-tensor", {"tensor": "q"}),
        ("This is an invalid model. Failed to find NodeArg in all parent graphs. Name=q Graph may not conform",
         "onnxruntime/missing-tensor", {"tensor": "q"}),
        ("No opset import registered for domain 'com.acme'", "onnx/no-opset-import", {"domain": "com.acme"}),
        ("Nodes in a function must be topologically sorted, however input 'q' of node: \nRelu",
         "onnx/order-of-nodes", {"tensor": "q"}),
        ("Failed to find kernel for Gemm(13) (node:'fc' ep:'CPUExecutionProvider'). Kernel not found",
         "onnxruntime/no-kernel", {"op": "Gemm", "node": "fc"}),
    ],
)  # fmt: skip
def test_forms_of_messages_of_other_releases(text: str, id_: str, names: dict[str, str]) -> None:
    cause = onnxsmith.explain(text).part(MessageCause)
    assert (cause.id, cause.names) == (id_, cause.names | names)


def test_the_problem_of_the_model_names_the_node_that_reads_a_missing_tensor(tmp_path: Path) -> None:
    path = tmp_path / "m.onnxtxt"
    path.write_text(MODEL.replace("Sqrt(a)", "Sqrt(lost)"))
    text = "Invalid model. Node input 'lost' is not a graph input, initializer, or output of a previous node."
    report = onnxsmith.explain(text, path)
    assert report.part(MessageCause).names == {"tensor": "lost"}
    assert "second" in report.problems[0].what


def test_a_model_that_cannot_be_read_leaves_the_cause(tmp_path: Path) -> None:
    report = onnxsmith.explain(failing("second"), tmp_path / "none.onnx")
    assert report.part(MessageCause).id == "onnxruntime/failed-node"
    assert [found.id for found in report.problems] == ["model/not-found"]
    assert any("no node was looked up" in note for note in report.notes)


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"\xff\nsome log\nNo importer registered for op: Mish\n"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    assert Explain("-").run().part(MessageCause).names == {"op": "Mish"}


def test_a_long_log_takes_no_time_to_speak_of() -> None:
    line = "2024-01-01 00:00:00 [I] While running node. Name:'x' Status Message: ok ((((\n"
    assert ids(line * 10_000 + "No importer registered for op: Mish")[0] == "tensorrt/no-importer"
