"""Writes a page of the viewer without the Python half: the scene, the built script and style, and the policy."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "src" / "onnxsmith" / "viewing" / "page"


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def html(scene: Any, text: str | None = None) -> str:
    """The page of a scene; `text` stands in its place for scenes that are broken on purpose."""
    script = (BUILT / "viewer.js").read_text(encoding="utf-8")
    style = (BUILT / "viewer.css").read_text(encoding="utf-8")
    held = json.dumps(scene, separators=(",", ":")).replace("<", "\\u003c") if text is None else text
    policy = f"default-src 'none'; script-src {_source(script)}; style-src {_source(style)}; img-src data: blob:; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>onnxsmith view</title>'
        f'<style>{style}</style></head><body><div id="app"></div>'
        f'<script type="application/json" id="scene">{held}</script><script>{script}</script></body></html>'
    )


def written(folder: Path, scene: Any, name: str = "view.html", text: str | None = None) -> Path:
    path = folder / name
    path.write_text(html(scene, text), encoding="utf-8")
    return path
