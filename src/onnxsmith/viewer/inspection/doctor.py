"""Checks the installed packages, and reports packages that do not work together.

Versions come from package metadata, and onnxruntime runs in a child process. So nothing heavy is imported, and a broken
installation is a finding, not a crash.
"""

from __future__ import annotations

import contextlib
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from onnxsmith._version import __version__
from onnxsmith.base.clock import stage
from onnxsmith.base.library_versions import NEWEST_TESTED, is_newer, release
from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.base import Part, Report
from onnxsmith.base.report.parts.environment import Environment, Package, Provider
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.system import children, memory_limit
from onnxsmith.base.words import several

_CORE = {
    "onnx": "the format",
    "onnx-ir": "the graph",
    "onnx-shape-inference": "shapes with symbols",
    "onnxscript": "torch's exporter",
    "numpy": "tensors",
    "ml_dtypes": "bfloat16, float8, int4",
    "safetensors": "weights of torch models",
}
_OPTIONAL = {
    "onnxruntime": ("running models on the CPU", 'pip install "onnxsmith[cpu]"'),
    "onnxruntime-gpu": ("running models on CUDA, in place of onnxruntime", 'pip install "onnxsmith[gpu]"'),
    "openvino": ("running models as OpenVINO does", 'pip install "onnxsmith[openvino]"'),
    "tract": ("running models as tract does", 'pip install "onnxsmith[tract]"'),
    "iree-base-compiler": ("running models as IREE does", 'pip install "onnxsmith[iree]"'),
    "iree-base-runtime": ("running models as IREE does", 'pip install "onnxsmith[iree]"'),
    "tensorrt-rtx-cu13": ("asking TensorRT's parser and builder, without a GPU", "pip install tensorrt-rtx-cu13"),
    "mcp": ("tools for agents: `onnxsmith mcp`", 'pip install "onnxsmith[mcp]"'),
    "nncf": ("a second quantiser of `quantize`", 'pip install "onnxsmith[nncf]"'),
    "torch": ("export, and torch as reference", 'pip install "onnxsmith[torch]"'),
}
_RUNTIMES = ("onnxruntime", "onnxruntime-gpu", "onnxruntime-directml", "onnxruntime-openvino", "onnxruntime-qnn")
"""Lists the distributions that all install a package called `onnxruntime`."""
_TENSORRTS = ("tensorrt", "tensorrt-cu12", "tensorrt-cu13")
"""Lists the distributions of TensorRT. onnxruntime-gpu loads TensorRT's library by the name libnvinfer.so.10."""
_TENSORRT = 10
"""Names the major version of TensorRT with which onnxruntime-gpu 1.31 and 1.32 are built."""

OLDEST_ONNXRUNTIME = (1, 31)
"""Names the oldest supported onnxruntime, as in pyproject.toml."""
OLDEST_TORCH = (2, 11)
"""Names the oldest supported torch, as in pyproject.toml."""
_BEYOND = 6
"""Counts the versions beyond onnx's newest version that are tried with onnxruntime. A choice: onnxruntime is seldom far
ahead of onnx."""


@dataclass
class Found:
    """Holds the results of the checks. The fields of a missing or broken package keep their defaults."""

    versions: dict[str, str]
    onnx_ir: int | None = None
    onnx_opset: int | None = None
    runtime_ir: int | None = None
    runtime_opset: int | None = None
    providers: dict[str, bool | None] = field(default_factory=dict)
    broken: list[Problem] = field(default_factory=list)


