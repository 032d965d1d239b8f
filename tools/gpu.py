"""Runs the tests that need a GPU, on a machine without a network, and prints what ran there.

    python tools/gpu.py wheels [FOLDER] [--python 3.12]   on a machine with a network: downloads what the tests need
    python tools/gpu.py run [FOLDER]                      on the machine with the GPU

`run` leaves the torch and the onnxruntime of the Python that runs it as they are. It makes `.venv-gpu`, which sees the
packages of that Python, and installs there what is missing or too old, from the folder only. Each file of tests runs in
a process of its own, so that a crash or a hang loses the results of one file. Exits with 0 if a test passed and none
failed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv-gpu"
RESULTS = ROOT / "build" / "gpu"
OF_THE_MACHINE = ("torch", "onnxruntime", "onnxruntime-gpu", "numpy")
"""Packages that the machine has to have: they are large, or built for its GPU."""
FOR_TESTS = ("pytest>=8.3", "pytest-xdist>=3.6", "pytest-timeout>=2.3", "hypothesis>=6.120")
MOST_BYTES = 60_000_000
"""The largest folder of wheels. A choice: what can be copied along with a checkout."""
MINUTES = 8.0
"""The time of a run, all in all. A choice: machines with a GPU are paid by the minute."""
EACH = 60
"""Seconds of one test. A choice: the dearest takes a few, most of them to start a process."""
SYSTEMS = [f"manylinux_2_{minor}_x86_64" for minor in (17, 24, 27, 28, 31, 34, 35)] + ["manylinux2014_x86_64"]
"""pip takes a wheel for exactly these systems."""

ABOUT = """
import importlib.metadata, json, platform
found = {"Python": platform.python_version()}
def say(name, value):
    try:
        found[name] = str(value())
    except Exception as error:
        found[name] = f"not known: {type(error).__name__}: {error}"
def torch():
    import torch
    say("torch", lambda: torch.__version__)
    say("CUDA of torch", lambda: torch.version.cuda)
    say("cuDNN of torch", lambda: torch.backends.cudnn.version())
    say("torch sees a GPU", lambda: torch.cuda.is_available() and torch.cuda.get_device_name())
    return torch.__version__
def providers():
    import onnxruntime
    return ", ".join(onnxruntime.get_available_providers())
say("torch", torch)
def distribution():
    names = ("onnxruntime-gpu", "onnxruntime")
    return ", ".join(f"{d.name} {d.version}" for d in importlib.metadata.distributions() if d.name in names)
say("onnxruntime", distribution)
say("its providers", providers)
for name in ("onnx", "onnx-ir", "onnxscript", "numpy"):
    say(name, lambda: importlib.metadata.version(name))
print(json.dumps(found))
"""


class GpuError(Exception):
    """Nothing can be run, or the wheels are too large."""


@dataclass(frozen=True)
class Outcome:
    """The result of one test: `passed`, `failed` or `skipped`, and why."""

    test: str
    result: str
    seconds: float = 0.0
    why: str = ""


def main() -> int:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description="run the tests that need a GPU, without a network")
    parser.add_argument("do", choices=("wheels", "run"))
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "wheels")
    parser.add_argument("--python", default="3.12", help="wheels: the Python of the machine with the GPU")
    asked = parser.parse_args()
    try:
        return download(asked.folder, asked.python) if asked.do == "wheels" else run(asked.folder)
    except GpuError as error:
        print(f"FAILED: {error}")
        return 1


# The wheels


def requirements() -> list[str]:
    """What the package and the tests need, without what the machine has to have."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["torch"], *FOR_TESTS]
    return [one for one in wanted if named(one) not in OF_THE_MACHINE]


def named(text: str) -> str:
    """The normalised name of the package in a requirement or in the name of a wheel."""
    match = re.match(r"[A-Za-z0-9._-]+?(?=-\d|[^A-Za-z0-9._-]|$)", text)
    assert match is not None, text
    return re.sub(r"[-_.]+", "-", match[0]).lower()


