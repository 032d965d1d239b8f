"""What the documents tell a reader to do is done: their commands, their Python, in order, in a copy of the tree."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import documents, gallery

ROOT = Path(__file__).parent.parent.parent
DOCUMENTS = [
    "README.md",
    "CONTRIBUTING.md",
    "docs/building.md",
    "docs/bundles.md",
    "docs/editing.md",
    "docs/exporting.md",
    "docs/samples.md",
    "docs/tour.md",
    "docs/tutorial/first_hour.md",
    "docs/verification.md",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "coming_from").iterdir()),
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "how_to").iterdir() if path.stem != "index"),
]

FROM_A_SHELL = {"README.md", "CONTRIBUTING.md"}
"""Each of their commands is a process, as a reader starts it; what they add to the package is found by new processes
only. The others run in this process, which has torch already."""
SKIPPED = ("make ", "pip install ", "git ")


@pytest.fixture
def tree(tmp_path: Path, name: str) -> Path:
    """A copy of the tree, without what git ignores, and without 3,000 files of code that this process has already."""
    ignored = [".git", "node_modules", ".venv*", ".*_cache", "__pycache__", ".hypothesis", "*.egg-info", "dist"]
    if name not in FROM_A_SHELL:
        ignored += ["src", "tests", "changelog.d"]
    return Path(shutil.copytree(ROOT, tmp_path / "tree", ignore=shutil.ignore_patterns(*ignored)))


@pytest.fixture
def environment(tmp_path: Path, tree: Path, name: str) -> dict[str, str]:
    """`python` and `onnxsmith` are this Python's, with the sources of the copy if it has them."""
    return documents.environment(tmp_path / "bin", (tree if name in FROM_A_SHELL else ROOT) / "src")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_does_what_it_says(name: str, tree: Path, environment: dict[str, str]) -> None:
    run = in_a_shell if name in FROM_A_SHELL else in_this_process
    done = 0
    with gallery.inside(tree, environment):
        for step in documents.steps((tree / name).read_text(encoding="utf-8")):
            where = f"{name}, line {step.line}"
            if step.kind == "file":
                target = tree / step.path
                assert not target.exists(), f"{where}: {target.name} is there already"
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(step.text, encoding="utf-8")
                continue
            if step.kind == "command" and step.text.startswith(SKIPPED):
                continue
            printed, status = run(step, environment)
            assert status == 0, f"{where}: {step.text}\n{printed}"
            missing = documents.missing(step.shown, printed) if step.kind == "command" else ""
            assert not missing, f"{where}: not printed: {missing}\n{printed}"
            done += 1
    assert done, f"{name} tells nobody to do anything"


def in_a_shell(step: documents.Step, environment: dict[str, str]) -> tuple[str, int]:
    command = ["bash", "-c", step.text] if step.kind == "command" else [sys.executable, "-c", step.text]
    found = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return found.stdout + (found.stderr if found.returncode else ""), found.returncode


def in_this_process(step: documents.Step, environment: dict[str, str]) -> tuple[str, int]:
    if step.kind == "command":
        return gallery.printed(step.text, environment)
    if gallery.defines_operators(step.text):
        return gallery.apart(["python", "-c", step.text], environment)
    return gallery.called(lambda: exec(step.text, {"__name__": "__main__"}), ["-c"])


# The test's own parts


def test_commands_are_found_and_optional_ones_left_out() -> None:
    document = "# A\n```console\n$ make x\n$ one\nout\n…\nmore\n```\n## B (optional)\n```console\n$ two\n```\n"
    document += "### C\n```console\n$ three\n```\n## D\n```python\nfour\n```\n`a/b.py`:\n\n```python\nfive\n```\n"
    found = [(step.kind, step.text, step.shown, step.path) for step in documents.steps(document)]
    assert found == [
        ("command", "make x", [], ""),
        ("command", "one", ["out", "…", "more"], ""),
        ("python", "four\n", [], ""),
        ("file", "five\n", [], "a/b.py"),
    ]


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("network 28.19 dB", "network 28.23 dB", True),
        ("network 28.19 dB", "network 28.29 dB", False),
        ("on 10 inputs", "on 11 inputs", False),
        ("gain: +1.12 dB", "gain:  +1.10 dB  ", True),
        ("a → …/b.onnx: done", "a → /x/y/b.onnx: done", True),
        ("a → …/b.onnx: done", "a → /x/y/b.onnx: failed", False),
        ("up.png: 200x133", "up.png: 200x134", False),
    ],
)
def test_lines_are_held_to_each_other(shown: str, printed: str, same: bool) -> None:
    assert (documents.missing([shown], f"first\n{printed}\nlast") == "") is same
