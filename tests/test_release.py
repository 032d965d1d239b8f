"""What `tools/release.py` finds out before a release, without building one."""

from __future__ import annotations

import importlib.util
import io
import re
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

import onnxsmith

ROOT = Path(__file__).parent.parent
CHANGELOG = """# Changes

## 0.2.0 (2027-01-05)

### Added

- One thing, told
  on two lines.
- Another.

A paragraph
of two lines.

## 0.1.0 (2026-11-23)

The first.
"""


def tool() -> Any:
    """The program as a module, under a name that no other has."""
    spec = importlib.util.spec_from_file_location("_onnxsmith_release", ROOT / "tools" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


release = tool()


def test_notes_are_the_section_of_the_version_with_paragraphs_on_one_line() -> None:
    assert release.notes_of(CHANGELOG, "0.2.0") == (
        "# onnxsmith 0.2.0 (2027-01-05)\n\n### Added\n\n- One thing, told on two lines.\n- Another.\n\n"
        "A paragraph of two lines.\n"
    )
    assert release.notes_of(CHANGELOG, "0.1.0") == "# onnxsmith 0.1.0 (2026-11-23)\n\nThe first.\n"


@pytest.mark.parametrize(
    ("changelog", "number"),
    [
        (CHANGELOG, "0.3.0"),
        (CHANGELOG, "0.1"),
        (CHANGELOG.replace(" (2026-11-23)", ""), "0.1.0"),
        (CHANGELOG + "\n## 0.1.0 (2026-11-24)\n\nAgain.\n", "0.1.0"),
        ("# Changes\n\n## 0.1.0 (2026-11-23)\n\n", "0.1.0"),
    ],
)
def test_notes_of_a_section_that_is_missing_empty_or_there_twice(changelog: str, number: str) -> None:
    with pytest.raises(release.ReleaseError, match=r"CHANGELOG\.md has"):
        release.notes_of(changelog, number)


def test_this_version_has_notes_and_the_readme_names_it() -> None:
    number = release.version()
    assert number == onnxsmith.__version__
    assert release.notes_of((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), number)
    named = re.findall(r"onnxsmith-(\d[\w.]*)-py3", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert set(named) == {number}


def test_unwrapping_leaves_tables_and_headings_alone() -> None:
    text = "### Title\nunder it\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n1. one\n   more\n2. two"
    assert release.unwrapped(text) == ("### Title\nunder it\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n1. one more\n2. two")


def test_difference_says_what_is_missing_and_what_is_too_much() -> None:
    assert release.difference(["a", "b"], ["b", "c"]) == (["a"], ["c"])
    release.complain(Path("x.whl"), ([], []))
    with pytest.raises(release.ReleaseError, match=r"x\.whl lacks 1 files: a"):
        release.complain(Path("x.whl"), (["a"], []))
    with pytest.raises(release.ReleaseError, match=r"x\.whl should not have 1 files: c"):
        release.complain(Path("x.whl"), ([], ["c"]))


def test_files_of_wheels_and_source_distributions(tmp_path: Path) -> None:
    wheel, sdist = tmp_path / "p.whl", tmp_path / "p.tar.gz"
    with zipfile.ZipFile(wheel, "w") as to:
        to.writestr("p/a.py", "1")
    with tarfile.open(sdist, "w:gz") as to:
        folder, file = tarfile.TarInfo("p-1"), tarfile.TarInfo("p-1/a.py")
        folder.type, file.size = tarfile.DIRTYPE, 1
        to.addfile(folder)
        to.addfile(file, io.BytesIO(b"1"))
    assert release.files_of(wheel) == {"p/a.py": b"1"}
    assert release.files_of(sdist) == {"p-1/a.py": b"1"}


def test_pythons_are_those_of_the_classifiers() -> None:
    classifiers = [f"Programming Language :: Python :: {one}" for one in ("3", "3.12", "3.9", "3.11")]
    assert release.claimed_pythons({"classifiers": classifiers, "requires-python": ">=3.9"}) == ["3.9", "3.11", "3.12"]
    with pytest.raises(release.ReleaseError, match="requires-python"):
        release.claimed_pythons({"classifiers": classifiers, "requires-python": ">=3.10"})
    assert release.claimed_pythons(release.project())


def test_a_python_that_is_not_here() -> None:
    assert release.find_python("3.1") is None
    here = "{}.{}".format(*sys.version_info[:2])
    assert release.find_python(here) == sys.executable


def test_a_command_that_fails_ends_the_release_with_what_it_said(tmp_path: Path) -> None:
    with pytest.raises(release.ReleaseError, match=r"ended with 3:\nno"):
        release.output(sys.executable, "-c", "import sys; print('no'); sys.exit(3)", cwd=tmp_path)


def test_the_commands_that_publish_name_what_was_built() -> None:
    tag, upload = release.publishing("1.2.3", release.DIST / "a.tar.gz", release.DIST / "a.whl")
    assert tag.endswith("git push origin v1.2.3")
    assert upload.endswith("twine upload dist/a.tar.gz dist/a.whl")
