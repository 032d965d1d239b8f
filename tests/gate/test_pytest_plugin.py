"""The pytest plugin: a page for each failure, and nothing heavy imported before an assertion is used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = """
from onnxsmith.testing import assert_same

def test_same(): assert_same(lambda x: x, lambda x: x, [1])
def test_other(): assert_same(lambda x: "a", lambda x: "b", [1])
"""
PLUGIN = "onnxsmith.testing.pytest_plugin"


def pytest_in(folder: Path, *words: str) -> str:
    path = os.pathsep.join(filter(None, [str(Path(__file__).parents[2] / "src"), os.environ.get("PYTHONPATH", "")]))
    variables = {**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-p", PLUGIN, *words]
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False).stdout


def test_a_failure_names_its_page(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    shown = pytest_in(tmp_path, "-q", "--onnxsmith-pages", "pages")
    assert "1 failed, 1 passed" in shown
    page = tmp_path / "pages" / "test_it.py-test_other.html"
    assert f"page: {page}" in shown
    assert "gate/answers-differ" in page.read_text(encoding="utf-8")
    assert "assertions.py" not in shown  # the traceback ends at the user's line
    pytest_in(tmp_path, "-q")
    assert (tmp_path / ".pytest_cache" / "d" / "onnxsmith" / "test_it.py-test_other.html").is_file()


def test_the_plugin_imports_nothing_heavy() -> None:
    code = f"import sys, pytest; before = set(sys.modules); import {PLUGIN}; print(*sorted(set(sys.modules) - before))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {name.partition(".")[0] for name in shown} <= {"onnxsmith", "__future__"} | set(sys.stdlib_module_names)
    assert len(shown) < 10


def test_pytest_finds_the_plugin() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert f'[project.entry-points.pytest11]\nonnxsmith = "{PLUGIN}"' in text
