"""docs/ci.md: its workflow, its pipeline and its hook do what the page says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from onnxsmith.gate.baselines import verbs
from onnxsmith.gate.baselines.settings import Settings
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from tests import documents

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
BLOCKS = {one.path: "\n".join(one.lines) for one in documents.blocks(PAGE) if one.language == "yaml"}
WORKFLOW, PIPELINE, HOOKS = ".github/workflows/models.yml", ".gitlab-ci.yml", ".pre-commit-config.yaml"
MODEL = """<ir_version: 10, opset_import: ["": 20]>
g (float[n,4] x) => (float[n,2] y) <float[4,2] w = {1,2,3,4,5,6,7,8}> { y = MatMul(x, w) }"""
WORSE = MODEL.replace("7,8}", "7,9}").replace("y = MatMul(x, w)", "t = MatMul(x, w) y = Identity(t)")
TEST = """from onnxsmith.testing import assert_not_worse


def test_classifier() -> None:
    assert_not_worse("models/classifier.onnx", "baseline.json")
"""


@dataclass(frozen=True)
class Repository:
    """A repository with a model, its baseline and a test, and the variables of a CI service."""

    folder: Path
    variables: Mapping[str, str]

    def run(self, script: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Runs lines as a CI service does."""
        return subprocess.run(
            ["bash", "-e", "-c", script],
            cwd=self.folder,
            env={**self.variables, **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def worsen(self) -> None:
        save(from_text(WORSE), self.folder / "models" / "classifier.onnx")

    def reports(self) -> set[str]:
        return {file.name for file in (self.folder / "reports").iterdir()}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    folder = tmp_path / "repository"
    (folder / "models").mkdir(parents=True)
    save(from_text(MODEL), folder / "models" / "classifier.onnx")
    monkeypatch.chdir(folder)
    verbs.record(["models/classifier.onnx"], "baseline.json", Settings(times=False))
    (folder / "test_models.py").write_text(TEST)
    variables = documents.environment(tmp_path / "bin", ROOT / "src")
    programs = {
        "pytest": f'exec "{sys.executable}" -m pytest -p no:cacheprovider "$@"',
        "gh": f'echo "$@" >> "{tmp_path}/gh.txt"\ncat "${{@: -1}}" >> "{tmp_path}/comment.md"',
    }
    for name, text in programs.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    subprocess.run("git init -q && git add -A", shell=True, cwd=folder, check=True)
    return Repository(folder, {**variables, "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")})


def installed(line: str) -> None:
    """Fails unless a line that installs names this package, extras that it has, and known tools."""
    words = shlex.split(line)
    assert words[:2] == ["pip", "install"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = re.fullmatch(r"(\w+)\[([\w,]+)\]", words[2])
    assert named
    assert named[1] == project["name"]
    assert set(named[2].split(",")) <= set(project["optional-dependencies"])
    assert words[3:] == ["pytest"]


def job(repository: Repository) -> tuple[list[str], str]:
    """The names of the steps that failed, and what all printed. Steps run as their conditions say."""
    workflow: dict[Any, Any] = yaml.safe_load(BLOCKS[WORKFLOW])
    (steps,) = (one["steps"] for one in workflow["jobs"].values())
    failed: list[str] = []
    printed = ""
    for step in steps:
        when = step.get("if", "${{ success() }}")
        assert when in ("${{ success() }}", "${{ !cancelled() }}", "${{ failure() }}")
        if "uses" in step:
            continue
        if step["run"].startswith("pip "):
            installed(step["run"])
        elif when == "${{ !cancelled() }}" or (when == "${{ failure() }}") == bool(failed):
            more = dict.fromkeys(step.get("env", {}), "7")
            done = repository.run(step["run"], **more)
            printed += done.stdout
            failed += [step["name"]] if done.returncode else []
    return failed, printed


def test_the_workflow_passes_an_unchanged_model(repository: Repository) -> None:
    failed, printed = job(repository)
    assert not failed, printed
    wanted = {f"{command}.{ending}" for command in ("guard", "baseline") for ending in ("md", "sarif", "xml")}
    assert repository.reports() == {*wanted, "baseline.html", "tests.xml"}
    summary = Path(repository.variables["GITHUB_STEP_SUMMARY"]).read_text(encoding="utf-8")
    assert "1 file fit to be committed" in summary
    assert "1 model not worse" in summary
    assert not (repository.folder.parent / "gh.txt").exists()


def test_the_workflow_stops_a_worse_model_and_comments(repository: Repository) -> None:
    repository.worsen()
    failed, printed = job(repository)
    assert failed == ["baseline", "tests"], printed
    assert (repository.folder.parent / "gh.txt").read_text() == "pr comment 7 --body-file reports/baseline.md\n"
    comment = (repository.folder.parent / "comment.md").read_text(encoding="utf-8")
    assert comment == (repository.folder / "reports" / "baseline.md").read_text(encoding="utf-8")
    assert list((repository.folder / "reports" / "pages").glob("*.html"))
    (shown,) = ("\n".join(one.lines) for one in documents.blocks(PAGE) if one.language == "markdown")
    assert comment.startswith(shown), comment
    assert comment[len(shown) :].startswith("\n\n<details><summary>Time</summary>")


def test_the_workflow_stops_a_model_without_an_entry(repository: Repository) -> None:
    save(from_text(MODEL), repository.folder / "models" / "new.onnx")
    subprocess.run(["git", "add", "-A"], cwd=repository.folder, check=True)
    failed, printed = job(repository)
    assert failed == ["baseline"], printed
    comment = (repository.folder.parent / "comment.md").read_text(encoding="utf-8")
    assert "gate/model-new" in comment
    assert "onnxsmith baseline record models/new.onnx -o baseline.json" in comment


def test_a_repository_without_tests_leaves_the_step_out(repository: Repository) -> None:
    (repository.folder / "test_models.py").unlink()
    failed, _ = job(repository)
    assert failed == ["tests"]
    (step,) = (one for one in yaml.safe_load(BLOCKS[WORKFLOW])["jobs"]["models"]["steps"] if one.get("name") == "tests")
    assert repository.run(step["run"]).returncode == 5


def test_the_workflow_stops_a_model_that_is_gone(repository: Repository) -> None:
    subprocess.run(["git", "rm", "-q", "--cached", "models/classifier.onnx"], cwd=repository.folder, check=True)
    (repository.folder / "models" / "classifier.onnx").unlink()
    failed, printed = job(repository)
    assert "baseline" in failed, printed
    assert "gate/model-missing" in (repository.folder.parent / "comment.md").read_text(encoding="utf-8")


def test_the_workflow_stops_a_pickle(repository: Repository) -> None:
    (repository.folder / "models" / "classifier.pt").write_bytes(b"\x80\x02}q\x00X\x01\x00\x00\x00aq\x01K\x01s.")
    subprocess.run(["git", "add", "-A"], cwd=repository.folder, check=True)
    failed, printed = job(repository)
    assert failed == ["guard"], printed
    assert (repository.folder.parent / "gh.txt").read_text() == "pr comment 7 --body-file reports/guard.md\n"


@pytest.mark.parametrize("state", ["as recorded", "worse", "new"])
def test_the_pipeline(repository: Repository, state: str) -> None:
    if state == "worse":
        repository.worsen()
    if state == "new":
        save(from_text(MODEL), repository.folder / "models" / "new.onnx")
        subprocess.run(["git", "add", "-A"], cwd=repository.folder, check=True)
    about = yaml.safe_load(BLOCKS[PIPELINE])["models"]
    installed(about["before_script"][0])
    lines = ["set -o pipefail", *about["before_script"][1:], *about["script"]]
    done = repository.run("\n".join(lines))
    assert bool(done.returncode) == (state != "as recorded"), done.stdout
    assert {
        "guard.md",
        "guard.xml",
        "baseline.md",
        "baseline.xml",
        "baseline.html",
        "tests.xml",
    } <= repository.reports()
    assert about["artifacts"]["reports"]["junit"] == "reports/*.xml"
    assert about["artifacts"]["when"] == "always"


def test_the_hook_of_the_page_is_that_of_the_repository(repository: Repository) -> None:
    (about,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    ((shown,),) = (repo["hooks"] for repo in yaml.safe_load(BLOCKS[HOOKS])["repos"])
    for name in ("id", "name", "entry", "language", "types", "files"):
        assert shown[name] == about[name]
    assert [re.split(r"\W", one)[0] for one in shown["additional_dependencies"]] == ["onnxsmith"]
    assert re.search(shown["files"], "models/classifier.onnx")
    done = repository.run(shlex.join([*shlex.split(shown["entry"]), *shown["args"], "models/classifier.onnx"]))
    assert done.returncode == 0, done.stdout


def test_the_jobs_look_at_the_files_of_the_hook() -> None:
    (about,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    jobs = [BLOCKS[one].partition("git ls-files")[2].partition("|")[0] for one in (WORKFLOW, PIPELINE)]
    (table,) = re.findall(r"\| names .*?\n\n", PAGE, re.DOTALL)
    endings = re.findall(r"`(\.[a-z0-9_.]+)`", table)
    assert len(endings) == 20
    for ending in (*endings, ".onnx.data", ".tar.gz"):
        assert re.search(about["files"], f"models/m{ending}"), ending
        for text in jobs:
            assert any(fnmatch(f"models/m{ending}", one) for one in re.findall(r"'([^']+)'", text)), ending
    for name in ("data", "m.onnx.txt", "database", "m.onnxtxt.md"):
        assert not re.search(about["files"], name), name


def test_recording_as_the_page_says(repository: Repository) -> None:
    (lines,) = ("\n".join(one.lines) for one in documents.blocks(PAGE) if "baseline record" in "\n".join(one.lines))
    for name in ("baseline.json", "baseline.zip"):
        (repository.folder / name).unlink()
    assert repository.run(lines).returncode == 0
    assert (repository.folder / "baseline.zip").exists()


def test_both_versions_are_measured_as_the_page_says(repository: Repository) -> None:
    (lines,) = ("\n".join(one.lines) for one in documents.blocks(PAGE) if "bench old.onnx" in "\n".join(one.lines))
    for name in ("old.onnx", "new.onnx"):
        save(from_text(MODEL.replace("float[n,", "float[batch,")), repository.folder / name)
    (repository.folder / "reports").mkdir()
    done = repository.run(lines.replace(" --dim", " --seconds 1 --dim").replace("10%", "900%"))
    assert done.returncode in (0, 1), done.stdout  # 1: a machine with other work may give no interval
    assert "bench.md" in repository.reports()
