"""Nodes with branches, bodies and functions: what they read, and how their bodies are reached."""

from __future__ import annotations

import shlex
from pathlib import Path

from typer.testing import CliRunner

from onnxsmith.cli.application import app
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from onnxsmith.viewer.view import view
from tests.viewer.browser.conftest import Open, of
from tests.viewer.test_rooms import BRANCHES, FUNCTIONS
from tests.viewer.test_view import scene_in


def test_the_command_for_an_if_cuts_it_out(opened: Open, tmp_path: Path) -> None:
    """Its branches read `a` and `x` from outside: both are listed, and are inputs of the part."""
    path = tmp_path / "m.onnx"
    save(from_text(BRANCHES), path)
    scene = scene_in(view(path).page)
    node = scene["models"][0]["nodes"]["name"].index("choice")
    page = opened(scene)
    page.evaluate(f"window.onnxsmithView.jump(0, {{ kind: 'node', ref: {node} }})")
    section = page.locator(".inspector section", has=page.locator("h3", has_text="Read by its bodies"))
    assert {text.split()[0] for text in section.locator(".operand").all_inner_texts()} == {"a", "x"}
    command = shlex.split(page.locator(".offer code").first.inner_text())
    part = tmp_path / "part.onnx"
    done = CliRunner().invoke(app, [*command[1 : command.index("-o")], "-o", str(part), "-q"])
    assert done.exit_code == 0, done.output
    assert {value.name for value in load(part).graph.inputs} == {"c", "a", "x"}


def test_a_body_is_shown_by_the_sign_of_its_node(opened: Open) -> None:
    scene = scene_in(view(from_text(BRANCHES)).page)
    node = scene["models"][0]["nodes"]["name"].index("choice")
    page = opened(scene)
    page.evaluate(f"window.onnxsmithView.jump(0, {{ kind: 'node', ref: {node} }})")
    at = page.evaluate(
        """(node) => {
          const { side, pane } = window.onnxsmithView;
          const box = side.picture.box(side.spot({ kind: "node", ref: node }));
          const canvas = pane.canvas.getBoundingClientRect();
          const [x, y] = [box.right - 12, (box.top + box.bottom) / 2];
          return { x: canvas.left + side.camera.screenX(x), y: canvas.top + side.camera.screenY(y) };
        }""",
        node,
    )
    page.mouse.click(at["x"], at["y"])
    assert of(page, "app.side.graph.model.rooms[app.side.room].path") == "choice/then_branch"


def test_open_all_says_what_it_does_not_open(opened: Open) -> None:
    page = opened(scene_in(view(from_text(BRANCHES)).page))
    page.keyboard.press("e")
    assert "Branches, bodies and functions are shown alone" in page.locator(".toast").inner_text()


def test_inputs_and_outputs_of_bodies_are_told(opened: Open) -> None:
    scene = scene_in(view(from_text(BRANCHES)).page)
    names = scene["models"][0]["values"]["name"]
    page = opened(scene)
    producer = scene["models"][0]["values"]["producer"][names.index("r")]
    page.evaluate(f"window.onnxsmithView.jump(0, {{ kind: 'node', ref: {producer} }})")
    said = page.locator(".inspector").inner_text()
    assert "output of choice/then_branch" in said
    assert "not read" not in said
    scene = scene_in(view(from_text(FUNCTIONS)).page)
    page = opened(scene)
    inner = next(at for at, room in enumerate(scene["models"][0]["nodes"]["room"]) if room)
    page.evaluate(f"window.onnxsmithView.jump(0, {{ kind: 'node', ref: {inner} }})")
    said = page.locator(".inspector").inner_text()
    assert "input of local::Twice" in said
    assert "type of the call" in said
    assert "graph input" not in said
