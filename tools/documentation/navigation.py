"""Writes the settings of the site with its navigation: `mkdocs.yml` without entries that have no page.

In `mkdocs.yml` an entry that ends with `/` is a folder. It becomes an entry for each page of the folder, with the
title of the page. A page or a folder that is not staged is left out, and so is a section without entries.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.documentation.markdown import title

_ENTRY = re.compile(r"( +)- (?:([^:]+):)?(?: ?(\S+))?$")


def settings(file: Path, staged: Mapping[str, str | bytes]) -> str:
    """Returns the settings for MkDocs, with folders named as seen from the folder of the staged pages."""
    head, nav, rest = re.split(r"^(nav:\n(?:(?: .*)?\n)+)", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = [entry for line in nav.splitlines()[1:] if line.strip() for entry in _expanded(line, staged)]
    kept = "\n".join(_without_empty(lines))
    return f"{head}nav:\n{kept}\n\n{rest}".replace("_dir: build/", "_dir: ")


def _expanded(line: str, staged: Mapping[str, str | bytes]) -> Iterator[str]:
    """Yields the lines of an entry: one for a page, several for a folder, none for what is not staged."""
    entry = _ENTRY.match(line)
    assert entry, line
    indent, path = entry[1], entry[3] or ""
    if path.endswith("/"):
        texts = [name for name in staged if name.endswith(".md") and name.startswith(path)]
        pages = [page for page in texts if "/" not in _inner(page, path)]
        for page in sorted(pages, key=lambda page: (_inner(page, path) != "index.md", page)):
            content = staged[page]
            assert isinstance(content, str)
            yield f"{indent}- {json.dumps(title(content), ensure_ascii=False)}: {page}"
    elif not path or path in staged:
        yield line


def _inner(page: str, folder: str) -> str:
    """Returns the path of a page in a folder; the `index.md` of a folder in it counts as a page of that folder."""
    return re.sub(r"(?<=.)/index\.md$", ".md", page.removeprefix(folder))


def _without_empty(lines: list[str]) -> list[str]:
    """Leaves out each section that has no entries."""
    kept: list[str] = []
    for line in reversed(lines):
        is_section = line.endswith(":")
        if not is_section or (kept and _indent(kept[-1]) > _indent(line)):
            kept.append(line)
    return kept[::-1]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
