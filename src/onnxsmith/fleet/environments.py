"""Finds or makes the Python of each environment, and says what stands for it in a cell's key."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import onnxsmith
from onnxsmith._version import __version__
from onnxsmith.base.clock import stage
from onnxsmith.base.folders import OwnPath, beside
from onnxsmith.base.library_versions import NEWEST_TESTED
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.system import children
from onnxsmith.base.words import several
from onnxsmith.fleet.digests import cache_folder
from onnxsmith.fleet.plan import Environment

_VERSIONS = """
import importlib.metadata, json, platform, sys
known = {"python": platform.python_version()}
for name in sys.argv[1:]:
    try:
        known[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
print(json.dumps(known))
"""
"""Prints the versions of packages. It runs in other interpreters, so it imports nothing of ours."""
_LIBRARIES = (*NEWEST_TESTED, "transformers", "onnxruntime-gpu", "onnxruntime-genai", "torchao", "torchvision", "timm")
"""The packages whose versions may change the result of a cell."""
_MARK = "onnxsmith-ready.json"
"""The file that says that an environment is complete; it lists the installed packages."""
_making = threading.Lock()
"""Lets one thread of this process make an environment; the others find it there."""
_TAIL = 1500
"""Limits the characters of uv's message in a problem. A choice."""


def stamp(environment: Environment) -> str:
    """Returns a text that stands for the environment in the key of a cell: the packages as they are asked for, or as
    they are installed, and the version of onnxsmith.

    Raises:
        OnnxsmithError: `fleet/environment` if the interpreter cannot be run.
    """
    if environment.requirements:
        wanted = [environment.python, *sorted(environment.requirements), _source()]
        return json.dumps(wanted)
    python = interpreter(environment)
    versions = versions_of(python)
    return json.dumps([versions, _source()], sort_keys=True)


@functools.cache
def versions_of(python: str) -> dict[str, str]:
    """Returns the versions of Python and of the packages that matter, by name.

    Raises:
        OnnxsmithError: `fleet/environment` if the interpreter cannot be run.
    """
    if python == sys.executable:
        return _own_versions()
    try:
        return dict(json.loads(_printed([python, "-c", _VERSIONS, *_LIBRARIES, "onnxsmith"], timeout=120)))
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise problem(
            "fleet/environment",
            "the interpreter of an environment cannot be run",
            where=python,
            why=str(error),
            fix="give the path of a Python in which onnxsmith is installed",
        ) from error


def _own_versions() -> dict[str, str]:
    import importlib.metadata
    import platform

    versions = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


@functools.cache
def _source() -> str:
    """Returns the version of onnxsmith; in a checkout with a digest of its Python files."""
    root = Path(onnxsmith.__file__).parent
    if "site-packages" in root.parts:
        return __version__
    sources = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        sources.update(f"{file.relative_to(root)}\n".encode() + file.read_bytes())
    return f"{__version__} {sources.hexdigest()}"


def interpreter(environment: Environment) -> str:
    """Returns the path of the environment's Python. Makes the environment if it has requirements and is not there.

    Raises:
        OnnxsmithError: `fleet/environment` if the interpreter is missing, or uv could not make the environment;
            `fleet/uv` if uv is missing.
    """
    if not environment.requirements:
        return environment.python or sys.executable
    folder = OwnPath(cache_folder() / "environments" / _digest(environment))
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    with _making:
        if not (folder / _MARK).exists():
            with stage(f"make the environment {environment.name}"):
                _make(environment, folder, python.relative_to(folder))
    return str(python)


def _digest(environment: Environment) -> str:
    wanted = [environment.python, sorted(environment.requirements), _onnxsmith()]
    return hashlib.sha256(json.dumps(wanted).encode()).hexdigest()[:16]


def _make(environment: Environment, folder: OwnPath, python: Path) -> None:
    """Makes the environment aside and renames it: two processes may make one at the same time."""
    uv = _uv(environment)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with beside(folder) as aside:
        new = aside / folder.name
        version = environment.python or f"{sys.version_info.major}.{sys.version_info.minor}"
        _run(environment, [uv, "venv", "-q", "--relocatable", "--python", version, str(new)])
        target = ["--python", str(new / python)]
        _run(environment, [uv, "pip", "install", "-q", *target, *_onnxsmith(), *environment.requirements])
        installed = _run(environment, [uv, "pip", "list", "--format", "json", *target])
        (new / _MARK).write_text(installed, encoding="utf-8")
        try:
            new.rename(folder)
        except OSError:
            if not (folder / _MARK).exists():
                raise


def _onnxsmith() -> list[str]:
    """Returns what installs the onnxsmith that runs now: its version, or the checkout that it runs from."""
    root = Path(onnxsmith.__file__).parent
    checkout = root.parent.parent
    if "site-packages" not in root.parts and (checkout / "pyproject.toml").exists():
        return ["-e", str(checkout)]
    return [f"onnxsmith=={__version__}"]


def _uv(environment: Environment) -> str:
    if importlib.util.find_spec("uv") is not None:
        from uv import find_uv_bin

        return str(find_uv_bin())
    uv = shutil.which("uv")
    if uv is None:
        raise problem(
            "fleet/uv",
            f"uv is not installed, so the environment {environment.name} cannot be made",
            why=f"it has {several(len(environment.requirements), 'requirement')}",
            fix="`pip install uv`; or give the path of an interpreter in place of requirements",
        )
    return uv


def _printed(command: Sequence[str], *, timeout: float | None = None) -> str:
    """Runs a program and returns what it prints. Raises OSError and `subprocess.SubprocessError`."""
    done = children.HERE.run(command, timeout=timeout, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    done.check_returncode()
    return done.stdout.decode(errors="replace")


def _run(environment: Environment, command: Sequence[str]) -> str:
    try:
        return _printed(command)
    except subprocess.CalledProcessError as error:
        raise _unmade(environment, error.stderr.decode(errors="replace")[-_TAIL:].strip()) from error
    except OSError as error:
        raise _unmade(environment, str(error)) from error


def _unmade(environment: Environment, why: str) -> OnnxsmithError:
    return problem(
        "fleet/environment",
        f"the environment {environment.name} could not be made",
        where=", ".join(environment.requirements),
        why=why,
        fix="correct the requirements of this environment; uv reads the index from UV_INDEX_URL and UV_FIND_LINKS, "
        "not from pip's settings",
    )
