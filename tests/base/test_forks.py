"""A forked process has one thread of its parent: nothing in it waits for the others, or continues what they began."""

from __future__ import annotations

import gc
import os
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from onnxsmith.base import folders
from onnxsmith.base.cached_attributes import cached_property
from onnxsmith.base.garbage_collection import no_collection
from onnxsmith.base.seams.base import alone, replaced
from onnxsmith.runtimes import _idle

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked on this platform")
SECONDS = 20


def status_in_fork(ask: Callable[[], object]) -> int:
    """Forks, and returns 0 if `ask` returns a true value there, 1 if not, 2 if it raises, 3 if it does not end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of a fork of several threads
        pid = os.fork()
    if pid == 0:
        status = 2
        try:
            status = 0 if ask() else 1
        finally:
            os._exit(status)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        ended, found = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(found)
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return 3


@contextmanager
def in_another_thread(block: AbstractContextManager[object], seconds: float) -> Iterator[None]:
    """Keeps a block open in another thread for some seconds."""
    inside = threading.Event()

    def keep() -> None:
        with block:
            inside.set()
            time.sleep(seconds)

    thread = threading.Thread(target=keep)
    thread.start()
    assert inside.wait(SECONDS)
    try:
        yield
    finally:
        thread.join()


def test_a_fork_waits_for_a_replacement_of_another_thread_and_does_not_keep_it() -> None:
    library = SimpleNamespace(part="theirs")

    def usable() -> bool:
        with alone():
            return library.part == "theirs"

    with in_another_thread(replaced(library, "part", "ours"), 0.3):
        assert status_in_fork(usable) == 0


def test_a_fork_keeps_what_its_own_thread_has_replaced() -> None:
    library = SimpleNamespace(part="theirs")
    with replaced(library, "part", "ours"):
        assert status_in_fork(lambda: library.part == "ours") == 0
    assert library.part == "theirs"


def test_a_fork_collects_garbage_though_another_thread_pauses_the_collector() -> None:
    with in_another_thread(no_collection(), 0.3):
        assert not gc.isenabled()
        assert status_in_fork(gc.isenabled) == 0
    assert gc.isenabled()


def test_a_fork_inside_a_pause_ends_the_pause_itself() -> None:
    def ends() -> bool:
        paused = not gc.isenabled()
        block.__exit__(None, None, None)
        return paused and gc.isenabled()

    block = no_collection()
    with block:
        assert status_in_fork(ends) == 0
        assert not gc.isenabled()


def test_a_fork_can_take_an_idle_runtime_though_another_thread_looks_for_one() -> None:
    with in_another_thread(_idle._lock, 0.3):
        assert status_in_fork(lambda: _idle._taken(("module", "runtime")) is None) == 0


def test_a_fork_does_not_wait_for_ever_if_threads_nest_the_locks() -> None:
    ended = threading.Event()

    def nests() -> None:
        while not ended.is_set():
            with alone(), no_collection(), _idle._lock:
                pass

    threads = [threading.Thread(target=nests) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        assert [status_in_fork(lambda: True) for _ in range(20)] == [0] * 20
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def test_a_fork_removes_what_dead_processes_left_though_its_parent_did_so_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with folders.temporary():
        pass

    def leaves() -> object:
        block = folders.temporary()
        return block.__enter__().is_dir() and os._exit(0)

    def clears() -> bool:
        with folders.temporary() as own:
            return [one.name for one in tmp_path.iterdir()] == [own.name]

    assert status_in_fork(leaves) == 0
    assert len(list(tmp_path.iterdir())) == 1
    assert status_in_fork(clears) == 0


class Slow:
    """Has an attribute whose computation takes long."""

    @cached_property
    def attribute(self) -> int:
        if self is SLOW:
            time.sleep(0.3)
        return 1


SLOW = Slow()


def test_a_fork_computes_an_attribute_though_another_thread_computes_it_for_another_object() -> None:
    """Python 3.11's own `cached_property` has one lock for all objects, which the fork would wait for."""
    thread = threading.Thread(target=lambda: SLOW.attribute)
    thread.start()
    assert status_in_fork(lambda: Slow().attribute == 1) == 0
    thread.join()
    assert SLOW.attribute == 1
