"""The lines that `docs/samples.md` says it needs are those that it has."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parent.parent.parent / "docs" / "samples.md").read_text(encoding="utf-8")


def test_the_table_counts_the_lines_of_each_sample() -> None:
    rows = re.findall(r"^\| (\d+) .*?\| (\d+) +\| (\d+) +\|", PAGE, flags=re.MULTILINE)
    counted = {}
    for section in PAGE.split("\n## ")[1:]:
        code = "\n".join(re.findall(r"```\w+\n(.*?)```", section, flags=re.DOTALL))
        counted[section.split()[0]] = len([line for line in code.splitlines() if line.strip()])
    assert {number: int(ours) for number, _, ours in rows} == counted
    assert all(int(ours) * 2 <= int(theirs) for _, theirs, ours in rows)
