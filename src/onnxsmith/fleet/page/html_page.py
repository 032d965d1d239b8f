"""Writes the data of a run as one HTML file, which uses no network and has one script and one style, each allowed by
its hash."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from jinja2 import Environment

from onnxsmith._version import __version__
from onnxsmith.viewer.inline_elements import as_json, policy_hash

_SCRIPTS = ("state.js", "grid.js", "panel.js", "controls.js")
"""The scripts in their order: each uses what those before it define."""


def to_html(data: dict[str, Any]) -> str:
    """Returns the page. Names occur only in the JSON and in the title, both escaped."""
    script = "\n".join(_piece(name) for name in _SCRIPTS)
    style = "\n".join(
        [files("onnxsmith.viewer.page").joinpath("shared.css").read_text(encoding="utf-8"), _piece("page.css")]
    )
    return (
        Environment(autoescape=True)
        .from_string(_piece("page.html.jinja"))
        .render(
            run=data["run"],
            since=data["since"],
            version=__version__,
            script=script,
            style=style,
            script_hash=policy_hash(script),
            style_hash=policy_hash(style),
            data=as_json(data),
        )
    )


def _piece(name: str) -> str:
    return files("onnxsmith.fleet.page").joinpath(name).read_text(encoding="utf-8")
