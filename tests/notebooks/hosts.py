"""Pages that show an output as JupyterLab, VS Code and GitHub do: their rules for tables, paragraphs and code."""

from __future__ import annotations

import re
from pathlib import Path

LAB, CODE = (Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("lab.css", "code.css"))
_INKS = {
    "light": "--ink: #000d; --ground: #fff; --soft: #eee",
    "dark": "--ink: #ffffffde; --ground: #111; --soft: #424242",
}
_OTHER = '<table class="neighbour"><tbody><tr><td>a table of another output</td></tr></tbody></table><p>its text</p>'
"""Another output in the page, which must look the same beside a card."""


def lab(outputs: str, theme: str) -> str:
    """The page of JupyterLab."""
    is_light = str(theme == "light").lower()
    return _page(LAB, theme, f'data-jp-theme-light="{is_light}"', outputs, "jp-RenderedHTMLCommon jp-RenderedHTML")


def code(outputs: str, theme: str) -> str:
    """The page of VS Code's notebook outputs."""
    return _page(CODE, theme, f'class="vscode-{theme}"', outputs, "output")


def plain(outputs: str, theme: str) -> str:
    """A page without rules of its own."""
    return _page("", theme, f'class="vscode-{theme}"', outputs, "")


def untrusted(outputs: str, theme: str) -> str:
    """The page of GitHub, or of JupyterLab for a notebook that is not trusted: styles, classes and frames are gone."""
    bare = re.sub(r"<style>.*?</style>|<iframe.*?</iframe>", "", outputs, flags=re.DOTALL)
    return _page(LAB, theme, "", re.sub(r' (?:class|style)="[^"]*"', "", bare), "jp-RenderedHTMLCommon")


def _page(rules: str, theme: str, attributes: str, outputs: str, kind: str) -> str:
    style = f":root {{ {_INKS[theme]} }} body {{ margin: 12px; background: var(--ground); color: var(--ink); }} {rules}"
    head = f'<head><meta charset="utf-8"><title>cells</title><style>{style}</style></head>'
    body = f'<div class="{kind}">{_OTHER}</div><div class="{kind}">{outputs}</div>'
    return f'<!doctype html><html lang="en">{head}<body {attributes}>{body}</body></html>'
