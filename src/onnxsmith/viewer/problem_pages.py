"""Reads the pages of problems: each is a Markdown file, `pages/ROOM/KIND.md`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files


def problem_pages() -> Iterator[tuple[str, str]]:
    """Yields the id and the page of every problem, sorted by id."""
    for room in sorted((files("onnxsmith.viewer") / "pages").iterdir(), key=lambda item: item.name):
        if not room.is_dir():
            continue
        for file in sorted(room.iterdir(), key=lambda item: item.name):
            if file.name.endswith(".md"):
                yield f"{room.name}/{file.name.removesuffix('.md')}", file.read_text(encoding="utf-8").strip()


def problem_page(id_: str) -> str:
    """Returns the page of a problem; "" if there is none, as for the problem of another package."""
    room, _, kind = id_.partition("/")
    file = files("onnxsmith.viewer") / "pages" / room / f"{kind}.md"
    return file.read_text(encoding="utf-8").strip() if room and kind and file.is_file() else ""


def page_title(id_: str, page: str) -> str:
    """Returns the first line of a page, without `#` and the id."""
    first = page.partition("\n")[0].lstrip("# ")
    return first.removeprefix(f"{id_}:").strip()


def problem_titles() -> dict[str, str]:
    """Returns the title of each problem's page by the id of the problem."""
    return {id_: page_title(id_, page) for id_, page in problem_pages()}
