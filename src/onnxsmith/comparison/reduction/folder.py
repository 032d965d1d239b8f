"""Writes the folder to share: model, inputs, a program that shows the failure, and the program's output."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from onnxsmith._version import __version__
from onnxsmith.base import user_files
from onnxsmith.base.folders import OwnPath, beside, copy, move
from onnxsmith.base.limits import refuse_missing
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.system import children
from onnxsmith.base.words import pasted
from onnxsmith.comparison.reduction import portable_arrays
from onnxsmith.comparison.reduction.case import Case
from onnxsmith.comparison.reduction.checks.base import Failure
from onnxsmith.comparison.reduction.oracle import Oracle
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.save import save, unwritten

_MARK = "onnxsmith reduce"
"""Marks the README of a folder, so that a later reduction may replace that folder."""
_PACKAGES = ("onnx", "numpy", "onnxruntime", "onnxruntime-gpu", "openvino", "tract", "iree-base-compiler")
_SAID = 4000
"""How many characters of the program's output are kept. A choice."""
_TITLE = 100
"""How many characters the program's title may have. A choice."""
_GRACE = 30.0
"""Seconds for starting the program, beyond the time limit of a try. A choice."""


def checked(output: str | Path) -> Path:
    """Returns the folder's path, after checking that it may be written.

    Raises:
        OnnxsmithError: `reduce/folder-in-use` if the path holds something else; `save/no-folder` if the parent folder
            does not exist.
    """
    path = Path(output).absolute()
    refuse_missing(path.parent)
    if path.is_symlink() or (path.exists() and not (path.is_dir() and _is_ours(path))):
        raise problem(
            "reduce/folder-in-use",
            "the output folder exists, but does not come from an earlier reduction",
            where=str(path),
            why="the whole folder would be replaced",
            fix=f"name a folder that does not exist: -o {pasted(_free(Path(output)))}",
        )
    return path


def _free(path: Path) -> str:
    """Returns a path beside this one that does not exist."""
    tries = (path.with_name(f"{path.name}-{index}") for index in itertools.count(2))
    return str(next(one for one in tries if not one.exists() and not one.is_symlink()))


def _is_ours(path: Path) -> bool:
    entries = {entry.name for entry in path.iterdir()}
    readme = path / "README.md"
    return not entries or (readme.is_file() and user_files.read_bytes(readme).startswith(f"<!-- {_MARK}".encode()))


def write(target: Path, case: Case, oracle: Oracle) -> list[Path]:
    """Writes the folder under a temporary name, runs its program in a new process, and moves it to `target`.

    Raises:
        OnnxsmithError: `reduce/not-confirmed` if the written files do not fail; `save/failed` if the disk refuses.
    """
    try:
        with beside(target) as around:
            aside = OwnPath(around / target.name)
            aside.mkdir()
            _fill(aside, case, oracle)
            move(aside, target, around)
    except OSError as error:
        raise unwritten(target, error, "the folder could not be written") from error
    return sorted(target.iterdir(), key=lambda file: (file.suffix != ".onnx", file.name))


def _fill(folder: OwnPath, case: Case, oracle: Oracle) -> None:
    save(case.model, folder / "model.onnx")
    odd = portable_arrays.write(case.feeds, OwnPath(folder / "inputs.npz"))
    if odd:
        raise problem(
            "reduce/input-kind",
            f"the value of input {odd[0]!r} cannot be written to an .npz",
            why="the value is a sequence, its dtype is not one of numpy's, or its name is a path; with the value as a "
            "constant, the model does not fail",
            fix="reduce in Python and without a folder: onnxsmith.reduce(model, check=check).model is the reduced "
            "model",
        )
    failure = _confirmed(folder, case, oracle)
    title = " ".join(failure.what.replace('"', "'").replace("\\", "/").split())[:_TITLE]
    program = "\n".join((f'"""{title}"""', "", *oracle.check.script(failure), ""))
    (folder / "repro.py").write_text(program, encoding="utf-8")
    for file in oracle.check.files():
        copy(file, OwnPath(folder / file.name))
    code, said = _run(folder, oracle, failure)
    (folder / "output.txt").write_text(said, encoding="utf-8")
    (folder / "versions.txt").write_text(_versions(), encoding="utf-8")
    (folder / "README.md").write_text(_readme(case, failure, code), encoding="utf-8")
    folder.chmod(0o777 & ~_umask())


def _confirmed(folder: Path, case: Case, oracle: Oracle) -> Failure:
    """Returns the failure of the written file. Raises if it does not fail."""
    outcome = oracle.judge(Case(load(folder / "model.onnx"), case.feeds))
    if outcome.failure is None or oracle.first is None or not outcome.failure.is_like(oracle.first):
        raise _unconfirmed(outcome.failure.what if outcome.failure else outcome.why or outcome.end.value)
    return outcome.failure


def _run(folder: Path, oracle: Oracle, failure: Failure) -> tuple[int, str]:
    """Runs the program. Returns its exit status and output."""
    limit = oracle.bench.time_limit + _GRACE
    with tempfile.TemporaryFile() as output:
        try:
            code = children.HERE.run(
                [sys.executable, "-P", "repro.py"],
                timeout=limit,
                cwd=folder,
                env={**os.environ, **children.SILENT},
                stdout=output,
                stderr=subprocess.STDOUT,
            ).returncode
        except subprocess.TimeoutExpired as error:
            raise _unconfirmed(f"repro.py took longer than {limit:g} s") from error
        output.seek(0)
        said = _neutral(output.read().decode(errors="replace"), folder)
    if not oracle.check.shows(failure, code, said):
        raise _unconfirmed(f"repro.py does not show the failure; it ended with status {code}: {said[-300:]}")
    return code, said[-_SAID:]


def _neutral(text: str, folder: Path) -> str:
    """Returns the text without paths of this machine, which would identify the author of the report."""
    places = {str(folder): ".", sys.prefix: "…", sys.base_prefix: "…", str(Path.home()): "~"}
    for place, name in places.items():
        text = text.replace(place, name) if len(place) > 1 else text
    return text


def _unconfirmed(why: str) -> OnnxsmithError:
    return problem(
        "reduce/not-confirmed",
        "the reduced model no longer fails when it is run from the written file, so nothing was written",
        why=why,
        fix="the failure depends on chance or on the process that runs the check: make the check more stable",
    )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _versions() -> str:
    found = []
    for name in _PACKAGES:
        try:
            found.append(f"{name}=={metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return "\n".join([f"python {sys.version.split()[0]}", *found, f"onnxsmith {__version__}", ""])


def _readme(case: Case, failure: Failure, code: int) -> str:
    ended = children.cause_of_end(code)
    return f"""<!-- {_MARK} -->
# A failing model of {case.nodes} node{"" if case.nodes == 1 else "s"}

{failure.what}

`python repro.py` in this folder shows the failure; it ended with {ended}, and `output.txt` holds its output. It needs
the packages in `versions.txt`, in these versions if the failure depends on them.
"""