def download(folder: Path, python: str) -> int:
    """Fills the folder with wheels for a Python on Linux x86-64. Raises GpuError if they are too large."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.whl"):
        old.unlink()
    platforms = [argument for system in SYSTEMS for argument in ("--platform", system)]
    command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--only-binary=:all:"]
    command += ["--python-version", python, "--implementation", "cp", *platforms, "--dest", str(folder)]
    done = subprocess.run([*command, *requirements()], check=False)
    if done.returncode:
        raise GpuError(f"pip download ended with {done.returncode}")
    for wheel in folder.glob("*.whl"):
        if named(wheel.name) in OF_THE_MACHINE:
            wheel.unlink()
    print(size(folder))
    return 0


def size(folder: Path, most: int = MOST_BYTES) -> str:
    """Says how large the wheels in the folder are. Raises GpuError if there is none, or if they are too large."""
    wheels = {path.name: path.stat().st_size for path in folder.glob("*.whl")}
    if not wheels:
        raise GpuError(f"{folder} has no wheels: run `make gpu-wheels` on a machine with a network")
    text = f"{folder}: {len(wheels)} wheels, {sum(wheels.values()) / 1e6:.1f} MB"
    if sum(wheels.values()) > most:
        largest = sorted(wheels, key=lambda name: -wheels[name])[:3]
        raise GpuError(f"{text}, more than {most / 1e6:g}; the largest are {', '.join(largest)}")
    return text


# The run


def run(folder: Path) -> int:
    """Makes the environment, runs the tests and prints the tables. Returns the exit status."""
    end = time.monotonic() + 60 * MINUTES
    print(size(folder))
    python = environment(folder, end)
    files = test_files()
    shutil.rmtree(RESULTS, ignore_errors=True)
    RESULTS.mkdir(parents=True)
    facts = machine(python)
    print(facts_table(facts), flush=True)
    outcomes = []
    for later, file in zip(reversed(range(len(files))), files, strict=True):
        outcomes += tested(python, file, end - EACH * later)
    print(outcome_table(outcomes))
    return status(outcomes)


def test_files() -> list[Path]:
    """The files with tests that are marked `gpu`. To collect all tests would take a minute."""
    return sorted(path for path in (ROOT / "tests").rglob("test_*.py") if "mark.gpu(" in path.read_text("utf-8"))


def environment(folder: Path, end: float) -> Path:
    """Makes `.venv-gpu` anew; returns its Python."""
    python = VENV / "bin" / "python"
    shutil.rmtree(VENV, ignore_errors=True)
    call([sys.executable, "-m", "venv", "--system-site-packages", "--without-pip", str(VENV)], end)
    site = output([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], end).strip()
    # a machine's Python is often an environment itself, of which `--system-site-packages` sees nothing
    seen = dict.fromkeys(path for path in sys.path if Path(path).name in ("site-packages", "dist-packages"))
    (Path(site) / "machine.pth").write_text("\n".join([str(ROOT / "src"), *seen]) + "\n", encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--disable-pip-version-check"]
    call([*pip, "--no-index", "--find-links", str(folder), "--no-compile", *requirements()], end)
    return python


def machine(python: Path) -> dict[str, str]:
    """The GPU, its driver, and the versions of what the tests run with."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    facts = {"GPU, driver, memory": answer(query)}
    try:
        return facts | json.loads(answer([str(python), "-W", "ignore", "-c", ABOUT]).splitlines()[-1])
    except (ValueError, IndexError):
        return facts | {"versions": "not known: Python did not answer"}


def answer(command: Sequence[str]) -> str:
    """What a command prints, or why it does not."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return f"not known: {error}"
    return done.stdout.strip()


def tested(python: Path, file: Path, end: float) -> list[Outcome]:
    """Runs the tests of a file that are marked `gpu`, each for a minute at most, all of them until `end`. Without
    results the file has failed."""
    name = str(file.relative_to(ROOT))
    report = RESULTS / f"{name.replace('/', '.')}.xml"
    pytest = [str(python), "-m", "pytest", "-q", "-m", "gpu", f"--timeout={EACH}"]
    pytest += [f"--junitxml={report}", name]
    log, start = RESULTS / f"{name.replace('/', '.')}.log", time.monotonic()
    with log.open("w", encoding="utf-8") as stream:
        try:
            limit = max(end - start, 1)
            done = subprocess.run(pytest, cwd=ROOT, stdout=stream, stderr=stream, timeout=limit, check=False)
            ended = f"pytest ended with {done.returncode}"
        except subprocess.TimeoutExpired:
            ended = f"stopped after {time.monotonic() - start:.0f} s: no time is left for this file"
    found = outcomes_of(report) if report.exists() else []
    if found:
        return found
    last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
    return [Outcome(name, "failed", time.monotonic() - start, "; ".join([ended, *last]))]


def outcomes_of(report: Path) -> list[Outcome]:
    """The results in a file of JUnit's format that pytest wrote."""
    found = []
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        result, why = "passed", ""
        for kind, said in (("skipped", "skipped"), ("error", "failed"), ("failure", "failed")):
            for element in case.findall(kind):
                result, why = said, (element.get("message") or element.text or "").strip()
        test = f"{case.get('classname', '')}::{case.get('name', '')}"
        found.append(Outcome(test, result, float(case.get("time", "0")), why))
    return found


def status(outcomes: Iterable[Outcome]) -> int:
    """0 if a test passed and none failed."""
    results = [one.result for one in outcomes]
    return 0 if "passed" in results and "failed" not in results else 1


def facts_table(facts: Mapping[str, str]) -> str:
    """The facts, a line each."""
    width = max(map(len, facts))
    return "\n" + "\n".join(f"{name:<{width}}  {one_line(value)}" for name, value in facts.items())


def outcome_table(outcomes: Sequence[Outcome]) -> str:
    """The tests with their results, and their numbers in the last line."""
    width = max((len(one.test) for one in outcomes), default=0)
    lines = [f"{one.test:<{width}}  {one.result:<7}  {one.seconds:5.1f} s  {one_line(one.why)}" for one in outcomes]
    counts = {result: sum(one.result == result for one in outcomes) for result in ("passed", "failed", "skipped")}
    ran = counts["passed"] + counts["failed"]
    total = ", ".join(f"{count} {result}" for result, count in counts.items())
    return "\n".join(["", *(line.rstrip() for line in lines), "", total + ("" if ran else ": NO TEST RAN")])


def one_line(text: str, most: int = 200) -> str:
    """A text on one line, cut where it is long."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def call(command: Sequence[str], end: float) -> None:
    """Runs a command; what it prints is shown. Raises GpuError if it fails or takes too long."""
    output(command, end, capture=False)


def output(command: Sequence[str], end: float, *, capture: bool = True) -> str:
    """What a command prints. Raises GpuError if it fails or takes longer than until `end`."""
    variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command,
            text=True,
            stdout=subprocess.PIPE if capture else None,
            env=variables,
            timeout=max(end - time.monotonic(), 1),
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise GpuError(str(error)) from error
    return done.stdout or ""


if __name__ == "__main__":
    raise SystemExit(main())
