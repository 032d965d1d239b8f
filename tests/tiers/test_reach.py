"""Which test files a change reaches."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.tiers import reach

MESSAGES = "tests/viewer/inspection/test_messages.py"
BATCHNORM = "tests/optimizer/rules/test_conv_batchnorm.py"


@pytest.mark.parametrize(
    ("path", "near", "far"),
    [
        (
            "src/onnxsmith/verification/detection_power.py",
            "tests/verification/test_detection_power.py",
            "tests/optimizer/test_faulty_rewrites.py",
        ),
        # members of a room are found by walking a folder, which no import shows
        ("src/onnxsmith/optimizer/rules/fuse/batch_normalizations.py", BATCHNORM, "tests/editor/test_edit.py"),
        ("src/onnxsmith/runtimes/_onnxruntime_host.py", "tests/runtimes/test_child.py", BATCHNORM),
        ("src/onnxsmith/viewer/pages/model/not-found.md", "tests/test_pages.py", MESSAGES),
        ("tests/rewrites.py", BATCHNORM, "tests/optimizer/rules/test_cast_chain.py"),
        ("tests/exports.py", "tests/test_compared_once.py", "tests/exporter/test_resize.py"),
        ("viewer/src/app.ts", "tests/viewer/browser/test_build.py", "tests/viewer/browser/test_build.py"),
        ("docs/exporting.md", "tests/docs/test_commands.py", "tests/docs/test_docs.py"),
        ("tests/suites/backend_wrong.txt", "tests/suites/test_backend_data.py", "tests/suites/test_order.py"),
    ],
)
def test_a_change_reaches(path: str, near: str, far: str) -> None:
    found = reach.reached([path])
    assert near in found
    assert far in found
    assert found[near] <= found[far]


@pytest.mark.parametrize(
    ("path", "beyond"),
    [
        ("src/onnxsmith/precision/keep_list_search.py", BATCHNORM),
        ("src/onnxsmith/cli/commands/bundle.py", "tests/verification/test_detection_power.py"),
        ("docs/exporting.md", BATCHNORM),
    ],
)
def test_a_change_does_not_reach(path: str, beyond: str) -> None:
    assert beyond not in reach.reached([path])


def test_a_test_file_reaches_itself() -> None:
    assert reach.reached([BATCHNORM]) == {BATCHNORM: 0}


def test_every_module_reaches_a_test_file() -> None:
    source = reach.ROOT / "src" / "onnxsmith"
    modules = [path for path in source.rglob("*.py") if path.name != "__init__.py"]
    without = [str(path) for path in modules if not reach.reached([path.relative_to(reach.ROOT).as_posix()])]
    assert not without


def test_what_changed_since_a_commit(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "-C", str(tmp_path), *who, *words], check=True, capture_output=True)

    git("init", "-q")
    for name in ("same", "changed", "committed"):
        (tmp_path / name).write_text("1", encoding="utf-8")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    (tmp_path / "committed").write_text("2", encoding="utf-8")
    git("commit", "-q", "-a", "-m", "second")
    (tmp_path / "changed").write_text("2", encoding="utf-8")
    (tmp_path / "new").write_text("1", encoding="utf-8")
    assert reach.changed("HEAD~1", tmp_path) == ["changed", "committed", "new"]


def test_each_pile_begins_with_the_nearest() -> None:
    assert reach.dealt({"c": 2, "a": 0, "d": 3, "b": 1}, 2) == ["a", "c", "b", "d"]
