"""The pages of the documentation site, staged without MkDocs: complete, linked, and each in the navigation."""

from __future__ import annotations

import inspect
import posixpath
import re
from functools import cache
from pathlib import Path

import onnxsmith
from onnxsmith.base import rooms
from onnxsmith.cli.commands.base import Command
from onnxsmith.optimizer.rules.base import Rule
from onnxsmith.precision.methods.base import Method
from onnxsmith.targets.judges.base import Target
from onnxsmith.targets.profiles import profile_reader
from onnxsmith.viewer.inspection import cause_matching
from onnxsmith.viewer.problem_pages import problem_pages
from tools.documentation import markdown, navigation, staging
from tools.documentation.reference import rules

MKDOCS = staging.ROOT / "mkdocs.yml"
LINK = re.compile(r"\]\(([^)\s]+)\)")


@cache
def staged() -> staging.Files:
    return staging.files()


def pages() -> dict[str, str]:
    return {path: text for path, text in staged().items() if isinstance(text, str)}


def anchors(path: str) -> set[str]:
    return markdown.anchors(pages()[path])


def dead_links(texts: dict[str, str]) -> list[str]:
    """The links that lead to no page, no file, or no heading."""
    known = {path: markdown.anchors(text) for path, text in texts.items()}
    dead = []
    for path, text in texts.items():
        for line, is_text in markdown.outside_code(text):
            for target in LINK.findall(re.sub(r"`[^`]*`", "", line)) if is_text else ():
                if target.startswith(("http://", "https://")):
                    continue
                name, _, anchor = target.partition("#")
                place = posixpath.normpath(posixpath.join(posixpath.dirname(path), name)) if name else path
                if place not in staged() or (anchor and anchor not in known.get(place, ())):
                    dead.append(f"{path}: {target}")
    return dead


def test_every_link_leads_somewhere() -> None:
    assert dead_links(pages()) == []


def test_a_link_to_no_page_and_one_to_no_heading_are_noticed() -> None:
    changed = {**pages(), "index.md": "# Home\n\n[a](nowhere.md), [b](exporting.md#nowhere) and [c](exporting.md)\n"}
    assert dead_links(changed) == ["index.md: nowhere.md", "index.md: exporting.md#nowhere"]


def test_every_document_is_staged() -> None:
    documents = {path.relative_to(staging.ROOT / "docs").as_posix() for path in (staging.ROOT / "docs").rglob("*.md")}
    examples = {f"{path.parent.name}/index.md" for path in (staging.ROOT / "examples").glob("*/README.md")}
    assert documents <= set(pages())
    assert {f"examples/{name}" for name in examples} <= set(pages())
    assert {"index.md", "contributing.md", "changelog.md"} <= set(pages())


def test_every_page_is_in_the_navigation_once() -> None:
    entries = re.findall(r"^ +- (?:.*: )?(\S+\.md)$", navigation.settings(MKDOCS, staged()), re.MULTILINE)
    assert sorted(entries) == sorted(pages())


def test_entries_without_a_page_are_left_out_with_their_section() -> None:
    left = {path: text for path, text in staged().items() if not path.startswith(("decisions/", "glossary"))}
    settings = navigation.settings(MKDOCS, left)
    assert "Glossary" not in settings
    assert "Decisions" not in settings
    assert "      - Architecture: architecture.md\n" in settings
    assert "docs_dir: docs\nsite_dir: site\n" in settings


def test_reference_pages_say_what_they_list() -> None:
    for path, text in pages().items():
        if path.startswith("reference/"):
            assert text.split("\n\n")[1].startswith("This page lists "), path


def test_every_command_has_its_page() -> None:
    for command in rooms.classes("onnxsmith.cli.commands", Command).values():  # type: ignore[type-abstract]
        text = pages()[f"reference/commands/{command.name.replace(' ', '-')}.md"]
        assert text.startswith(f"# onnxsmith {command.name}\n")
        assert "## Options\n\n| option |" in text
        assert all(line in text for _, line in command.examples)
        assert f"commands/{command.name.replace(' ', '-')}.md)" in pages()["index.md"]


