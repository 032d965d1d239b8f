"""The pytest plugin: a page for each failure, and nothing heavy imported before an assertion is used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.base import Report
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.testing import assert_exports, pages
from onnxsmith.testing.failure import raise_unless_done

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


MOVING = """
import os
from onnxsmith.testing import assert_same

def moving(x):
    os.makedirs("other", exist_ok=True)
    os.chdir("other")
    return "a"

def test_moving(): assert_same(moving, lambda x: "b", [1])
"""


def test_a_test_that_changes_the_folder_moves_no_page(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(MOVING)
    assert "1 failed" in pytest_in(tmp_path, "-q", "--onnxsmith-pages", "pages")
    assert list((tmp_path / "pages").iterdir()) == [tmp_path / "pages" / "test_it.py-test_moving.html"]
    assert not list((tmp_path / "other").rglob("*.html"))


FAILING = """
import pytest
from onnxsmith.testing import assert_not_worse, assert_same

def test_baseline(): assert_not_worse("m.onnx", "baseline.json")
def test_file(): assert_same("m.onnx", "gone.onnx")
"""


def test_what_stops_an_assertion_is_one_screen(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(FAILING)
    shown = pytest_in(tmp_path, "-q", "--onnxsmith-pages", "pages")
    assert "2 failed" in shown
    assert "gate/no-baseline" in shown
    assert "fix: record a baseline: `onnxsmith baseline record m.onnx -o baseline.json`" in shown
    assert "not tried" not in shown
    assert "site-packages" not in shown
    assert "onnxsmith/" not in shown.replace("--onnxsmith-pages", "")
    assert sorted(one.name for one in (tmp_path / "pages").iterdir()) == [
        "test_it.py-test_baseline.html",
        "test_it.py-test_file.html",
    ]


@pytest.mark.torch
def test_the_file_of_a_failed_export_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    module, kept = torch.nn.ReLU(), tmp_path / "page" / "model.onnx"
    monkeypatch.setattr(pages, "current", lambda: tmp_path / "page.html")
    assert_exports(module, (torch.rand(2, 4),))
    assert not kept.parent.exists()
    with pytest.raises(AssertionError, match="page: "):
        assert_exports(module, (torch.rand(2, 4),), target="no-such-target")
    assert kept.is_file()
    monkeypatch.setattr(pages, "current", None)
    with pytest.raises(AssertionError, match="the exported file is removed; keep it with output="):
        assert_exports(module, (torch.rand(2, 4),), target="no-such-target")


@pytest.mark.torch
def test_a_module_that_changes_the_folder_moves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    class Moving(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            os.chdir(tmp_path / "other")
            return x.relu()

    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    assert assert_exports(Moving(), (torch.rand(2, 4),), output="m.onnx") == tmp_path / "m.onnx"
    assert (tmp_path / "m.onnx").is_file()
    assert not list((tmp_path / "other").iterdir())


def test_a_fix_has_the_files_of_the_test() -> None:
    found = Problem("a/b", "they differ", fix="`onnxsmith compare REFERENCE CANDIDATE`; or `onnxsmith explain a/b`")
    report = Report("compare", Verdict.DIFFERENT, problems=(found,))
    with pytest.raises(AssertionError, match=r"fix: `onnxsmith compare a\.onnx b\.onnx`; or `onnxsmith explain a/b`"):
        raise_unless_done(report, {"REFERENCE": "a.onnx", "CANDIDATE": Path("b.onnx")})
    with pytest.raises(AssertionError, match="fix: `onnxsmith explain a/b`"):
        raise_unless_done(report, {"REFERENCE": object(), "CANDIDATE": Path("b.onnx")})


def test_the_plugin_imports_nothing_heavy() -> None:
    code = f"import sys, pytest; before = set(sys.modules); import {PLUGIN}; print(*sorted(set(sys.modules) - before))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {name.partition(".")[0] for name in shown} <= {"onnxsmith", "__future__"} | set(sys.stdlib_module_names)
    assert len(shown) < 10


def test_pytest_finds_the_plugin() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert f'[project.entry-points.pytest11]\nonnxsmith = "{PLUGIN}"' in text