def doctor(model: str | Path | None = None) -> Report:
    """Reports on Python, the relevant packages and the execution providers; its problems say what to fix. If `model`
    holds code that an execution provider compiled (`EPContext`), also says whether this provider is here.

    The verdict is FAILED when a package that everything needs is missing or cannot be imported, DIFFERENT when the
    provider of a compiled model or its code is missing, DONE otherwise. Packages that are newer than tested are listed
    with the problems but do not change the verdict, because most newer releases work.

    Raises:
        OnnxsmithError: `model/…` for a model that cannot be read.
    """
    found = Found(_versions())
    _ask_onnx(found)
    if any(name in found.versions for name in _RUNTIMES):
        with stage("onnxruntime"):
            _ask_onnxruntime(found)
    problems = (*found.broken, *findings(found))
    failed = any(problem.id.startswith("doctor/core-") for problem in problems)
    parts: tuple[Part, ...] = (_environment(found),)
    notes = [memory_limit.HERE.missing]
    if model is not None and not failed:
        compiled, doubts, note = _compiled(Path(model), found)
        parts, problems, notes = (*parts, *compiled), (*problems, *doubts), [*notes, note]
    count = sum(problem.id != "doctor/newer-than-tested" for problem in problems)
    lost = any(problem.id == "target/compiled" for problem in problems)
    return Report(
        command="doctor",
        verdict=Verdict.FAILED if failed else Verdict.DIFFERENT if lost else Verdict.DONE,
        parts=parts,
        problems=problems,
        headline=f"{several(count, 'problem')} found" if count else "no problem found",
        notes=tuple(filter(None, notes)),
    )


def _compiled(path: Path, found: Found) -> tuple[tuple[Part, ...], tuple[Problem, ...], str]:
    """Returns what is known of a model that a provider has compiled: the part, problems, and a note."""
    from onnxsmith.base.report.parts.compiled_nodes import problem_of
    from onnxsmith.graph.files.load import load
    from onnxsmith.graph.reading import compiled_nodes

    part = compiled_nodes.of_model(load(path), path)
    if part is None:
        return (), (), f"{path} holds no compiled code, so it needs no certain provider"
    here = {compiled_nodes.provider_key(name) for name in found.providers}
    away = [one.provider for one in part.nodes if compiled_nodes.provider_key(one.provider) not in here]
    why = f"the installed onnxruntime has only {', '.join(found.providers) or 'no providers'}" if away else ""
    if away or part.lost:
        return (part,), (problem_of(part, str(path), why),), ""
    note = f"the provider of {path} is here; whether its SDK and this device load the code shows only a run"
    return (part,), (), note


def _versions() -> dict[str, str]:
    found = {"onnxsmith": __version__}
    for name in dict.fromkeys((*_CORE, *_RUNTIMES, *_OPTIONAL, *_TENSORRTS, *NEWEST_TESTED)):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # `findings` reports a missing package
            continue
    return found


def _ask_onnx(found: Found) -> None:
    if "onnx" not in found.versions:
        return
    try:
        from onnxsmith.graph.structure.versions import newest

        known = newest()
    except Exception as error:  # noqa: BLE001 — a broken package may raise anything on import
        found.broken.append(
            Problem(
                "doctor/core-broken",
                "onnx is installed, but cannot be imported",
                where=f"onnx {found.versions['onnx']}",
                why=f"{type(error).__name__}: {error}",
                fix="`pip install --force-reinstall onnx`",
            )
        )
        return
    found.onnx_ir, found.onnx_opset = known.ir, known.opset


def _ask_onnxruntime(found: Found) -> None:
    """Asks onnxruntime twice: first for the names of its providers, because starting a provider may crash."""
    if found.onnx_ir is None or found.onnx_opset is None:
        return
    try:
        from onnxsmith.runtimes.onnxruntime import available_providers, limits

        found.providers = dict.fromkeys(available_providers()["providers"])
        seen = limits(ir_version=found.onnx_ir + _BEYOND, opset=found.onnx_opset + _BEYOND)
    except (OnnxsmithError, ImportError) as error:
        found.broken.append(
            Problem(
                "doctor/runtime-broken",
                "onnxruntime is installed, but does not respond",
                where=", ".join(f"{name} {found.versions[name]}" for name in _RUNTIMES if name in found.versions),
                why=str(error),
                fix=f"{_anew([name for name in _RUNTIMES if name in found.versions])}; until then use --runtime "
                "reference",
            )
        )
        return
    found.runtime_ir, found.runtime_opset = seen["ir"], seen["opset"]
    found.providers |= seen["starts"]


