"""Writes a scene as one HTML file: no network, one script and one style, each allowed by its hash."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from jinja2 import Environment

from onnxsmith.viewer.scene import Scene, to_json


def to_html(scene: Scene) -> str:
    """Returns the page. Names of the model stand in the JSON and in the title only, both escaped."""
    source, script, style = pieces()
    environment = Environment(autoescape=True)
    return environment.from_string(source).render(
        title=f"{scene.headline} · onnxsmith view",
        script=script,
        style=style,
        script_hash=_hash(script),
        style_hash=_hash(style),
        scene=to_json(scene),
    )


def pieces() -> tuple[str, str, str]:
    """Returns the template, the script and the style. An HTML parser reads `</script` as the end of a script wherever
    it stands, and no build may have it."""
    room = files("onnxsmith.viewer.page")
    source, script, style = (
        room.joinpath(name).read_text(encoding="utf-8") for name in ("page.html.jinja", "viewer.js", "viewer.css")
    )
    assert "</script" not in script.lower(), "the built script would end its own element"
    assert "</style" not in style.lower(), "the built style would end its own element"
    return source, script, style


def _hash(text: str) -> str:
    """The hash of an inline element, as a content security policy wants it."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
