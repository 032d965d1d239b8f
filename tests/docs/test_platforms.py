"""What the package claims to run with is what `docs/platforms.md` says was run, no more and no less."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from onnxsmith.library_versions import NEWEST_TESTED, release

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "platforms.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading."""
    text = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    table = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in table[2:]]


def classified(prefix: str) -> set[str]:
    return {entry.removeprefix(prefix) for entry in PROJECT["classifiers"] if entry.startswith(prefix)}


def test_the_pythons_of_the_classifiers_are_those_that_were_run() -> None:
    pythons = {name for name in classified("Programming Language :: Python :: ") if "." in name}
    assert pythons == {row[0] for row in rows("Run")}
    assert classified("Operating System :: ") == {"POSIX :: Linux"}


def test_the_lower_bounds_are_the_oldest_that_were_run() -> None:
    extras = PROJECT["optional-dependencies"]
    names = ("cpu", "openvino", "tract", "iree", "nncf", "torch")
    wanted = [*PROJECT["dependencies"], *(entry for name in names for entry in extras[name])]
    bounds = {
        name: bound
        for name, bound in (re.split(">=|~=", re.split("[,;]", entry)[0]) for entry in wanted)
        if name != "torch"
    }
    assert bounds == {row[0]: row[1] for row in rows("Versions")}


def test_the_newest_that_were_run_are_those_of_the_package() -> None:
    """`doctor` compares what is installed with the table of the package."""
    newest = {row[0]: row[2] for row in rows("Versions")}
    runs = [found for row in rows("Run") for found in re.findall(r"torch (\d[\d.]*)", row[1])]
    assert {**newest, "torch": max(runs, key=release)} == NEWEST_TESTED