def findings(found: Found) -> Iterator[Problem]:
    """Yields the problems: packages that are missing, too old, or do not work together."""
    yield from _core(found)
    yield from _runtimes(found)
    yield from _providers(found)
    yield from _torch(found)
    yield from _newer(found)


def _core(found: Found) -> Iterator[Problem]:
    missing = [name for name in _CORE if name not in found.versions]
    if missing:
        yield Problem(
            "doctor/core-missing",
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed",
            why="onnxsmith needs every one of its core packages",
            fix=f"`pip install {' '.join(missing)}`, or install onnxsmith again",
        )


def _runtimes(found: Found) -> Iterator[Problem]:
    installed = [name for name in _RUNTIMES if name in found.versions]
    if len(installed) > 1:
        yield Problem(
            "doctor/two-onnxruntimes",
            f"{' and '.join(installed)} are installed together",
            why="these packages install the same files, so the package that was installed last is used",
            fix=f"for the CPU: {_anew(installed, 'cpu')}; or for CUDA: {_anew(installed, 'gpu')}",
        )
    for name in installed:
        if _older(found.versions[name], OLDEST_ONNXRUNTIME):
            oldest = ".".join(map(str, OLDEST_ONNXRUNTIME))
            yield Problem(
                "doctor/old-onnxruntime",
                f"{name} {found.versions[name]} is older than {oldest}",
                why="onnxsmith reads from onnxruntime which provider runs which node, and is tested only with "
                "newer versions",
                fix=f"`pip install --upgrade '{name}>={oldest}'`",
            )
    if found.onnx_ir and found.runtime_ir and found.onnx_opset and found.runtime_opset:
        ahead = found.onnx_ir > found.runtime_ir or found.onnx_opset > found.runtime_opset
        if ahead:
            yield Problem(
                "doctor/onnx-ahead",
                f"onnx writes up to IR version {found.onnx_ir} and opset {found.onnx_opset}, but onnxruntime loads "
                f"only up to IR version {found.runtime_ir} and opset {found.runtime_opset}",
                why="a model made with onnx's newest versions does not run here",
                fix=f"stay at opset {found.runtime_opset} and IR version {found.runtime_ir} or below: `onnxsmith opset "
                f"MODEL {found.runtime_opset} --ir-version {found.runtime_ir} -o older.onnx`",
            )


def _anew(installed: Sequence[str], extra: str = "") -> str:
    """Returns the command that removes these distributions of onnxruntime, and installs one."""
    wanted = extra or ("gpu" if installed == ["onnxruntime-gpu"] else "cpu")
    return f'`pip uninstall -y {" ".join(installed)} && pip install "onnxsmith[{wanted}]"`'


def _providers(found: Found) -> Iterator[Problem]:
    stuck = [name for name, starts in found.providers.items() if starts is False]
    if stuck:
        yield Problem(
            "doctor/provider-fallback",
            f"the installed onnxruntime has {', '.join(stuck)}, which "
            f"{'does' if len(stuck) == 1 else 'do'} not start here",
            why="a driver, a device or a library (CUDA, cuDNN, TensorRT) is missing or has the wrong version; "
            "onnxruntime would silently run on the CPU",
            fix="check nvidia-smi; `pip install 'onnxruntime-gpu[cuda,cudnn]'`; or use --provider cpu",
        )
    newer = [name for name in _TENSORRTS if _major(found.versions.get(name, "")) > _TENSORRT]
    if "onnxruntime-gpu" in found.versions and newer:
        yield Problem(
            "doctor/tensorrt-version",
            f"{newer[0]} {found.versions[newer[0]]} is newer than the version that onnxruntime-gpu loads",
            why=f"onnxruntime's TensorRT provider loads libnvinfer.so.{_TENSORRT} and does not start with another "
            "version; onnxruntime would silently run on CUDA or on the CPU",
            fix=f"`pip install '{newer[0]}>={_TENSORRT},<{_TENSORRT + 1}'`; or use --provider cuda",
        )
    if "onnxruntime-gpu" in found.versions and found.providers and "CUDAExecutionProvider" not in found.providers:
        yield Problem(
            "doctor/gpu-hidden",
            "onnxruntime-gpu is installed, but the onnxruntime that is imported has no CUDA",
            why="another package of onnxruntime has overwritten the files of onnxruntime-gpu",
            fix="`pip uninstall -y onnxruntime onnxruntime-gpu && pip install onnxruntime-gpu`",
        )


