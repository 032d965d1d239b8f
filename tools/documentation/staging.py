"""Gathers the files of the site: documents with their links rewritten, files that they show, and the reference."""

from __future__ import annotations

import posixpath
import re
import shutil
from pathlib import Path, PurePosixPath

from tools.documentation import home, navigation
from tools.documentation.markdown import outside_code, with_lists_apart
from tools.documentation.reference import commands, messages, problems, python, quantization, rules, targets

ROOT = Path(__file__).resolve().parents[2]
HOME = "index.md"
FOLDERS = {"docs": "", "examples": "examples", "benchmarks/log": "log"}
"""Says where the documents of a folder lie on the site."""
_SINGLE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "README.md": HOME}
_ASSETS = Path(__file__).parent / "assets"
_LINK = re.compile(r"`[^`]+`|(!?)\[([^\]]*)\]\(([^)\s]+)\)")
"""Matches a link, or code, in which nothing is a link."""
_OUTSIDE = ("http://", "https://", "mailto:", "#")

Files = dict[str, str | bytes]


def files() -> Files:
    """Returns the content of each file of the site by its path on the site."""
    places = _places()
    staged: Files = {}
    for source, place in places.items():
        if place != HOME:
            staged[place] = _document(source, place, places, staged)
    for subject in (commands, problems, messages, rules, targets, quantization, python):
        staged |= subject.pages()
    staged[HOME] = home.page()
    for asset in sorted(_ASSETS.iterdir()):
        staged[f"assets/{asset.name}"] = asset.read_bytes()
    return staged


def write(staged: Files, folder: Path) -> None:
    """Writes the pages to `docs` in a folder, and the settings of the site beside them. An older `docs` stays until the
    new one is complete."""
    settings = navigation.settings(ROOT / "mkdocs.yml", staged)
    target, aside = folder / "docs", folder / "docs.new"
    shutil.rmtree(aside, ignore_errors=True)
    for path, content in staged.items():
        (aside / path).parent.mkdir(parents=True, exist_ok=True)
        (aside / path).write_bytes(content.encode() if isinstance(content, str) else content)
    shutil.rmtree(target, ignore_errors=True)
    aside.rename(target)
    (folder / "mkdocs.yml").write_text(settings, encoding="utf-8")


def _places() -> dict[str, str]:
    """Returns the place of each document on the site, by its path in the checkout."""
    places = dict(_SINGLE)
    for folder, place in FOLDERS.items():
        for file in sorted((ROOT / folder).rglob("*.md")):
            inner = file.relative_to(ROOT / folder).as_posix()
            path = str(PurePosixPath(place, inner))
            places[f"{folder}/{inner}"] = re.sub(r"(^|/)README\.md$", r"\1index.md", path)
    return places


def _document(source: str, place: str, places: dict[str, str], staged: Files) -> str:
    """Returns a document for its place. Files that it shows are added to `staged`."""

    def rewritten(link: re.Match[str]) -> str:
        image, text, target = link.groups()
        if target is None or target.startswith(_OUTSIDE):
            return link[0]
        path, _, anchor = target.partition("#")
        linked = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if linked in places:
            target_place = places[linked]
        elif (ROOT / linked).is_file() and linked.startswith(("docs/", "examples/")):
            target_place = linked.removeprefix("docs/")
            staged[target_place] = (ROOT / linked).read_bytes()
        else:
            return text if text.startswith("`") else f"`{text}`"
        lead = posixpath.relpath(target_place, posixpath.dirname(place) or ".")
        return f"{image}[{text}]({lead}{'#' + anchor if anchor and target_place != HOME else ''})"

    text = (ROOT / source).read_text(encoding="utf-8")
    # A link may be broken over two lines, so that whole paragraphs are read.
    pieces: list[tuple[str, bool]] = []
    for line, is_text in outside_code(text):
        if pieces and pieces[-1][1] == is_text:
            pieces[-1] = (f"{pieces[-1][0]}\n{line}", is_text)
        else:
            pieces.append((line, is_text))
    lines = (_LINK.sub(rewritten, piece) if is_text else piece for piece, is_text in pieces)
    return with_lists_apart("\n".join(lines))
