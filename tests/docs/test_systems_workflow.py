"""The workflow for other systems is valid, needs no make, and names what exists. It is not run here."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

from tests.docs.test_commands import DOCUMENTS

ROOT = Path(__file__).parents[2]
WORKFLOW: dict[Any, Any] = yaml.safe_load((ROOT / ".github/workflows/systems.yml").read_text(encoding="utf-8"))
JOB = WORKFLOW["jobs"]["tests"]
STEPS = [step["run"] for step in JOB["steps"] if "run" in step]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_system_and_python_is_asked() -> None:
    matrix = JOB["strategy"]["matrix"]
    assert {name.partition("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}
    claimed = [re.search(r":: (3\.\d+)$", entry) for entry in PROJECT["classifiers"]]
    assert {match[1] for match in claimed if match} <= set(matrix["python"])
    assert not JOB["strategy"]["fail-fast"]


def test_each_line_runs_where_there_is_no_make() -> None:
    lines = [line.strip() for step in STEPS for line in step.splitlines()]
    assert lines
    assert all(re.match(r"(python -m (pip|pytest)|onnxsmith) ", line) for line in lines), lines


def test_what_is_installed_and_run_exists() -> None:
    text = "\n".join(STEPS)
    for extras in re.findall(r"\.\[([\w,]+)\]", text):
        assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
    (path, function, document) = re.findall(r"(tests/\S+\.py)::(\w+)\[(\S+?)\]", text)[0]
    assert f"def {function}(" in (ROOT / path).read_text(encoding="utf-8")
    assert document in DOCUMENTS
    assert "--tier=first" in text


def test_the_page_says_that_it_was_never_run() -> None:
    page = (ROOT / "docs" / "platforms.md").read_text(encoding="utf-8")
    assert "`.github/workflows/systems.yml`" in page
    assert "was never run" in page
