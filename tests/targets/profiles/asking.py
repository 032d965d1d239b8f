"""Asks a profile about a model, both written as text."""

from __future__ import annotations

from onnxsmith.graph.files.text import from_text
from onnxsmith.targets.profiles.node_acceptance import Foreseen, foresee
from onnxsmith.targets.profiles.profile_reader import parsed

START = 'title = "Board"\nunlisted = "refused"\n'


def foreseen(profile: str, graph: str, *, opset: int = 17, ir: int = 10, start: str = START) -> list[Foreseen]:
    """The entries for a graph of ONNX text. `opset` is a number, or the text behind it with other domains."""
    model = from_text(f'<ir_version: {ir}, opset_import: ["": {opset}, "com.microsoft": 1]>\n{graph}')
    return foresee(model, parsed(start + profile, "board.toml", "board"))


def told(profile: str, graph: str, *, opset: int = 17, ir: int = 10, start: str = START) -> list[tuple[str, str]]:
    """Outlook and reason of each entry."""
    return [(str(one.outlook), one.reason) for one in foreseen(profile, graph, opset=opset, ir=ir, start=start)]
