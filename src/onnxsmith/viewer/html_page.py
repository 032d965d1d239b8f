"""Writes a scene as one HTML file, which uses no network and has one script and one style, each allowed by its hash."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment

from onnxsmith.base.garbage_collection import no_collection
from onnxsmith.base.problem import problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.words import pasted
from onnxsmith.graph.model_identity import model_path
from onnxsmith.viewer.inline_elements import policy_hash
from onnxsmith.viewer.page_links import Links
from onnxsmith.viewer.reports import has_figures, read
from onnxsmith.viewer.scene import Scene, to_json
from onnxsmith.viewer.scene_assembly import made


def to_html(scene: Scene) -> str:
    """Returns the page. Names of the model occur only in the JSON and in the title, both escaped."""
    source, script, style = pieces()
    environment = Environment(autoescape=True)
    return environment.from_string(source).render(
        title=f"{scene.headline} · onnxsmith view",
        script=script,
        style=style,
        script_hash=policy_hash(script),
        style_hash=policy_hash(style),
        scene=to_json(scene),
    )


def pieces() -> tuple[str, str, str]:
    """Returns the template, the script and the style. The built script must not contain `</script`, and the style not
    `</style`, because HTML parsers read these as the end of the element wherever they stand."""
    room = files("onnxsmith.viewer.page")
    source, script, style = (
        room.joinpath(name).read_text(encoding="utf-8") for name in ("page.html.jinja", "viewer.js", "viewer.css")
    )
    assert "</script" not in script.lower(), "the built script would end its own element"
    assert "</style" not in style.lower(), "the built style would end its own element"
    return source, script, style


# The page of a model that stands beside the report of another command, and to which the report links.


@dataclass(eq=False)
class Beside:
    """Holds the page, the places on it by name, and a line about the page."""

    page: str
    links: Links
    headline: str


def beside(models: Sequence[str], report: Report) -> Beside:
    """Makes the page of one model or two, coloured by the figures that the report has.

    Raises:
        OnnxsmithError: `view/no-file` if a model is not a file, `model/…` if it cannot be read, `view/other-model`.
    """
    sources = [file_of(name) for name in models]
    with no_collection():
        whole, shown, _ = made(sources, [read(report)] if has_figures(report) else [])
        return Beside(to_html(whole), Links(whole, shown), whole.headline)


def file_of(name: str) -> Path:
    """Returns the file of a model's name on the command line, such as `m.onnx@openvino`.

    Raises:
        OnnxsmithError: `view/no-file`.
    """
    path = model_path(name)
    if path is None:
        is_torch = ".py:" in name
        exported = f"`onnxsmith export {pasted(name)} -o exported.onnx`, and give exported.onnx in place of {name}"
        raise problem(
            "view/no-file",
            "--view shows a model file, but this command has no model file",
            where=name or "no output file",
            why="a torch model is code and has no nodes to show" if is_torch else "no file was written",
            fix=f"leave --view out; or export the model first: {exported}" if is_torch else "leave --view out",
        )
    return path
