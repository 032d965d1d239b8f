"""What stays behind in a program that calls the library: memory, descriptors, threads, processes, folders, settings.

Eight kinds of programs (`hosting/programs.py`) make 20 calls, then `--calls` more, of a mix of the public functions
(`hosting/calls.py`), some of which are refused or raise. Libraries with native threads (torch, onnxruntime, OpenVINO)
are imported before onnxsmith or after it. After each call, the state of the host has to be as it was
(`hosting/process_state.py`): signal handlers, streams, warning filters, logs, environment, settings and random states
of numpy and torch. A call takes at most 60 s. At the end, after the runtimes that wait for the next model have ended,
nothing may be left but 2 MB of memory for 200 calls (`hosting/growth.py`).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from stressing.hosting import calls
from stressing.hosting.programs import HOSTS

KINDS = ("MB", "descriptors", "threads", "children", "folders", "shared", "hooks")
TIMEOUT = 1200
LIBRARIES = (".ses", "torchinductor_")
"""The names that onnxruntime and torch give their own files among the temporary files."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of this part."""
    parser.add_argument("--calls", type=int, default=200, help="memory is judged from 60 calls on")
    parser.add_argument("--only", nargs="*", default=list(HOSTS), choices=list(HOSTS), metavar="HOST")


def hosted(name: str, order: str, count: int, folder: Path, timeout: float = TIMEOUT) -> list[dict[str, Any]]:
    """Runs a host in a new process with its own folder of temporary files, and returns what it found."""
    models, temporary, cache = folder / "models", folder / "tmp", folder / "cache"
    for one in (models, temporary, cache):
        one.mkdir(parents=True)
    calls.write_models(models)
    report = folder / "report.json"
    paths = [str(Path(__file__).parents[1]), *(one for one in sys.path if one)]
    own = {"TMPDIR": str(temporary), "XDG_CACHE_HOME": str(cache), "PYTHONPATH": os.pathsep.join(paths)}
    command = [
        sys.executable,
        "-m",
        "stressing.hosting.host_process",
        name,
        order,
        str(count),
        str(models),
        str(report),
    ]
    try:
        done = subprocess.run(command, cwd=folder, env={**os.environ, **own}, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return [{"who": "host", "wrong": [f"did not end in {timeout:g} s"], "grown": {}}]
    if not report.exists():
        return [{"who": "host", "wrong": [f"ended with status {done.returncode}"], "grown": {}}]
    found: list[dict[str, Any]] = json.loads(report.read_text(encoding="utf-8"))
    left = sorted(one.name for one in temporary.iterdir() if not one.name.startswith(LIBRARIES))
    if left:
        found[0]["wrong"].append(f"folders after the end: {', '.join(left[:3])}")
    return found


def run(given: argparse.Namespace) -> list[str]:
    """Measures and prints. Returns what failed."""
    failed = []
    print(f"{'host':<10}{'libraries':<10}{'in':<10}" + "".join(f"{kind:>12}" for kind in KINDS))
    for name in given.only:
        for order in HOSTS[name][1]:
            with tempfile.TemporaryDirectory() as folder:
                found = hosted(name, order, given.calls, Path(folder))
            for one in found:
                figures = "".join(f"{one['grown'].get(kind, float('nan')):>12.3g}" for kind in KINDS)
                print(f"{name:<10}{order:<10}{one['who']:<10}{figures}", flush=True)
                for said in one["wrong"]:
                    print(f"  {said}", flush=True)
                failed += [f"{name}, {order}: {said}" for said in one["wrong"]]
    return failed
