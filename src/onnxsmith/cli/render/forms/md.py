"""`--report report.md`: Markdown for a comment in a pull request, or for the summary of a job."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.base import Block, Chart, Facts, Intervals, Part, Plot, Report, Table, Text, Tone
from onnxsmith.base.words import shortened
from onnxsmith.cli.render.forms._markdown import block, code, inline
from onnxsmith.cli.render.forms._subjects import without_causes
from onnxsmith.cli.render.forms.base import Form
from onnxsmith.cli.render.html_report import View
from onnxsmith.cli.render.opened_parts import opened
from onnxsmith.cli.render.templates import block_kind, filled, laid_out

_MARK = "<!-- onnxsmith report -->"
_PICTURE = "a picture of a report of onnxsmith"
_LONGEST = 65_536
"""Limits the characters of the file: GitHub's limit for a comment."""
_LIMITS = ((20, 4000), (12, 1000), (6, 500), (3, 200), (1, 100))
"""Limits the rows of a table, and the characters of a text: the first of these pairs with which the file is short
enough. A choice."""
_LEFT_OUT = 100
"""Characters for the line that counts what is left out."""
_END = "\n\n"
"""Ends the file with a blank line: HTML such as `</details>` goes on until a blank line, and would hide the heading of
a report that is appended."""
_Picture = Chart | Plot | Intervals


class Md(Form):
    """Verdict and headline, what is wrong, problems with their fixes, then the rest, folded."""

    described = "a report in Markdown"

    def texts(self, report: Report, path: str, view: View | None) -> dict[str, str]:
        parts = [(part, list(part.blocks())) for part in report.parts]
        drawn = [one for _, blocks in parts for one in blocks if isinstance(one, _Picture)]
        names = {id(one): f"{Path(path).stem}-{number}.svg" for number, one in enumerate(drawn, 1)}
        pictures = {str(Path(path).with_name(names[id(one)])): _svg(one) for one in drawn}
        return {path: _fitting(report, parts, names)} | pictures

    def is_own(self, start: bytes) -> bool:
        return start.startswith(_MARK.encode())

    def refuse_loss(self, path: str) -> None:
        from onnxsmith.graph.files.output_paths import refuse_other_than

        super().refuse_loss(path)
        folder, own = Path(path).parent, re.compile(rf"{re.escape(Path(path).stem)}-\d+\.svg")
        for file in sorted(folder.iterdir()) if folder.is_dir() else ():
            if own.fullmatch(file.name):
                refuse_other_than(str(file), lambda start: _PICTURE.encode() in start, "a picture of a report")


def _svg(one: _Picture) -> str:
    return filled("picture.svg.jinja", kind=block_kind(one), block=laid_out(one), mark=_PICTURE)


@dataclass(frozen=True)
class _Limited:
    """Writes parts with at most `rows` rows in a table, and at most `longest` characters in a text. `names` are the
    files of the pictures by the identity of their blocks."""

    rows: int
    longest: int
    names: dict[int, str] = field(default_factory=dict)

    def sections(self, report: Report, parts: Sequence[tuple[Part, list[Block]]]) -> Iterator[str]:
        """Yields the sections of the file, what matters most first."""
        headline = f"\n\n**{self._inline(report.headline)}**" if report.headline else ""
        yield f"{_MARK}\n### onnxsmith {inline(report.command)}: {report.verdict.value.upper()}{headline}"
        shown = [(part, blocks) for part, blocks in parts if blocks]
        first = opened(shown, has_problems=bool(report.problems))
        for part, blocks in first:
            yield f"#### {inline(part.title)}\n\n{self._part(blocks)}"
        yield from (self._problem(without_causes(one, report)) for one in report.problems[: self.rows])
        if len(report.problems) > self.rows:
            yield _more(len(report.problems) - self.rows, "problem")
        for part, blocks in shown:
            if not any(blocks is other for _, other in first):
                yield _folded(part.title, self._part(blocks))
        if report.notes:
            notes = [f"- {self._inline(note)}" for note in report.notes[: self.rows]]
            rest = len(report.notes) - self.rows
            yield _folded("Notes", "\n".join([*notes, *([f"- {_more(rest, 'note')}"] if rest > 0 else [])]))

    def _inline(self, text: str) -> str:
        return inline(shortened(text, self.longest))

    def _problem(self, problem: Problem) -> str:
        lines = [f"#### {code(problem.id)}\n\n{self._inline(problem.what)}\n"]
        for label, text in problem.details():
            if "\n" in text.strip():
                lines.append(f"\n{label}:\n\n{block(shortened(text.strip(chr(10)), self.longest))}")
            else:
                lines.append(f"- {inline(label)}: {self._inline(text.strip())}")
        return "\n".join(lines)

    def _part(self, blocks: Sequence[Block]) -> str:
        texts = [one for one in blocks if isinstance(one, Text)]
        kept = sorted(texts, key=lambda one: one.tone is not Tone.BAD)[: self.rows]
        shown = [self._block(one) for one in blocks if not isinstance(one, Text) or any(one is text for text in kept)]
        rest = [_more(len(texts) - self.rows, "sentence")] if len(texts) > self.rows else []
        return "\n\n".join([*shown, *rest])

    def _block(self, one: Block) -> str:
        if isinstance(one, Table):
            return self._table(one)
        if isinstance(one, Facts):
            return self._rows(("", ""), one.rows, ())
        if isinstance(one, Text):
            return block(shortened(one.text, self.longest)) if one.verbatim else self._inline(one.text)
        return f"![{inline(one.title)}]({quote(self.names[id(one)], errors='replace')})"

    def _table(self, table: Table) -> str:
        order = list(table.worst_first or range(len(table.rows)))
        return self._rows(table.head, [table.rows[at] for at in order], table.right)

    def _rows(self, head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int]) -> str:
        lines = [
            f"| {' | '.join(map(inline, head))} |",
            f"| {' | '.join('---:' if at in right else '---' for at in range(len(head)))} |",
            *(f"| {' | '.join(map(self._inline, row))} |" for row in rows[: self.rows]),
        ]
        rest = len(rows) - self.rows
        return "\n".join(lines) + (f"\n\n{_more(rest, 'row')}" if rest > 0 else "")


def _fitting(report: Report, parts: Sequence[tuple[Part, list[Block]]], names: dict[int, str]) -> str:
    """Returns the text with as many rows as GitHub takes. If the fewest are too many, the last sections are left out,
    and counted."""
    sections: list[str] = []
    for rows, longest in _LIMITS:
        sections = list(_Limited(rows, longest, names).sections(report, parts))
        if len("\n\n".join(sections) + _END) <= _LONGEST:
            return "\n\n".join(sections) + _END
    kept, length = [], _LEFT_OUT
    for section in sections:
        length += len(section) + 2
        if length > _LONGEST:
            break
        kept.append(section)
    return "\n\n".join([*kept, _more(len(sections) - len(kept), "section")]) + _END


def _folded(title: str, text: str) -> str:
    return f"<details><summary>{inline(title)}</summary>\n\n{text}\n\n</details>"


def _more(count: int, noun: str) -> str:
    return f"{count:,} more {noun if count == 1 else noun + 's'}: the reports in JSON and HTML have all of them."
