"""Writes the bundle of `--for onnxruntime-package`: onnxruntime's model package, with one variant for each execution
provider."""

from __future__ import annotations

import json
from pathlib import Path

from onnxsmith.base import folders
from onnxsmith.base.folders import OwnPath
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.report.parts.target_checks import NOT_RUN, BundleCheck
from onnxsmith.deployment.bundles import clients, templates
from onnxsmith.deployment.bundles.content import Content, Variant
from onnxsmith.deployment.bundles.forms.base import NUMBERS, Form
from onnxsmith.runtimes.onnxruntime import OnnxRuntime, available_providers

_RUNTIMES = ("onnxruntime", "onnxruntime-gpu")
_NOT_HERE = 3
"""Is the exit status of verify.py and of author.py if the installed onnxruntime cannot do what they need."""


class OnnxruntimePackage(Form):
    """Writes manifest.json with onnxruntime's authoring API; the models; and verify.py, which loads each variant with
    onnxruntime's package API."""

    client = "onnxruntime's model packages"
    dtypes = (*NUMBERS, "string")
    kinds = ("tensor", "sequence", "map", "optional")
    takes_variants = True

    def refuse(self, content: Content) -> None:
        super().refuse(content)
        missing = OnnxRuntime().missing()
        if missing is not None:
            raise OnnxsmithError(missing)

    def notes(self, content: Content) -> list[str]:
        said = [
            f"variant {one.name} ({one.provider}): {one.file or content.title}; {one.said}" for one in content.variants
        ]
        return [*super().notes(content), *said]

    def write(self, content: Content, folder: OwnPath) -> None:
        _author(content, folder)
        here = available_providers()["providers"]
        first = min(content.variants, key=lambda one: one.name != "cpu")
        values = {**content.values(), "here": here, "first": first}
        templates.write(folder, "golden.py", "shared/golden.py", **values)
        for name in ("verify.py", "README.md"):
            templates.write(folder, name, f"onnxruntime_package/{name}", **values)
        requirements = ["numpy>=1.26", f"onnxruntime>={clients.version(_runtime()) or '1.32'}"]
        templates.write(folder, "requirements.txt", "python/requirements.txt", requirements=requirements)

    def replay(self, content: Content, folder: Path) -> list[BundleCheck]:
        return [_replayed(variant, content, folder) for variant in content.variants]


def _runtime() -> str:
    return next((name for name in _RUNTIMES if clients.version(name) is not None), _RUNTIMES[0])


def _author(content: Content, folder: OwnPath) -> None:
    """Writes manifest.json with onnxruntime's authoring API, in a process of its own.

    Raises:
        OnnxsmithError: `bundle/old-client` if the installed onnxruntime has no such API; `bundle/client-failed`.
    """
    described = {
        "name": content.called,
        "variants": [[one.name, one.provider, one.folder] for one in content.variants],
        "file": Path(content.model_file).name,
    }
    runtime = _runtime()
    with folders.temporary() as work, clients.bare_python("numpy", runtime) as (_, words):
        templates.write(work, "author.py", "onnxruntime_package/author.py")
        (work / "package.json").write_text(json.dumps(described), encoding="utf-8")
        done = clients.run([*words, work / "author.py", work / "package.json", folder.absolute()], folder=work)
    if done.status == _NOT_HERE:
        raise problem(
            "bundle/old-client",
            f"the installed {runtime} {clients.version(runtime)} cannot write model packages",
            where="--for onnxruntime-package",
            why="it has no onnxruntime.ModelPackage, which writes and reads the manifest of a package",
            fix=f"`pip install --upgrade {runtime}`; or choose a form for this version: --for python",
        )
    if done.status != 0:
        raise clients.failed("manifest of the package", f"{runtime} {clients.version(runtime)}", done, content)


def _replayed(variant: Variant, content: Content, folder: Path) -> BundleCheck:
    """Loads a variant with onnxruntime's package API, and replays its golden data."""
    name, runtime = f"variant {variant.name}", _runtime()
    with clients.bare_python("numpy", runtime) as (_, words):
        done = clients.run(
            [*words, folder / "verify.py", "--json", variant.name],
            folder=folder,
            memory=clients.memory_for(content.model_bytes),
        )
    if done.status == _NOT_HERE:
        return BundleCheck(name, NOT_RUN, " ".join((done.output.strip().splitlines() or [""])[-1].split()))
    return clients.replayed(name, f"{runtime} {clients.version(runtime)}", done, content)
