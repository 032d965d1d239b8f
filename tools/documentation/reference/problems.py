"""Writes a page for each room of problems, and an index."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache

from onnxsmith.viewer.problem_pages import page_title, problem_pages
from tools.documentation.markdown import escaped, outside_code, table, with_lists_apart

FOLDER = "reference/problems"


def pages() -> dict[str, str]:
    """Returns the pages by their path on the site."""
    rooms: dict[str, dict[str, str]] = defaultdict(dict)
    for id_, page in problem_pages():
        rooms[id_.partition("/")[0]][id_] = page
    written = {f"{FOLDER}/{room}.md": _room(room, texts) for room, texts in rooms.items()}
    return {f"{FOLDER}/index.md": _index(rooms), **written}


def linked(text: str, folder: str, *, but: str = "") -> str:
    """Links each id of a problem in a text to its page, except the id `but`. `folder` leads to the pages."""
    known = _ids() - {but}

    def link(match: re.Match[str]) -> str:
        room, _, kind = match[1].partition("/")
        return f"[`{match[1]}`]({folder}{room}.md#{kind})" if match[1] in known else match[0]

    lines = outside_code(text)
    written = re.compile(r"(?<![\[`])`([a-z]+/[a-z0-9-]+)`(?![\]`])")
    return "\n".join(written.sub(link, line) if is_text and line[:1] != "#" else line for line, is_text in lines)


@cache
def _ids() -> frozenset[str]:
    return frozenset(id_ for id_, _ in problem_pages())


def _index(rooms: dict[str, dict[str, str]]) -> str:
    parts = [
        "# Problems",
        "This page lists the problems that onnxsmith reports, by the first part of their id.",
        "`onnxsmith explain ID` prints the page of a problem.",
    ]
    for room, texts in rooms.items():
        rows = [
            (f"[`{id_}`]({room}.md#{id_.partition('/')[2]})", escaped(page_title(id_, page)))
            for id_, page in texts.items()
        ]
        parts += [f"## {room}", table(("problem", "what it is"), rows)]
    return "\n\n".join(parts) + "\n"


def _room(room: str, texts: dict[str, str]) -> str:
    parts = [
        f"# Problems: {room}",
        f"This page lists the problems whose id begins with `{room}/`, with their causes and what helps.",
    ]
    for id_, page in texts.items():
        heading = f"## {escaped(f'{id_}: {page_title(id_, page)}')} {{ #{id_.partition('/')[2]} }}"
        parts += [heading, linked(_body(page), "", but=id_)]
    return "\n\n".join(parts) + "\n"


def _body(page: str) -> str:
    """Returns a page without its title, with labels in place of headings, which repeat in every page."""
    lines = [
        f"**{line.lstrip('# ')}**" if is_text and re.match("##+ ", line) else line
        for line, is_text in outside_code(page.partition("\n")[2])
    ]
    return with_lists_apart("\n".join(lines)).strip()
