"""Writes the Python runner of a bundle, and replays it in an interpreter that can import nothing else."""

from __future__ import annotations

import platform
from pathlib import Path

from onnxsmith.base.report.parts.target_checks import BundleCheck
from onnxsmith.deployment.bundles import clients, templates
from onnxsmith.deployment.bundles.content import Content
from onnxsmith.deployment.bundles.tasks.base import task

_RUNTIMES = ("onnxruntime", "onnxruntime-gpu")


def write_runner(content: Content, folder: Path) -> None:
    """Writes the Python files: model.py, golden.py, verify.py, processing.py if the task has one, requirements.txt."""
    values = content.values()
    templates.write(folder / "model.py", "python/model.py", **values)
    templates.write(folder / "golden.py", "shared/golden.py", **values)
    templates.write(folder / "verify.py", "python/verify.py", **values)
    task(content.task).write_python(content, folder)
    lines = ["numpy>=1.26", f"onnxruntime>={clients.version(_runtime() or '') or '1.20'}"]
    lines += [f"{package}>={clients.version(package) or '0'}" for package in task(content.task).packages]
    templates.write(folder / "requirements.txt", "python/requirements.txt", requirements=lines)


def replay_python(content: Content, folder: Path) -> BundleCheck:
    """Runs verify.py in a fresh interpreter that can import only numpy, onnxruntime and the packages that the task
    needs."""
    name, runtime = "python runner", _runtime()
    if runtime is None:
        return BundleCheck(name, "not run", "onnxruntime is not installed")
    try:
        with clients.bare_python("numpy", runtime, *task(content.task).packages) as (_, words):
            done = clients.run(
                [*words, folder / "verify.py", "--json"],
                folder=folder,
                memory=clients.memory_for(content.model_bytes),
            )
    except LookupError as missing:
        return BundleCheck(name, "not run", f"{missing.args[0]} is not installed")
    more = "".join(f", {package}" for package in task(content.task).packages)
    said = f"python {platform.python_version()} with numpy, {runtime} {clients.version(runtime)}{more} only"
    return clients.replayed(name, said, done)


def _runtime() -> str | None:
    return next((name for name in _RUNTIMES if clients.version(name) is not None), None)
