"""Starts the programs that load bundles, with limits of time and memory, and reads their output."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from onnxsmith.base import folders
from onnxsmith.base.folders import OwnPath
from onnxsmith.base.problem import problem
from onnxsmith.base.report.parts.target_checks import BundleCheck
from onnxsmith.base.short_traceback import without_traceback
from onnxsmith.base.system import children, memory_limit
from onnxsmith.base.words import pasted, several
from onnxsmith.runtimes import _call_limits

if TYPE_CHECKING:
    from onnxsmith.deployment.bundles.content import Content

_ASKED = 200
"""Limits the characters of a message in the command that explains it."""
_OLDER = 17
"""Is the opset of the model that an older client may know. A choice."""
_SHOWN = 2000
"""Limits the characters of a failed client's output that an error shows, counted from the end."""


@dataclass(frozen=True)
class Finished:
    """Describes a program that ended: its exit status, and its output. `late` is True if the program was stopped
    because of its time limit."""

    status: int
    output: str
    errors: str
    late: bool = False


def run(
    words: Sequence[str | Path],
    *,
    folder: Path,
    variables: Mapping[str, str] | None = None,
    memory: int = 0,
) -> Finished:
    """Runs a program in a folder. `memory` limits its private memory, in bytes; 0 is no limit."""
    seconds = _call_limits.patient() or None
    how = {"preexec_fn": functools.partial(memory_limit.HERE.hold, memory)} if memory and os.name == "posix" else {}
    try:
        done = children.HERE.run(
            [str(word) for word in words],
            timeout=seconds,
            cwd=folder,
            env={**os.environ, **children.SILENT, **(variables or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **how,
        )
    except subprocess.TimeoutExpired:
        return Finished(-1, "", f"it was stopped after {seconds:g} s", late=True)
    return Finished(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


def replayed(name: str, client: str, finished: Finished, content: Content | None = None) -> BundleCheck:
    """Returns the check that the last line of the output of `verify --json` describes.

    Raises:
        OnnxsmithError: `bundle/client-failed` if there is no such line: the client crashed, or refused the model.
    """
    lines = finished.output.strip().splitlines()
    try:
        said = json.loads(lines[-1])
        wrong, cases = said["wrong"], said["cases"]
        largest = None if said["largest"] is None else float(said["largest"])
    except (IndexError, ValueError, KeyError, TypeError):
        raise failed(name, client, finished, content) from None
    if wrong:
        measured = largest if largest is not None and math.isfinite(largest) else None
        return BundleCheck(name, "different", f"{client}: {wrong[0]}", measured)
    if finished.status != 0 or not cases:
        raise failed(name, client, finished, content)
    texts = f" and {several(said['texts'], 'text')}" if said.get("texts") else ""
    return BundleCheck(name, "equal", f"{client}, {several(cases, 'input')}{texts}", largest)


_UNKNOWN = re.compile(
    r"opset|[Nn]o [Oo]p registered|not (a registered|implemented|supported)|NOT_IMPLEMENTED|[Uu]nsupported (op|type|IR)"
    r"|IR.version|No op schema|cannot resolve operator"
)
"""Matches messages of onnxruntime and related programs about an operator, an opset or an IR version that they do not
know."""


def failed(name: str, client: str, finished: Finished, content: Content | None = None) -> Exception:
    """Returns the error for a client that exists but cannot run the bundle."""
    said = (finished.errors.strip() or finished.output.strip())[-_SHOWN:]
    return problem(
        "bundle/client-failed",
        f"{client} cannot run the {name}",
        where=name,
        why=without_traceback(said) or children.cause_of_end(finished.status),
        fix=_remedy(said, content, late=finished.late),
    )


def _remedy(said: str, content: Content | None, *, late: bool) -> str:
    """Returns advice for a failure, as far as its message allows."""
    if late or _call_limits.is_shortage(said):
        more = f"{_call_limits.TIME}=1200" if late else _call_limits.setting("16GB")
        dims = " ".join(f"--dim {pasted(one)}=1:2:4" for one in (content.symbols if content else ()))
        smaller = (
            f"{dims}, for example; or record your own, smaller inputs: --input inputs.npz"
            if dims
            else "--input inputs.npz"
        )
        return f"record smaller inputs: {smaller}; or allow more: {more}"
    if "Could not find an implementation" in said:
        return "compute the named node in float: put a Cast before it and a Cast back after it; or update the client"
    if _UNKNOWN.search(said) and (content is None or content.opset > _OLDER):
        file = "MODEL" if content is None else content.file
        return (
            f"bundle a model of an older opset: `onnxsmith opset {file} {_OLDER} -o older.onnx`; or update the client"
        )
    message = pasted(" ".join((said.splitlines() or [""])[-1].split())[:_ASKED])
    return (
        f"find out what the message means: `onnxsmith explain {message}`; or look at the bundle's file that the "
        "message names; or use another version of the client"
    )


@contextmanager
def bare_python(*packages: str) -> Iterator[tuple[Path, list[str]]]:
    """Yields a folder with links to these distributions and their requirements. Also yields the arguments of a fresh
    interpreter, `[python, -I, -S, -c, program]`, which imports only from the folder and the standard library. The
    caller appends the path of a file to run, and the arguments of this file.

    Raises LookupError with the name of a distribution that is not installed.
    """
    with folders.temporary() as folder:
        for package in _closure(packages):
            _link(importlib.metadata.distribution(package), folder)
        yield folder, [sys.executable, "-I", "-S", "-B", "-c", _START.format(site=str(folder))]


_START = """import runpy, sys
sys.path.append({site!r})
del sys.argv[0]
sys.path.insert(0, __import__("os").path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")"""


def _closure(packages: Sequence[str]) -> list[str]:
    """Returns the distributions and all their installed requirements, without the requirements of extras."""
    queue, found = list(packages), []
    while queue:
        name = queue.pop()
        if name in found:
            continue
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            if name in packages:
                raise LookupError(name) from None
            continue  # not installed: only other systems require it
        found.append(name)
        queue += [_name(one) for one in distribution.requires or () if "extra ==" not in one]
    return sorted(found)


def _name(requirement: str) -> str:
    end = next((at for at, ch in enumerate(requirement) if not (ch.isalnum() or ch in "-_.")), len(requirement))
    return requirement[:end]


def _link(distribution: importlib.metadata.Distribution, root: OwnPath) -> None:
    """Links the top-level files and folders of a distribution. Several distributions share the folder `google`, so its
    subfolders are linked instead."""
    tops = {Path(file).parts[:2] if Path(file).parts[0] == "google" else Path(file).parts[:1]
            for file in distribution.files or () if ".." not in Path(file).parts}  # fmt: skip
    for parts in sorted(tops):
        target = root.joinpath(*parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        source = Path(str(distribution.locate_file(Path(*parts))))
        if not target.exists() and source.exists():
            target.symlink_to(source.resolve())


def version(package: str) -> str | None:
    """Returns the installed version of a distribution, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def memory_for(model_bytes: int) -> int:
    """Returns the memory that a client may take for a model of this size. The client gets as much as onnxsmith's own
    runtimes."""
    return _call_limits.memory(None, model=model_bytes)
