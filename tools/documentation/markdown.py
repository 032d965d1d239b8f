"""Writes Markdown: escaped text, tables, and docstrings with their sections."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence

_LABEL = re.compile(r"(Raises|Refused|No match|Before|After):(?:\s+(\S.*))?$")
"""Begins a section of a docstring."""
_ITEM = re.compile(r"(?:- |\d+\. )")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")


def escaped(text: str) -> str:
    """Returns text on one line that Markdown shows as it is. Code between backticks stays code."""
    parts = re.split(r"(`[^`]+`)", " ".join(text.split()))
    return "".join(part if part.startswith("`") and len(part) > 1 else _plain(part) for part in parts)


def _plain(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("|", "&#124;")
    return re.sub(r"([\\`*_\[\]#])", r"\\\1", text)


def code(text: str) -> str:
    """Returns text as code inside a line."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def first_sentence(text: str) -> str:
    """Returns the first sentence of a docstring, on one line."""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    return re.split(r"(?<=\.)\s", paragraph)[0]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table; the cells are Markdown on one line."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def fenced(text: str, language: str) -> str:
    """Returns a block of code."""
    fence = "````" if "```" in text else "```"
    return f"{fence}{language}\n{textwrap.dedent(text).strip(chr(10)).rstrip()}\n{fence}"


def from_docstring(text: str, language: str = "text") -> str:
    """Returns a docstring as Markdown. `language` is that of its indented examples."""
    return "\n\n".join(_paragraphs(text, language))


def _paragraphs(text: str, language: str) -> Iterator[str]:
    for chunk in _chunks(text):
        label = _LABEL.match(chunk[0])
        if all(line.startswith("    ") or not line for line in chunk):
            yield fenced("\n".join(chunk), language)
        elif label:
            yield from _section(label[1], label[2] or "", chunk[1:])
        else:
            yield from _text_and_items(chunk)


def _chunks(text: str) -> Iterator[list[str]]:
    """Yields the paragraphs. Indented paragraphs in a row are one: an example may have blank lines."""
    chunks: list[list[str]] = []
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        lines = paragraph.splitlines()
        if chunks and lines[0].startswith("    ") and all(not line or line.startswith("    ") for line in chunks[-1]):
            chunks[-1] += ["", *lines]
        else:
            chunks.append(lines)
    yield from chunks


def _section(label: str, first: str, rest: list[str]) -> Iterator[str]:
    if label in ("Before", "After"):
        yield f"**{label}**"
        yield fenced("\n".join([first, *rest] if first else rest), "text")
    elif first:
        yield f"**{label}:** {escaped(' '.join([first, *rest]))}"
    else:
        yield f"**{label}**"
        yield from _text_and_items(textwrap.dedent("\n".join(rest)).splitlines(), named=label == "Raises")


def _text_and_items(lines: list[str], *, named: bool = False) -> Iterator[str]:
    """Yields a paragraph, and the list below it. With `named` each unindented line begins an item, `Name: text`."""
    groups: list[list[str]] = []
    for line in lines:
        begins = not line.startswith(" ") if named else _ITEM.match(line)
        if begins or not groups:
            groups.append([line])
        else:
            groups[-1].append(line)
    if named:
        yield "\n".join(f"- {_named(' '.join(group))}" for group in groups)
        return
    items = []
    for group in groups:
        whole = " ".join(group)
        marker = _ITEM.match(whole)
        if marker:
            items.append(f"{marker[0]}{escaped(whole[marker.end() :])}")
        else:
            yield escaped(whole)
    if items:
        yield "\n".join(items)


def _named(text: str) -> str:
    name, _, what = text.partition(": ")
    return f"{code(name.strip())}: {escaped(what)}" if what else escaped(text)


def outside_code(text: str) -> Iterator[tuple[str, bool]]:
    """Yields each line, and whether it lies outside of fenced code."""
    fence = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if fence:
            yield line, False
            if mark and mark[1].startswith(fence) and not line.strip(" `~"):
                fence = ""
        elif mark:
            fence = mark[1]
            yield line, False
        else:
            yield line, True


def with_lists_apart(text: str) -> str:
    """Puts a blank line between a paragraph and the list below it, without which MkDocs reads no list."""
    lines: list[str] = []
    for line, is_text in outside_code(text):
        before = lines[-1] if lines else ""
        if is_text and line.startswith("- ") and before and not before.startswith((" ", "- ", "|", "#")):
            lines.append("")
        lines.append(line)
    return "\n".join(lines) + "\n"


def slug(heading: str) -> str:
    """Returns the anchor of a heading, as GitHub and the site make it; an explicit `{ #name }` counts first."""
    explicit = re.search(r"\{ #(\S+) \}$", heading)
    if explicit:
        return explicit[1]
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")


def anchors(text: str) -> set[str]:
    """Returns the anchors of a page's headings."""
    headings = [re.match(r"#{1,6} (.+)", line) for line, is_text in outside_code(text) if is_text]
    return {slug(heading[1]) for heading in headings if heading}


def title(text: str) -> str:
    """Returns the first heading of a page, without marks."""
    heading = next((line for line, is_text in outside_code(text) if is_text and line.startswith("# ")), "# ")
    return re.sub(r"\s*\{ #\S+ \}$", "", heading[2:]).replace("`", "").replace("\\", "")
