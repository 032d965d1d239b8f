"""Writes a page of the viewer: the template, the built script and style, and a scene that no model was needed for."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from jinja2 import Environment

ROOT = Path(__file__).parents[3]
BUILT = ROOT / "src" / "onnxsmith" / "viewer" / "page"


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def html(scene: Any, text: str | None = None) -> str:
    """The page of a scene; `text` stands in its place for scenes that are broken on purpose."""
    source, script, style = (
        (BUILT / name).read_text(encoding="utf-8") for name in ("page.html.jinja", "viewer.js", "viewer.css")
    )
    held = json.dumps(scene, separators=(",", ":")).replace("<", "\\u003c") if text is None else text
    page = Environment(autoescape=True).from_string(source)
    return page.render(
        title="a page", script=script, style=style, script_hash=_hash(script), style_hash=_hash(style), scene=held
    )


def written(folder: Path, scene: Any, name: str = "view.html", text: str | None = None) -> Path:
    path = folder / name
    path.write_text(html(scene, text), encoding="utf-8")
    return path
