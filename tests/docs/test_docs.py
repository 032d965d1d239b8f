"""The documents and the code say the same, and say it plainly."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from onnxsmith.base import rooms
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli.commands.base import Command
from tools import pictures

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src" / "onnxsmith"
DECISIONS = sorted((ROOT / "docs" / "decisions").iterdir())
FRAGMENTS = sorted(path for path in (ROOT / "changelog.d").iterdir() if path.name != "README.md")
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "changelog.d").glob("*.md"),
        *(ROOT / "examples").rglob("*.md"),
        *(SOURCE / "viewer" / "pages").rglob("*.md"),
    ]
)

EMPTY_WORDS = """
blazing blazingly seamless seamlessly effortless effortlessly powerful cutting-edge state-of-the-art revolutionary
game-changing next-generation world-class best-in-class unparalleled unprecedented robustly supercharge unleash delve
leverage leverages leveraging utilize utilizes elegant beautiful awesome amazing magically lightning-fast
enterprise-grade production-ready battle-tested industry-leading
"""
EMPTY = re.compile(rf"(?<![\w-])({'|'.join(EMPTY_WORDS.split())})(?![\w-])", re.IGNORECASE)


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_decisions_are_numbered_without_a_gap() -> None:
    for number, path in enumerate(DECISIONS, 1):
        assert re.fullmatch(rf"{number:04}(-[a-z0-9]+)+\.md", path.name), path.name
        assert re.match(rf"# {number}\. [A-Z`]\S*.*[^.]\n\n", text(path)), f"{path.name}: the title"


def test_changelog_fragments_are_well_formed() -> None:
    """There are none just after a release."""
    for path in FRAGMENTS:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*\.(added|changed|fixed)\.md", path.name), path.name
        paragraph = re.fullmatch(r"[A-Z`][^\n]+(\n[^\n]+)*\.\n", text(path))
        assert paragraph, f"{path.name}: one paragraph that ends with a full stop"


def test_every_command_has_its_row_in_the_tour() -> None:
    rows = re.findall(r"^\| `onnxsmith ([a-z-]+)` +\| \S", text(ROOT / "docs/tour.md"), re.MULTILINE)
    commands = rooms.classes("onnxsmith.cli.commands", Command)  # type: ignore[type-abstract]
    assert sorted(rows) == sorted({id_.partition("/")[0] for id_ in commands})


def test_every_how_to_page_has_its_row_with_a_command_of_its_own() -> None:
    index, navigation = text(ROOT / "docs/how_to/index.md"), text(ROOT / "mkdocs.yml")
    rows = re.findall(r"^\| \[(.+)\]\((\w+\.md)\) \| `(.+)` \|$", index, re.MULTILINE)
    pages = {path.name: text(path) for path in (ROOT / "docs/how_to").iterdir() if path.name != "index.md"}
    assert sorted(name for _, name, _ in rows) == sorted(pages)
    for title, name, command in rows:
        assert pages[name].startswith(f"# {title}\n"), name
        assert command in pages[name], name
        assert f"- {title}: how_to/{name}\n" in navigation, name


def test_every_exit_status_has_its_row_in_the_tour() -> None:
    rows = re.findall(r"^\| (\d) +\| \S", text(ROOT / "docs/tour.md"), re.MULTILINE)
    assert rows == sorted(str(verdict.exit_code) for verdict in Verdict)


def test_the_readme_shows_what_the_demo_runs() -> None:
    recipe = re.search(r"^demo:.*\n((?:\t.*\n)+)", text(ROOT / "Makefile"), re.MULTILINE)
    assert recipe
    for line in recipe[1].splitlines():
        assert f"\n$ {line.strip().removeprefix('$(BIN)/')}\n" in text(ROOT / "README.md")


def test_the_readme_is_one_screen_to_its_rule() -> None:
    lines = text(ROOT / "README.md").splitlines()
    assert lines.index("---") < 60


def test_the_chart_is_that_of_the_benchmarks() -> None:
    assert text(ROOT / "docs/pictures/chart.svg") == pictures.chart()


def test_every_room_has_its_line_in_the_architecture() -> None:
    floors = text(ROOT / "docs/architecture.md").partition("## Floors\n")[2].partition("\n## ")[0]
    described = set(re.findall(r"^\|.*?\| `([a-z_]+)(?:/|\.py)`", floors, re.MULTILINE))
    described |= {"__init__"}  # below the table
    here = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path.is_dir() and any(path.iterdir()))}
    here = {name for name in here if not name.startswith(".") and name != "__pycache__"}
    assert here == described


def test_every_module_that_the_documents_name_is_there() -> None:
    documents = [ROOT / "docs/architecture.md", *DECISIONS]
    named = {(path.name, name) for path in documents for name in re.findall(r"`([a-z_/]+/[a-z_]+\.py)`", text(path))}
    assert named
    missing = [where for where in sorted(named) if not (any((folder / where[1]).exists() for folder in (SOURCE, ROOT)))]
    assert not missing


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", text(path)):
        if not target.startswith(("http://", "https://")):
            assert (path.parent / target).exists(), target


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative)
def test_no_empty_words(path: Path) -> None:
    assert not EMPTY.findall(text(path))