def _torch(found: Found) -> Iterator[Problem]:
    torch = found.versions.get("torch")
    if torch is None:
        return
    if _older(torch, OLDEST_TORCH):
        oldest = ".".join(map(str, OLDEST_TORCH))
        yield Problem(
            "doctor/old-torch",
            f"torch {torch} is older than {oldest}",
            why="the exporter of this torch lacks functions that onnxsmith uses",
            fix=f"`pip install --upgrade 'torch>={oldest}'`",
        )


def _newer(found: Found) -> Iterator[Problem]:
    """Yields one problem for all packages that are newer than tested, because such packages are often upgraded
    together."""
    tested = {
        **NEWEST_TESTED,
        **dict.fromkeys(_RUNTIMES, NEWEST_TESTED["onnxruntime"]),
    }  # all share onnxruntime's version numbers
    newer = {name: tested[name] for name in tested if is_newer(found.versions.get(name, ""), tested[name])}
    if newer:
        older = " ".join(f"'{name}~={'.'.join(map(str, release(version)[:2]))}.0'" for name, version in newer.items())
        yield Problem(
            "doctor/newer-than-tested",
            f"{several(len(newer), 'package')} {'is' if len(newer) == 1 else 'are'} newer than any that was tested",
            where=", ".join(f"{name} {found.versions[name]} (tested: {version})" for name, version in newer.items()),
            why=f"the tests of onnxsmith {__version__} were run with older releases; a newer release may have "
            "renamed functions that onnxsmith uses. Results are still verified",
            fix=f"do nothing while your commands work; if a command fails: `pip install {older}`",
        )


def _major(version: str) -> int:
    return next(iter(release(version)), 0)


def _older(version: str, oldest: tuple[int, int]) -> bool:
    """Whether a version is older. A version that does not start with numbers counts as new enough."""
    numbers = release(version)
    return bool(numbers) and numbers < oldest


def _web() -> list[Package]:
    """Returns the packages of the runtime `web`, which pip does not install."""
    from onnxsmith.runtimes import _web_package

    node, folder = _web_package.node(), _web_package.package()
    number = None
    if node is not None:
        with contextlib.suppress(OSError, subprocess.SubprocessError):  # a broken Node.js counts as missing
            done = children.HERE.run([node, "--version"], timeout=20, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            done.check_returncode()
            number = done.stdout.decode(errors="replace").strip().removeprefix("v")
    version = None if folder is None else _web_package.version(folder)
    use = "running models as browsers do"
    return [
        Package("node", number, use, "https://nodejs.org"),
        Package("onnxruntime-web", version, use, "npm install onnxruntime-web"),
    ]


def _environment(found: Found) -> Environment:
    core = [Package(name, found.versions.get(name), use, f"pip install {name}") for name, use in _CORE.items()]
    optional = [Package(name, found.versions.get(name), use, how) for name, (use, how) in _OPTIONAL.items()]
    optional += _web()
    others = [
        Package(name, found.versions[name], "running models", f"pip install {name}")
        for name in _RUNTIMES
        if name in found.versions and name not in _OPTIONAL
    ]
    return Environment(
        python=platform.python_version(),
        executable=sys.executable,
        platform=platform.platform(),
        packages=(Package("onnxsmith", __version__, "", ""), *core, *optional, *others),
        onnx_ir=found.onnx_ir,
        onnx_opset=found.onnx_opset,
        runtime_ir=found.runtime_ir,
        runtime_opset=found.runtime_opset,
        providers=tuple(Provider(name, starts) for name, starts in found.providers.items()),
    )
