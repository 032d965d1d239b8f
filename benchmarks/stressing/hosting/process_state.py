"""What belongs to the host and not to a call: handlers, streams, settings of libraries, random states."""

from __future__ import annotations

import gc
import hashlib
import locale
import logging
import os
import random
import resource
import signal
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGCHLD", "SIGALRM", "SIGPIPE", "SIGUSR1")


def state() -> dict[str, Any]:
    """Returns the state of this process. Equal values mean an unchanged state."""
    return {**of_thread(), **_python(), **_system(), **_streams(), **_numbers()}


def of_thread() -> dict[str, Any]:
    """Returns the state of this thread, which other threads do not change."""
    import numpy as np

    found: dict[str, Any] = {"errors of numpy": np.geterr(), "print options of numpy": repr(np.get_printoptions())}
    if "torch" in sys.modules:
        import torch

        found["gradients"] = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
        found["threads of torch"] = torch.get_num_threads()
    if hasattr(signal, "pthread_sigmask"):
        found["blocked signals"] = sorted(signal.pthread_sigmask(signal.SIG_BLOCK, []))
    return found


def _python() -> dict[str, Any]:
    names = [name for name in logging.root.manager.loggerDict if not name.startswith("onnxsmith")]
    logs = [logging.root, *(logging.getLogger(name) for name in names if _is_made(name))]
    return {
        "warning filters": list(warnings.filters),
        "warnings.showwarning": warnings.showwarning,
        "root logger": (logging.root.level, list(logging.root.handlers), logging.root.manager.disable),
        **{f"log {log.name}": (log.level, len(log.handlers), len(log.filters), log.disabled) for log in logs},
        "sys.path": list(sys.path),
        "sys.meta_path": list(sys.meta_path),
        "hooks": (sys.excepthook, sys.unraisablehook, sys.displayhook, threading.excepthook, sys.breakpointhook),
        "trace": (sys.gettrace(), sys.getprofile()),
        "recursion limit": sys.getrecursionlimit(),
        "collector": (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()),
        "tempfile.tempdir": tempfile.tempdir,
        "socket timeout": socket.getdefaulttimeout(),
    }


def _is_made(name: str) -> bool:
    return isinstance(logging.root.manager.loggerDict[name], logging.Logger)


def _system() -> dict[str, Any]:
    found: dict[str, Any] = {name: signal.getsignal(getattr(signal, name)) for name in SIGNALS}
    if threading.current_thread() is threading.main_thread():
        wakeup = signal.set_wakeup_fd(-1)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        found["wakeup descriptor"] = wakeup
    return found | {
        "timers": [signal.getitimer(one)[1] for one in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL)],
        "environment": dict(os.environ),
        "current folder": str(Path.cwd()),
        "umask": [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("Umask")],
        "limits": [
            resource.getrlimit(one) for one in (resource.RLIMIT_DATA, resource.RLIMIT_AS, resource.RLIMIT_NOFILE)
        ],
        "priority": os.getpriority(os.PRIO_PROCESS, 0),
        "cores": sorted(os.sched_getaffinity(0)),
        "locale": locale.setlocale(locale.LC_ALL),
        "session": (os.getpgrp(), os.getsid(0)),
    }


def _streams() -> dict[str, Any]:
    names = ("stdin", "stdout", "stderr", "__stdin__", "__stdout__", "__stderr__")
    files = [Path(f"/proc/self/fd/{number}") for number in (0, 1, 2)]
    places = [str(file.readlink()) for file in files if file.is_symlink()]
    closed = [name for name in names if getattr(getattr(sys, name), "closed", False)]
    return {"streams": [id(getattr(sys, name)) for name in names], "descriptors 0 to 2": places, "closed": closed}


def _numbers() -> dict[str, Any]:
    import numpy as np

    found = {"random": _digest(random.getstate()), "random of numpy": _digest(np.random.get_state(legacy=True))}
    if "torch" in sys.modules:
        import torch

        found["random of torch"] = hashlib.sha256(torch.get_rng_state().numpy().tobytes()).hexdigest()
        found["dtype of torch"] = torch.get_default_dtype()
        found["device of torch"] = str(torch.get_default_device())
        found["threads between operators"] = torch.get_num_interop_threads()
        found["deterministic"] = torch.are_deterministic_algorithms_enabled()
    return found


def _digest(value: Any) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()


def changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Returns what changed, with the values. A library that was imported in between has no state before."""
    other = [(name, value, after.get(name)) for name, value in before.items() if after.get(name) != value]
    return [f"{name}: {_difference(old, new)}" for name, old, new in other]


def _difference(old: Any, new: Any) -> str:
    if isinstance(old, dict) and isinstance(new, dict):
        keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
        old, new = ({key: one.get(key) for key in keys} for one in (old, new))
    if isinstance(old, list) and isinstance(new, list):
        old, new = [one for one in old if one not in new], [one for one in new if one not in old]
    return f"{str(old)[:120]} became {str(new)[:120]}"
