"""Advice names what exists: every fix in the source, and every command in a page."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import onnxsmith
from tests import advice

SOURCE = Path(onnxsmith.__file__).parent


def test_a_wrong_advice_is_found() -> None:
    assert advice.faults("add --no-such-option", "simplify")
    assert advice.faults("add --strategy x", "simplify")
    assert advice.faults("`onnxsmith simplify m.onnx --strategy x`")
    assert advice.faults("`onnxsmith simplfy m.onnx`")
    assert advice.faults("run onnxsmith simplify m.onnx -o s.onnx")
    assert not advice.faults("add --no-verify, or `onnxsmith export m.py:f -o m.onnx --strategy x`", "simplify")


def test_every_fix_in_the_source_names_what_exists() -> None:
    wrong = []
    for place, id_, fix in advice.written(SOURCE):
        room = id_.partition("/")[0]
        verb = room if room in advice.options() and room not in (*advice.FOR_OTHER_VERBS, "op") else ""
        wrong += [f"{place}: {fault}" for fault in advice.faults(fix, verb)]
    assert not wrong, "\n".join(wrong)


def test_every_command_in_a_page_names_what_exists() -> None:
    wrong = []
    for page in sorted(Path(str(files("onnxsmith.viewer") / "pages")).rglob("*.md")):
        for command in re.findall(r"`(onnxsmith [^`]+)`", re.sub(r"\s+", " ", page.read_text())):
            wrong += [f"{page.parent.name}/{page.name}: {fault}" for fault in advice.faults(f"`{command}`")]
    assert not wrong, "\n".join(wrong)
