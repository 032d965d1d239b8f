"""Each way of each operating system does what its interface says, and every module imports where POSIX is absent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from onnxsmith.base.system import children, disk, locks, machine, memory_limit, usage

# Locks


@pytest.fixture
def windows_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[int]]:
    """Files as Windows has them: what `os.open` holds open cannot be removed. Gives the open descriptors."""
    held: dict[int, str] = {}
    real_open, real_close, real_unlink = os.open, os.close, Path.unlink

    def opened(path: str | Path, flags: int, mode: int = 0o777) -> int:
        descriptor = real_open(path, flags, mode)
        held[descriptor] = os.fspath(path)
        return descriptor

    def closed(descriptor: int) -> None:
        held.pop(descriptor, None)
        real_close(descriptor)

    def unlink(self: Path, missing_ok: bool = False) -> None:
        if str(self) in held.values():
            raise PermissionError(13, "The process cannot access the file because it is being used", str(self))
        real_unlink(self, missing_ok=missing_ok)

    monkeypatch.setattr(locks.os, "open", opened)
    monkeypatch.setattr(locks.os, "close", closed)
    monkeypatch.setattr(Path, "unlink", unlink)
    yield held.keys()  # type: ignore[misc]
    for descriptor in list(held):
        closed(descriptor)


@pytest.mark.parametrize("kind", [locks.FileLocks, locks.OpenFiles])
@pytest.mark.usefixtures("windows_files")
def test_a_held_file_is_not_taken_over_and_a_left_one_is(tmp_path: Path, kind: type[locks.Locks]) -> None:
    ways, file = kind(), tmp_path / "owner"
    held = ways.hold(file)
    assert held is not None
    assert [entry.name for entry in tmp_path.iterdir()] == ["owner"]
    with pytest.raises(OSError), ways.taken_over(file):  # noqa: PT011 — any kind of it
        pytest.fail("somebody has it")
    assert file.exists()
    os.close(held)
    entered = False
    with ways.taken_over(file):
        entered = True
    assert entered


@pytest.mark.parametrize("kind", [locks.FileLocks, locks.OpenFiles])
def test_a_file_that_is_not_there_is_nobodys_to_take(tmp_path: Path, kind: type[locks.Locks]) -> None:
    with pytest.raises(FileNotFoundError), kind().taken_over(tmp_path / "owner"):
        pytest.fail("there is none")


def test_blocks_that_wait_run_one_after_the_other(tmp_path: Path) -> None:
    file, inside, most = tmp_path / "lock", [0], []
    file.touch()  # of a process that was killed

    def block() -> None:
        for _ in range(20):
            with locks.FileLocks().waiting(file):
                inside[0] += 1
                most.append(inside[0])
                inside[0] -= 1

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(block) for _ in range(4)]:
            done.result()
    assert most == [1] * 80
    assert not file.exists()


@pytest.mark.usefixtures("windows_files")
def test_a_block_waits_where_open_files_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ways, file, said = locks.OpenFiles(), tmp_path / "lock", []
    file.touch()  # of a process that was killed
    held = ExitStack()
    held.enter_context(ways.waiting(file))

    def pause(_: float) -> None:
        said.append("waited")
        held.close()

    monkeypatch.setattr(locks.time, "sleep", pause)
    with ways.waiting(file):
        said.append("entered")
    assert said == ["waited", "entered"]
    assert not file.exists()


def test_a_block_runs_without_a_lock_where_the_file_system_knows_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(locks, "_fcntl", SimpleNamespace(flock=flock, LOCK_EX=2, LOCK_NB=4))
    with locks.FileLocks().waiting(tmp_path / "lock"):
        assert list(tmp_path.iterdir())
    assert not list(tmp_path.iterdir())


def test_a_folder_is_never_empty_where_the_file_system_knows_no_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(locks, "_fcntl", SimpleNamespace(flock=flock, LOCK_EX=2, LOCK_NB=4))
    assert locks.FileLocks().hold(tmp_path / "owner") is None
    assert [file.name for file in tmp_path.iterdir()] == ["owner.new"]  # nobody takes the folder for a left one


@pytest.mark.parametrize("kind", [locks.FileLocks, locks.OpenFiles])
def test_a_folder_that_was_removed_before_it_had_its_lock(tmp_path: Path, kind: type[locks.Locks]) -> None:
    with pytest.raises(FileNotFoundError):
        kind().hold(tmp_path / "absent" / "owner")


# Disk


@pytest.mark.parametrize("kind", [disk.Synced, disk.SyncedForWriting])
def test_a_file_is_flushed_and_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[disk.Disk]
) -> None:
    flushed: list[bool] = []
    monkeypatch.setattr(disk.os, "fsync", lambda number: flushed.append(may_write(number)))
    (tmp_path / "m").write_bytes(b"model")
    kind().flush(tmp_path / "m")
    assert flushed == [kind is disk.SyncedForWriting]
    assert (tmp_path / "m").read_bytes() == b"model"


def may_write(descriptor: int) -> bool:
    with suppress(OSError):
        return os.write(descriptor, b"") == 0
    return False


@pytest.mark.parametrize("knows", [True, False])
def test_macos_flushes_the_drive_too_where_it_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, knows: bool) -> None:
    said: list[str] = []

    def control(_: int, command: int) -> None:
        said.append(f"F_FULLFSYNC is {command}")
        if not knows:
            raise OSError(45, "Operation not supported")

    monkeypatch.setattr(disk, "_fcntl", SimpleNamespace(fcntl=control, F_FULLFSYNC=51))
    monkeypatch.setattr(disk.os, "fsync", lambda _: said.append("fsync"))
    (tmp_path / "m").write_bytes(b"model")
    disk._here().flush(tmp_path / "m")
    assert said == ["F_FULLFSYNC is 51", *([] if knows else ["fsync"])]


# Usage


def test_usage_of_this_process() -> None:
    counted = usage.HERE
    sum(range(10_000_000))
    assert (counted.resident(os.getpid()) or 0) > 2**20
    assert (counted.processor_seconds(os.getpid()) or 0) > 0.05


@pytest.mark.parametrize("kind", [usage.ProcFiles, usage.ProcessStatus, usage.Unknown])
def test_nobody_says_anything_about_a_process_that_is_gone(kind: type[usage.Usage]) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert kind().resident(gone.pid) is None
    assert kind().processor_seconds(gone.pid) is None


PS = {
    "0:01.23": 1.23,  # macOS
    "61:02.50": 3662.5,
    "00:00:07": 7.0,  # Linux
    "1-02:03:04": 93784.0,
    "": None,
    "-": None,
}


@pytest.mark.parametrize("said", PS)
def test_processor_time_as_ps_says_it(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    asked: list[list[str]] = []

    def ran(command: list[str], **_: object) -> SimpleNamespace:
        asked.append(command)
        return SimpleNamespace(stdout=f"  {said}\n".encode())

    monkeypatch.setattr(usage.subprocess, "run", ran)
    assert usage.ProcessStatus().processor_seconds(17) == PS[said]
    assert asked == [["ps", "-o", "time=", "-p", "17"]]


def test_memory_as_ps_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage.subprocess, "run", lambda *_, **__: SimpleNamespace(stdout=b"  2048\n"))
    assert usage.ProcessStatus().resident(17) == 2 * 2**20

    def absent(*_: object, **__: object) -> None:
        raise FileNotFoundError(2, "No such file or directory", "ps")

    monkeypatch.setattr(usage.subprocess, "run", absent)
    assert usage.ProcessStatus().resident(17) is None
    assert usage.ProcessStatus().processor_seconds(17) is None


# Memory limit


class Resource:
    """The module `resource`, with a hard limit of its own; a system that refuses to lower one."""

    RLIM_INFINITY = -1
    RLIMIT_DATA = 2
    RLIMIT_AS = 9

    def __init__(self, hard: int = -1, *, refuses: bool = False, addresses: int = -1) -> None:
        self.hard, self.refuses, self.addresses, self.held = hard, refuses, addresses, 0

    def getrlimit(self, kind: int) -> tuple[int, int]:
        limit = self.addresses if kind == self.RLIMIT_AS else self.hard
        return limit, limit

    def setrlimit(self, _: int, limits: tuple[int, int]) -> None:
        if self.refuses:
            raise OSError(22, "Invalid argument")
        self.held, _ = limits


@pytest.mark.parametrize(
    ("limit", "spare", "hard", "held"),
    [
        (2**45, 2**30, -1, 2**20 + 3 * 2**28),  # what it has, and three quarters of what is free
        (2**29, 2**40, -1, 2**29),
        (2**29, None, -1, 2**29),
        (2**29, 2**40, 2**28, 2**28),
        (0, 2**30, -1, -1),
        (0, 2**30, 2**28, 2**28),
    ],
)
def test_the_limit_is_within_what_the_machine_has(
    monkeypatch: pytest.MonkeyPatch, limit: int, spare: int | None, hard: int, held: int
) -> None:
    machine = Resource(hard)
    monkeypatch.setattr(memory_limit, "_resource", machine)
    monkeypatch.setattr(memory_limit.DataLimit, "_own", lambda _: 2**20)
    monkeypatch.setattr(memory_limit.DataLimit, "_spare", lambda _: spare)
    assert memory_limit.DataLimit().hold(limit) == (max(held, 0) if hard < 0 else limit)
    assert machine.held == held


@pytest.mark.parametrize(("addresses", "room"), [(-1, 3 * 2**28), (2**20, 2**20 - 2**10), (2**9, 0)])
def test_the_limit_of_a_shell_bounds_what_a_process_may_take(
    monkeypatch: pytest.MonkeyPatch, addresses: int, room: int
) -> None:
    monkeypatch.setattr(memory_limit, "_resource", Resource(addresses=addresses))
    monkeypatch.setattr(memory_limit.DataLimit, "_spare", lambda _: 2**30)
    monkeypatch.setattr(memory_limit.DataLimit, "_pages", lambda _, column: 2**10 if column == 0 else 2**8)
    assert memory_limit.DataLimit().room() == room
    assert memory_limit.DataLimit().most() == 2**8 + room


def test_a_limit_that_is_refused_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_limit, "_resource", Resource(refuses=True))
    assert memory_limit.DataLimit().hold(2**20) == 2**20


def test_processes_that_the_system_ended_for_lack_of_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_CONTROL_GROUP", tmp_path)
    monkeypatch.setattr(machine, "_PROC", tmp_path)
    here = machine.ProcFiles()
    assert here.memory_kills() is machine.Unknown().memory_kills() is None
    (tmp_path / "vmstat").write_text("pgfault 9\noom_kill 3\n")
    assert here.memory_kills() == 3
    (tmp_path / "memory.events").write_text("oom 7\noom_kill 2\noom_group_kill 0\n")
    assert here.memory_kills() == 2, "those of the container, and not of the whole machine"


def test_elsewhere_nothing_is_held() -> None:
    assert memory_limit.NoLimit().hold(2**20) == 0


# Children

PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
child.wait()
"""