def test_every_problem_has_its_place() -> None:
    for id_, page in problem_pages():
        room, _, kind = id_.partition("/")
        assert kind in anchors(f"reference/problems/{room}.md"), id_
        assert page.splitlines()[-1] in pages()[f"reference/problems/{room}.md"] or "/" in page.splitlines()[-1]


def test_every_rule_has_its_place_with_both_models() -> None:
    for id_, rule in rooms.classes("onnxsmith.optimizer.rules", Rule).items():
        page = f"reference/rules/{id_.partition('/')[0]}.md"
        section = pages()[page].partition(f"{{ #{rules.anchor(id_)} }}")[2].partition("\n## ")[0]
        before = (inspect.getdoc(rule) or "").partition("Before:\n")[2].splitlines()[0].strip()
        assert f"**Before**\n\n```text\n{before}\n" in section, id_
        assert "**After**\n\n```text\n" in section, id_


def test_every_target_profile_and_method_has_its_place() -> None:
    profiles = {f"profile-{name}" for name in profile_reader.built_in()}
    assert {*rooms.classes("onnxsmith.targets.judges", Target), *profiles} <= anchors("reference/targets.md")
    assert set(rooms.classes("onnxsmith.precision.methods", Method)) <= anchors("reference/quantization.md")


def test_every_public_name_has_its_place() -> None:
    text = pages()["reference/python.md"]
    assert set(onnxsmith.__all__) - {"__version__"} <= anchors("reference/python.md")
    assert {"baseline-record", "testing-assert_same", "compat-torch_export"} <= anchors("reference/python.md")
    assert "| `write_unsure` | `bool` | `False` |" in text  # a field of Save
    assert not re.search(r"^    \w+: \w+ = [A-Z_]{2,},$", text, re.MULTILINE)  # a constant has its number
    assert "\nsplit(\n    source: Source,\n    folder: str | Path,\n    *,\n" in text


def test_the_home_page_has_no_badge_and_no_address_outside() -> None:
    assert "http" not in pages()["index.md"]


def test_what_is_staged_is_written_whole(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "old.md").write_text("# Old\n", encoding="utf-8")
    staging.write(staged(), tmp_path)
    written = {path.relative_to(tmp_path / "docs").as_posix() for path in (tmp_path / "docs").rglob("*.*")}
    assert written == set(staged())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["docs", "mkdocs.yml"]


def test_text_is_shown_as_it_is() -> None:
    assert markdown.escaped("a*b, <x> and `c|*`\n[d]") == r"a\*b, &lt;x&gt; and `c|*` \[d\]"


def test_a_docstring_with_sections() -> None:
    example = "Does.\n\n    run(1)\n\n    run(2)\n\n"
    text = f"{example}Refused:\n1. One\n   more.\n2. Two.\n\nRaises:\n    Error: `a/b`;\n        or c."
    assert markdown.from_docstring(text, "python") == (
        "Does.\n\n```python\nrun(1)\n\nrun(2)\n```\n\n**Refused**\n\n1. One more.\n2. Two.\n\n"
        "**Raises**\n\n- `Error`: `a/b`; or c."
    )


def test_mkdocs_is_strict_and_not_quiet() -> None:
    """With `--quiet` MkDocs counts no warnings, and a dead link passes."""
    (line,) = re.findall(r"mkdocs build .*", (staging.ROOT / "Makefile").read_text(encoding="utf-8"))
    assert "--strict" in line
    assert "--quiet" not in line


def test_every_known_message_is_on_a_page() -> None:
    for message in cause_matching.known().values():
        page = pages()[f"reference/messages/{message.tool}.md"]
        assert f"{{ #{message.id.partition('/')[2]} }}" in page
        assert all(link in page for link in message.links)
