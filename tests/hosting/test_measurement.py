"""What `benchmarks/hardening.py hosts` measures is noticed if it is there: each leak and each change is planted."""

from __future__ import annotations

import atexit
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stressing.hosting import calls, growth, process_state, work

import onnxsmith

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the benchmark reads /proc")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def samples(call: Callable[[], object]) -> list[growth.Sample]:
    """The samples of 200 calls."""
    found = [growth.sample(0)]
    for number in range(1, 201):
        call()
        if number % 20 == 0:
            found.append(growth.sample(number))
    return found


def test_nothing_grows_if_nothing_leaks() -> None:
    assert growth.complaints(samples(lambda: bytearray(50_000))) == []


def test_a_list_that_grows_by_50_kb_a_call_is_noticed() -> None:
    kept: list[bytearray] = []
    found = samples(lambda: kept.append(bytearray(os.urandom(50_000))))
    (said,) = growth.complaints(found)
    assert said.endswith("MB more in 200 calls")
    assert 8 < growth.slope(found) < 12


def test_the_slope_is_that_of_all_samples() -> None:
    first = growth.sample(0)
    steps = [replace(first, calls=calls, megabytes=100 + calls / 50) for calls in range(0, 201, 20)]
    assert growth.slope(steps) == pytest.approx(4)
    peak = [*steps[:-1], replace(steps[-1], megabytes=100)]  # two points would say: nothing
    assert growth.slope(peak) > 2


def test_memory_counts_from_four_samples_on() -> None:
    steps = [replace(growth.sample(0), calls=calls, megabytes=100 + calls) for calls in range(0, 61, 20)]
    assert work.Finding("process", steps).all_wrong() == ["200.0 MB more in 200 calls"]
    assert work.Finding("process", steps[:3]).all_wrong() == []


@contextmanager
def open_file(folder: Path) -> Iterator[None]:
    with (folder.parent / f"{folder.name}-kept").open("w"):
        yield


@contextmanager
def thread(_: Path) -> Iterator[None]:
    ended = threading.Event()
    kept = threading.Thread(target=ended.wait)
    kept.start()
    yield
    ended.set()
    kept.join()


@contextmanager
def child(_: Path) -> Iterator[None]:
    kept = subprocess.Popen(["sleep", "60"])
    yield
    kept.kill()
    kept.wait()


@contextmanager
def folder(place: Path) -> Iterator[None]:
    (place / "left").mkdir()
    yield


@contextmanager
def shared(_: Path) -> Iterator[None]:
    file = Path("/dev/shm") / f"onnxsmith-test-{os.getpid()}"
    file.touch()
    yield
    file.unlink()


@contextmanager
def hook(_: Path) -> Iterator[None]:
    def nothing() -> None: ...

    atexit.register(nothing)
    yield
    atexit.unregister(nothing)


@pytest.mark.parametrize(
    ("leak", "kind"),
    [
        (open_file, "descriptors"),
        (thread, "threads"),
        (child, "children"),
        (folder, "folders"),
        (shared, "shared"),
        (hook, "hooks"),
    ],
)
def test_one_thing_that_is_left_is_noticed(leak: Any, kind: str, tmp_path: Path) -> None:
    before = growth.sample(0)
    with leak(tmp_path):
        after = growth.sample(1)
    (said,) = growth.complaints([before, after], memory=False)
    assert said.startswith(f"1 {kind} more")


def changed_by(change: Callable[[ExitStack], object]) -> list[str]:
    with ExitStack() as undo:
        before = process_state.state()
        change(undo)
        after = process_state.state()
    return [one.partition(":")[0] for one in process_state.changed(before, after)]


def handler(undo: ExitStack) -> None:
    undo.callback(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.SIG_IGN))


def stream(undo: ExitStack) -> None:
    undo.callback(setattr, sys, "stderr", sys.stderr)
    sys.stderr = sys.__stdout__


def filters(undo: ExitStack) -> None:
    undo.enter_context(warnings.catch_warnings())
    warnings.simplefilter("ignore")


def level(undo: ExitStack) -> None:
    log = logging.getLogger("a log of the host")
    log.setLevel(logging.DEBUG)
    undo.callback(log.setLevel, logging.NOTSET)


def variable(undo: ExitStack) -> None:
    os.environ["ONNXSMITH_TEST"] = "1"
    undo.callback(os.environ.pop, "ONNXSMITH_TEST")


def place(undo: ExitStack) -> None:
    undo.callback(os.chdir, Path.cwd())
    os.chdir("/")


def errors(undo: ExitStack) -> None:
    undo.enter_context(np.errstate(over="raise", invalid="ignore"))


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (handler, "SIGINT"),
        (stream, "streams"),
        (filters, "warning filters"),
        (variable, "environment"),
        (place, "current folder"),
        (errors, "errors of numpy"),
        (lambda _: random.random(), "random"),
        (lambda _: np.random.rand(), "random of numpy"),
    ],
)
def test_a_change_of_the_hosts_state_is_noticed(change: Callable[[ExitStack], object], name: str) -> None:
    assert changed_by(change) == [name]


def test_a_log_level_that_changes_is_noticed() -> None:
    logging.getLogger("a log of the host")
    assert changed_by(level) == ["log a log of the host"]


@pytest.mark.torch
def test_a_change_of_torchs_state_is_noticed() -> None:
    import torch

    def changes(undo: ExitStack) -> None:
        undo.callback(torch.set_grad_enabled, torch.is_grad_enabled())
        torch.set_grad_enabled(False)
        undo.callback(torch.set_default_dtype, torch.get_default_dtype())
        torch.set_default_dtype(torch.float64)
        undo.callback(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(torch.get_num_threads() + 1)
        torch.rand(1)

    assert changed_by(changes) == ["gradients", "threads of torch", "random of torch", "dtype of torch"]


def test_a_call_that_hangs_is_ended_with_its_stack(tmp_path: Path) -> None:
    program = f"""
import sys, threading
sys.path.append({str(Path(work.__file__).parents[2])!r})
from pathlib import Path
from stressing.hosting import calls
from stressing.hosting.work import Work
def waits_for_a_lock(_):
    lock = threading.Lock()
    with lock, lock:
        pass
calls.ROUND = (waits_for_a_lock,)
calls.at = lambda number: ("waits", waits_for_a_lock, 0)
Work(Path({str(tmp_path)!r}), limit=0.2).call(0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == work.HUNG
    assert "waits_for_a_lock" in done.stderr


def test_an_error_that_is_not_expected_is_noticed_and_one_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raises(_: Any) -> None:
        raise ValueError("unexpected")

    def raises_not(_: Any) -> None: ...

    monkeypatch.setattr(calls, "REFUSED", (raises_not,))
    tried = work.Work(tmp_path)
    for call in (raises, raises_not):
        monkeypatch.setattr(calls, "at", lambda _, call=call: (call.__name__, call, 0))
        tried.call(0)
    assert tried.wrong == ["raises: ValueError('unexpected')", "raises_not: no error"]


def test_each_public_function_is_called_or_the_reason_is_known() -> None:
    assert calls.called() | set(calls.NOT_CALLED) == set(onnxsmith.__all__)
    assert not calls.called() & set(calls.NOT_CALLED)
