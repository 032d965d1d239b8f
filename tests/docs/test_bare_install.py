"""Every verb where neither torch nor onnxruntime is installed: it works, or says at once which line installs them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_help import COMMANDS, KEY, OTHER_PROGRAMS, prepared

__all__ = ["prepared"]

ABSENT = '''
"""Hides packages from imports, `find_spec` and the list of installed packages. Python imports this at start."""
import os, sys
from importlib.machinery import PathFinder

HIDDEN = os.environ["HIDDEN"].split()

class Without(PathFinder):
    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        return None if fullname.partition(".")[0] in HIDDEN else PathFinder.find_spec(fullname, path, target)

    @classmethod
    def find_distributions(cls, *args, **kwargs):
        found = PathFinder.find_distributions(*args, **kwargs)
        return (one for one in found if one.metadata["Name"] not in HIDDEN)

sys.meta_path[sys.meta_path.index(PathFinder)] = Without
'''
CALLS = """
import contextlib, io, json, os, shlex, shutil, sys
from onnxsmith.cli import application
HEAVY = ("onnxscript", "onnx.reference", "onnx_shape_inference")
found, home = [], os.getcwd()
for number, line in enumerate(json.loads(sys.stdin.read())):
    shutil.copytree(home, f"../{number}")
    os.chdir(f"../{number}")
    before = [name for name in HEAVY if name in sys.modules]
    sys.argv = [*shlex.split(line), "--json"]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            application.main()
            status = 0
        except SystemExit as stop:
            status = stop.code
    heavy = [name for name in HEAVY if name in sys.modules and name not in before]
    found.append((status, out.getvalue(), err.getvalue(), heavy))
    os.chdir(home)
print(json.dumps(found))
"""

TORCH = {"export", "diagnose"}
ONNXRUNTIME = {"quantize", "prune"}
BY_ARGUMENT = {
    "reduce": 'pip install "onnxsmith[cpu]"',  # its usual line asks for an error of onnxruntime
    "baseline check": 'pip install "onnxsmith[cpu]"',  # the baseline was recorded on onnxruntime
    "baseline record": 'pip install "onnxsmith[cpu]"',
    "baseline accept": 'pip install "onnxsmith[cpu]"',
    "fleet cell": "fleet list",  # the key is of a row that this environment has not
}
"""The verbs that refuse because of what their usual line names, with a part of the fix."""
ENDINGS = {"diff": {1}, "check": {1}, "verify-record": {0, 1}}
"""The exit statuses other than 0 that a usual line may end with."""
SHORTER = {"bench": " --seconds 0.1"}


def called(folder: Path, lines: list[str], *hidden: str) -> list[tuple[int, dict[str, object], list[str]]]:
    """The exit status, the report and the libraries imported for each command line, in one process."""
    site = folder.parent / "site"
    site.mkdir(exist_ok=True)
    (site / "sitecustomize.py").write_text(ABSENT, encoding="utf-8")
    roots = [str(site), str(Path(__file__).parents[2] / "src")]
    done = subprocess.run(
        [sys.executable, "-c", CALLS],
        input=json.dumps(lines),
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(roots), "HIDDEN": " ".join(hidden)},
    )
    assert done.returncode == 0, done.stderr
    found = []
    for line, (status, out, err, heavy) in zip(lines, json.loads(done.stdout), strict=True):
        assert "Traceback" not in err, f"{line}\n{err}"
        assert out.startswith("{"), f"{line}\n{out}{err}"
        found.append((status, json.loads(out), heavy))
    return found


@pytest.fixture
def bare(prepared: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(prepared, tmp_path / "here"))


def fixes(report: dict[str, object]) -> str:
    problems = report["problems"]
    assert isinstance(problems, list)
    assert all(one["id"] != "internal/unexpected" for one in problems), problems
    return "\n".join(one["fix"] for one in problems)


@pytest.mark.torch
def test_a_verb_works_without_torch_and_onnxruntime_or_says_what_to_install(bare: Path) -> None:
    """Verbs that refuse come first: they import no library that takes long, so that they answer at once."""
    needing = [name for name in COMMANDS if name in TORCH | ONNXRUNTIME]
    names = [*needing, *(name for name in COMMANDS if name not in {*needing, *OTHER_PROGRAMS})]
    lines = [COMMANDS[name].usual_line.replace("models/*.onnx", "models/net.onnx") for name in names]
    lines = [line + SHORTER.get(name, "") for name, line in zip(names, lines, strict=True)]
    for name, (status, report, heavy) in zip(names, called(bare, lines, "torch", "onnxruntime"), strict=True):
        if name in needing:
            extra = "torch" if name in TORCH else "cpu"
            assert (name, status) == (name, 2)
            assert f'pip install "onnxsmith[{extra}]"' in fixes(report), name
            assert not heavy, name
        elif name in BY_ARGUMENT:
            assert (name, status) == (name, 2)
            assert BY_ARGUMENT[name] in fixes(report), (name, fixes(report))
        else:
            assert status in {0, *ENDINGS.get(name, ())}, (name, status, report)
            fixes(report)


@pytest.mark.torch
def test_what_needs_torch_says_so_before_it_looks_at_anything_else(bare: Path) -> None:
    lines = [
        "onnxsmith export net.py:build -o net.onnx --target onnxruntime",
        "onnxsmith compare net.py:build net.onnx",
        "onnxsmith check net.onnx --target onnxruntime",
    ]
    advice = ("onnxsmith[torch]", "onnxsmith[torch]", "onnxsmith[cpu]")
    for line, extra, (status, report, _) in zip(
        lines, advice, called(bare, lines, "torch", "onnxruntime"), strict=True
    ):
        assert (line, status) == (line, 2)
        assert f'pip install "{extra}"' in fixes(report)


def test_the_verbs_that_are_named_exist() -> None:
    assert {*TORCH, *ONNXRUNTIME, *BY_ARGUMENT, *ENDINGS, *SHORTER} <= set(COMMANDS)
    assert KEY in COMMANDS["fleet cell"].usual_line