def has_ended(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(") ")[2].startswith("Z")


def test_a_group_ends_with_what_it_started() -> None:
    process = children.Groups().start([sys.executable, "-c", PARENT], stdout=subprocess.PIPE)
    assert process.stdout is not None
    below = int(process.stdout.readline())
    children.Groups().end(process)
    assert process.returncode == -signal.SIGKILL
    deadline = time.monotonic() + 10
    while not has_ended(below) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert has_ended(below)


@pytest.mark.parametrize("has_taskkill", [True, False])
def test_windows_ends_the_tree(monkeypatch: pytest.MonkeyPatch, has_taskkill: bool) -> None:
    asked: list[list[str]] = []

    def ran(command: list[str], **_: object) -> None:
        asked.append(command)
        if not has_taskkill:
            raise FileNotFoundError(2, "The system cannot find the file specified")

    monkeypatch.setattr(children.subprocess, "run", ran)
    process = children.Trees().start([sys.executable, "-c", "import time; time.sleep(600)"])
    children.Trees().end(process)
    assert asked == [["taskkill", "/F", "/T", "/PID", str(process.pid)]]
    assert process.returncode is not None


def test_temporary_files_of_a_child_go_where_they_are_told() -> None:
    assert children.Groups().temporary("there") == {"TMPDIR": "there"}
    assert children.Trees().temporary("there") == {"TMPDIR": "there", "TEMP": "there", "TMP": "there"}


@pytest.mark.parametrize(
    ("code", "said", "crashed"),
    [
        (0, "exit status 0", False),
        (3, "exit status 3", False),
        (-11, "signal SIGSEGV", True),
        (-9999, "signal 9999", True),
        (0xC0000005, "exit status 0xC0000005 (access violation)", True),
        (0xC0001234, "exit status 0xC0001234", True),
    ],
)
def test_how_a_process_ended(code: int, said: str, crashed: bool) -> None:
    assert children.cause_of_end(code) == said
    assert children.crashed(code) is crashed
