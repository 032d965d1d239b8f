"""Writes a page for each tool whose error messages onnxsmith knows, and an index: how to get on after a message."""

from __future__ import annotations

from collections import defaultdict

from onnxsmith.viewer.inspection.cause_matching import Message, filled, known
from tools.documentation.markdown import code, escaped, fenced, table

FOLDER = "reference/messages"


def pages() -> dict[str, str]:
    """Returns the pages by their path on the site."""
    tools: dict[str, list[Message]] = defaultdict(list)
    for message in known().values():
        tools[message.tool].append(message)
    written = {f"{FOLDER}/{tool}.md": _tool(tool, messages) for tool, messages in tools.items()}
    return {f"{FOLDER}/index.md": _index(tools), **written}


def _index(tools: dict[str, list[Message]]) -> str:
    parts = [
        "# Error messages",
        "This page lists the error messages that onnxsmith knows, by the tool that writes them, with what they mean.",
        '`onnxsmith explain "MESSAGE" model.onnx` finds the cause of a message, and the node that it names.',
    ]
    for tool, messages in tools.items():
        rows = [(f"[{_meaning(one)}]({tool}.md#{_cause(one)})",) for one in messages]
        parts += [f"## {tool}", table(("what it means",), rows)]
    return "\n\n".join(parts) + "\n"


def _tool(tool: str, messages: list[Message]) -> str:
    parts = [
        f"# Error messages: {tool}",
        f"This page lists the messages of {tool} that onnxsmith knows: what they mean, why they come, and what helps.",
    ]
    for one in messages:
        parts += [
            f"## {_meaning(one)} {{ #{_cause(one)} }}",
            fenced(one.examples[0].text, "text"),
            escaped(one.why),
            "**What helps**",
            "\n".join(_help(line.say, filled(line.run, {})) for line in one.helps),
            "**Reported in**",
            "\n".join(f"- <{link}>" for link in one.links),
        ]
    return "\n\n".join(parts) + "\n"


def _meaning(message: Message) -> str:
    text = filled(message.what, {})
    return escaped(text[:1].upper() + text[1:])


def _help(say: str, run: str) -> str:
    return f"- {escaped(say)}" + (f" {code(run)}" if run else "")


def _cause(message: Message) -> str:
    return message.id.partition("/")[2]
