"""Keeps a library's answer in the user's cache folder, so that the next process need not start the library to ask."""

from __future__ import annotations

import contextlib
import hashlib
import json
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

from onnxsmith._version import __version__
from onnxsmith.base import folders


def kept(library: Path, request: str, ask: Callable[[], Any]) -> Any:
    """Returns a library's answer to a request, as JSON has it: the kept answer, or that of `ask`, which is then kept.

    A kept answer holds for this version of onnxsmith, for this machine, and for the files in the folder `library` with
    their sizes and times of change. If it is missing, damaged, of another installation or not writable, the library is
    asked.
    """
    file = None
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RuntimeError):  # no home folder: RuntimeError
        files = [one for one in sorted(library.iterdir()) if one.is_file()]
        states = [(one.name, one.stat().st_size, one.stat().st_mtime_ns) for one in files]
        key = repr((__version__, platform.node(), str(library), request, states))
        file = folders.cache() / f"{hashlib.sha256(repr((str(library), request)).encode()).hexdigest()[:16]}.json"
        found = json.loads(file.read_bytes())
        if found["key"] == key:
            return found["answer"]
    answer = ask()
    if file is not None:
        with contextlib.suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            with folders.replacing(file) as aside:
                aside.write_text(json.dumps({"key": key, "answer": answer}), encoding="utf-8")
    return answer
