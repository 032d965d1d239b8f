"""What the package claims to run with is what `docs/platforms.md` says was run, no more and no less."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from onnxsmith.base.library_versions import NEWEST_TESTED, release

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "platforms.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def rows(heading: str) -> list[list[str]]:
    """The cells of the tables below a heading, without their headings."""
    text = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    table = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    parsed = [[cell.strip() for cell in row] for row in table]
    rules = [index for index, row in enumerate(parsed) if set(row[0]) == {"-"}]
    return [row for index, row in enumerate(parsed) if index not in rules and index + 1 not in rules]


def classified(prefix: str) -> set[str]:
    return {entry.removeprefix(prefix) for entry in PROJECT["classifiers"] if entry.startswith(prefix)}


def test_the_pythons_of_the_classifiers_are_those_that_were_run() -> None:
    pythons = {name for name in classified("Programming Language :: Python :: ") if "." in name}
    assert pythons == {row[0] for row in rows("Run")}
    assert classified("Operating System :: ") == {"POSIX :: Linux"}


def requirements() -> dict[str, str]:
    """The packages that users install, torch among them, with their versions as in pyproject.toml."""
    extras = PROJECT["optional-dependencies"]
    names = ("cpu", "openvino", "tract", "iree", "nncf", "mcp", "torch")
    entries = [*PROJECT["dependencies"], *(entry for name in names for entry in extras[name])]
    split = (re.fullmatch(r"([\w-]+)(\S+?)(;.*)?", entry) for entry in entries)
    return {match[1]: match[2] for match in split if match is not None}


def oldest(versions: str) -> str:
    return re.split(">=|~=", versions.partition(",")[0])[1]


def below(versions: str) -> str:
    """The first version that is not allowed, "none" if all later ones are. `~=1.2.3` ends at 1.3."""
    if versions.startswith("~="):
        *kept, _ = release(versions[2:])
        return ".".join(map(str, [*kept[:-1], kept[-1] + 1]))
    return versions.partition("<")[2] or "none"


def test_the_parts_of_a_requirement() -> None:
    assert [below(one) for one in ("~=1.23", "~=0.5.3", ">=2.11,<3", ">=2")] == ["2", "0.6", "3", "none"]
    assert [oldest(one) for one in ("~=1.23", ">=2.11,<3", ">=2")] == ["1.23", "2.11", "2"]
    assert len(requirements()) == len(NEWEST_TESTED)


def test_the_bounds_are_those_of_the_page() -> None:
    """The lower bound is the oldest version that was run."""
    bounds = {name: [oldest(one), below(one)] for name, one in requirements().items() if name != "torch"}
    assert bounds == {row[0]: [row[1], row[3]] for row in rows("Versions") if len(row) == 4}
    assert PROJECT["optional-dependencies"]["gpu"] == [f"onnxruntime-gpu{requirements()['onnxruntime']}"]
    capped = re.search(r"torch is capped below (\d+)\.", PAGE)
    assert capped is not None
    assert below(requirements()["torch"]) == capped[1]


def test_a_package_without_an_upper_bound_has_its_reason() -> None:
    uncapped = [name for name, one in requirements().items() if below(one) == "none"]
    reasons = {name: row[1] for row in rows("Versions") if len(row) == 2 for name in row[0].split(", ")}
    assert reasons.keys() == set(uncapped)
    assert all(reasons.values())


def test_the_newest_that_were_run_are_those_of_the_package() -> None:
    """`doctor` compares what is installed with the table of the package."""
    newest = {row[0]: row[2] for row in rows("Versions") if len(row) == 4}
    runs = [found for row in rows("Run") for found in re.findall(r"torch (\d[\d.]*)", row[1])]
    assert {**newest, "torch": max(runs, key=release)} == NEWEST_TESTED
