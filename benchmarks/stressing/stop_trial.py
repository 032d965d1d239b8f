"""One stop of one command: starts the command, stops it, and looks at what it left."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import random
import re
import resource
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from stressing import stop_lines, stop_places
from stressing.stop_lines import DRIVER, Line

SIGNALS = {name: getattr(signal, name, signal.SIGTERM) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGKILL")}
KINDS = (
    *SIGNALS, "SIGKILL to a child", "SIGKILL to the group", "SIGINT to the group", "disk full", "TMPDIR full", "quota",
    "read-only folder", "read-only file", "TMPDIR removed", "no TMPDIR", "two writers", "clock set back",
)  # fmt: skip
FOR_ROOT = {"disk full", "TMPDIR full", "read-only folder", "read-only file"}
ANSWERED = {"SIGINT", "SIGTERM", "SIGHUP", "SIGINT to the group"}
"""Stops that the command has to answer."""
FAULTS = ("torn", "lost", "left running", "litter", "traceback", "status")
_OURS = re.compile(r"(\..*\.)?onnxsmith-\w+", re.DOTALL)
_GONE = 10.0
"""Seconds in which the processes of a stopped command have to end."""
_NEXT = ["strip", "tiny.onnx", "-o", "next.onnx"]
"""The command that runs after the stop."""
_TELLS = re.compile(rb"Traceback \(most recent call last\)|internal/unexpected")


_EARLY = re.compile(rb"__main__\.py\", line 11, in <module>\n.*KeyboardInterrupt\n$", re.DOTALL)
"""Python's answer to Ctrl-C in the first milliseconds, before onnxsmith has said what its answer is."""


@dataclass
class Outcome:
    """What a stop did. `faults` are of `FAULTS`, each with what was seen."""

    kind: str
    line: Line
    moment: str = ""
    status: int | None = None
    said: bytes = b""
    faults: dict[str, str] = field(default_factory=dict)


class Trial:
    """A stop of a command. Everything about it follows from `seed` and `number`."""

    def __init__(self, work: Path, found: list[Line], kinds: list[str], seed: str, number: int) -> None:
        self.name = f"{seed}-{number}"
        self.draw = random.Random(self.name)
        weights = [1 / max(1.0, line.seconds) for line in found]  # a long command is tried less often
        self.kind = self.draw.choice(kinds)
        self.line = self.draw.choices(found, weights)[0]
        self.place = work / "trial" / f"trial{number}"
        self.here, self.temporary = self.place / "here", self.place / "temporary"
        self.outcome = Outcome(self.kind, self.line)
        self.mounted: list[Path] = []

    def run(self) -> Outcome:
        """Makes the folder, runs and stops the command, and returns what was seen."""
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir(parents=True)
        try:
            self._prepare()
            self._stopped()
            self._observe()
        finally:
            self._end_all()
            if self.kind.startswith("read-only"):
                _chattr("-R", "-i", self.here)
            for mounted in self.mounted:
                subprocess.run(["umount", "--lazy", str(mounted)], check=False)
            shutil.rmtree(self.place, ignore_errors=True)
        return self.outcome

    def _prepare(self) -> None:
        begin = Path(self.line.folder) / "begin"
        self.here.mkdir()
        self.temporary.mkdir()
        if self.kind == "disk full":
            size = _bytes(begin) + 2**16
            self._mount(self.here, size + int(self.draw.uniform(0, 1.2) * max(2**16, self._added())))
        if self.kind == "TMPDIR full":
            self._mount(self.temporary, int(self.draw.uniform(2**12, 2**23)))
        shutil.copytree(begin, self.here, dirs_exist_ok=True)
        if self.kind == "no TMPDIR":
            self.temporary.rmdir()
        if self.kind == "read-only file":
            files = [self.here / name for name in self.line.before if name in self.line.outputs]
            for file in self.draw.sample(files, self.draw.randint(1, len(files))) if files else []:
                _chattr("-R", "+i", file)
        if self.kind == "clock set back":
            self._make_future()
        self.inputs = self._inputs()

    def _inputs(self) -> dict[str, tuple[int, int, int]]:
        """Returns what changes when a file is written, for the files that the command only reads."""
        names = [name for name in self.line.before if name not in self.line.outputs]
        files = [file for name in names for file in (self.here / name, self.here / f"{name}.data") if file.is_file()]
        files += [file for name in names for file in (self.here / name).rglob("*") if file.is_file()]
        stats = {str(file): file.stat() for file in files}
        return {file: (one.st_ino, one.st_size, one.st_mtime_ns) for file, one in stats.items()}

    def _is_as_before(self, name: str) -> bool:
        """Whether an input has the content that it had: an output may be written again with the same content."""
        first = Path(self.line.folder) / "begin" / Path(name).relative_to(self.here)
        now = Path(name)
        if stop_places.state(now) == stop_places.state(first) is not None:
            return True
        return now.is_file() and now.read_bytes() == first.read_bytes()

    def _added(self) -> int:
        return max(0, _bytes(Path(self.line.folder) / "here") - _bytes(Path(self.line.folder) / "begin")) + 4_200_000

    def _mount(self, folder: Path, size: int) -> None:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
        self.mounted.append(folder)

    def _make_future(self) -> None:
        for folder in (self.here / ".old.onnx.onnxsmith-dead", self.temporary / "onnxsmith-dead"):
            folder.mkdir()
            (folder / ".owner").touch()
        future = time.time() + 10 * 365 * 86400
        for file in (*self.here.rglob("*"), *self.temporary.rglob("*")):
            os.utime(file, (future, future))

    def _stopped(self) -> None:
        """Starts the command and stops it."""
        at_step = self.draw.random() < 0.35 and self.line.steps and self.kind not in ("SIGKILL to a child",)
        number = self._signal()
        step = [0, 0, False]
        if at_step and number is not None:
            step = [self.draw.randint(1, self.line.steps), int(number), self.kind.endswith("group")]
            self.outcome.moment = f"before change {step[0]} of {self.line.steps}"
        process = self._started(step)
        others = [process]
        if self.kind == "two writers":
            time.sleep(self.draw.uniform(0, self.line.seconds / 2))
            others.append(self._started([0, 0, False], "second"))
        act = self._action(process)
        if act is not None and not step[0]:
            self._wait_for_moment(process)
            if process.poll() is None:
                act()
        for one in others:
            limit = 60 + 10 * self.line.seconds
            try:
                self.outcome.status = one.wait(limit)
            except subprocess.TimeoutExpired:
                self.outcome.faults["left running"] = f"the command did not end in {limit:.0f} s"
        if self.kind == "two writers":
            self.outcome.status = max(one.returncode or 0 for one in others)

    def _signal(self) -> signal.Signals | None:
        return SIGNALS.get(self.kind.split()[0]) if self.kind.startswith("SIG") else None

    def _action(self, process: subprocess.Popen[bytes]) -> Callable[[], None] | None:
        """Returns what happens at the drawn moment."""
        number = self._signal()
        if number is not None:
            if self.kind == "SIGKILL to a child":
                return lambda: _kill_child(process.pid, self.draw)
            if self.kind.endswith("group"):
                return lambda: os.killpg(process.pid, number)
            return lambda: process.send_signal(number)
        if self.kind == "read-only folder":
            return lambda: _chattr("+i", self.here)
        if self.kind == "TMPDIR removed":
            return lambda: shutil.rmtree(self.temporary, ignore_errors=True)
        return None

    def _started(self, step: list[object], name: str = "first") -> subprocess.Popen[bytes]:
        words = [*DRIVER, *self.line.words]
        shared = self.place / "shm"
        shared.mkdir(exist_ok=True)
        if _may_mount():  # its own /dev/shm, to see what stays in it
            script = 'mount --bind "$1" /dev/shm && shift && exec "$@"'
            words = ["unshare", "-m", "sh", "-c", script, "sh", str(shared), *words]
        how = {}
        if self.kind == "quota":
            size = int(2 ** self.draw.uniform(10, 23))
            self.outcome.moment = f"files of at most {size:,} bytes"
            how = {"preexec_fn": functools.partial(resource.setrlimit, resource.RLIMIT_FSIZE, (size, size))}
        variables = {**stop_lines.environment(self.name, self.place), "STOPS_AT": json.dumps(step)}
        with (self.place / name).open("wb") as said:
            return subprocess.Popen(
                words, cwd=self.here, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=variables,
                start_new_session=True, **how,
            )  # fmt: skip

    def _wait_for_moment(self, process: subprocess.Popen[bytes]) -> None:
        """Waits for a moment of the run; one time in three for the hidden folder beside the outputs."""
        if self.draw.random() < 0.35:
            after = self.draw.choice([0, 0, self.draw.uniform(0, 0.02), self.draw.uniform(0, self.line.seconds / 5)])
            self.outcome.moment = f"{after:.4f} s after the hidden folder came"
            while process.poll() is None and not any(_OURS.fullmatch(one.name) for one in self.here.iterdir()):
                time.sleep(0.0005)
            time.sleep(after)
        else:
            low = 0.9 if self.draw.random() < 0.3 else 0.05
            seconds = self.draw.uniform(low, 1.02) * self.line.seconds
            self.outcome.moment = f"after {seconds:.3f} of {self.line.seconds:.3f} s"
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(seconds)

    def _observe(self) -> None:
        faults = self.outcome.faults
        self._wait_for_all()
        self.outcome.said = b"".join((self.place / name).read_bytes() for name in ("first", "second")
                                     if (self.place / name).exists())  # fmt: skip
        if (found := _TELLS.search(self.outcome.said)) and not _EARLY.search(self.outcome.said):
            faults["traceback"] = found[0].decode()
        if why := self._wrong_status():
            faults["status"] = why
        if shared := sorted(one.name for one in (self.place / "shm").iterdir()):
            faults["litter"] = f"in /dev/shm: {shared}"
        if self.kind.startswith("read-only"):
            _chattr("-R", "-i", self.here)
        self._look_at_outputs()
        self._look_for_litter()

    def _wait_for_all(self) -> None:
        end = time.monotonic() + _GONE
        while (left := running(self.name)) and time.monotonic() < end:
            time.sleep(0.05)
        if left:
            self.outcome.faults["left running"] = "; ".join(left.values())[:300]

    def _wrong_status(self) -> str:
        status, said = self.outcome.status, self.outcome.said
        if status in (self.line.status, 0, 1):
            return ""
        if self.kind in ANSWERED:
            number = self._signal()
            begun = b"run/interrupted" in said if status == 2 else b"onnxsmith: interrupted" in said
            before_python = not said or bool(_EARLY.search(said))
            before = self.line.before
            is_over = all(stop_places.state(self.here / one) != before.get(one) for one in self.line.outputs)
            if begun or (status == -int(number or 0) and (before_python or is_over)):
                return ""
            return f"status {status}: {said[-200:].decode(errors='replace')}"
        if status == 2 or (self.kind.startswith("SIGKILL") and status == -signal.SIGKILL):
            return ""
        return f"status {status}: {said[-200:].decode(errors='replace')}"

    def _look_at_outputs(self) -> None:
        for name, new in self.line.outputs.items():
            shown = stop_places.state(self.here / name)
            if why := stop_places.fault(shown, self.line.before.get(name), new):
                self.outcome.faults[why] = f"{name}: {shown if isinstance(shown, str) else 'a folder' if shown else ''}"
        now = self._inputs()
        wrong = [name for name, one in self.inputs.items() if now.get(name) != one and not self._is_as_before(name)]
        if wrong:
            self.outcome.faults["lost"] = f"inputs: {', '.join(wrong)}"

    def _look_for_litter(self) -> None:
        if not self._litter() and self.kind != "clock set back":
            return
        for mounted in self.mounted:
            subprocess.run(["mount", "-o", "remount,size=200m", str(mounted)], check=True)
        names = self.line.before.keys() | self.line.outputs.keys()
        before = {name: stop_places.state(self.here / name) for name in names}
        self.temporary.mkdir(exist_ok=True)
        status, _, _, said = stop_lines.undisturbed(_NEXT, self.place)
        if status != 0:
            self.outcome.faults["status"] = f"the next command: {said[-300:]}"
        after = {name: stop_places.state(self.here / name) for name in names}
        for name in names:  # may the next command take something away?
            whole = stop_places.fault(after.get(name), self.line.before.get(name), self.line.outputs.get(name, [None]))
            if after.get(name) != before.get(name) and whole:
                self.outcome.faults["lost"] = f"{name}, by the next command"
            elif after.get(name) != before.get(name):
                for fault in ("lost", "torn"):  # the next command brought it back
                    if self.outcome.faults.get(fault, "").startswith(f"{name}:"):
                        del self.outcome.faults[fault]
        if left := self._litter():
            self.outcome.faults["litter"] = ", ".join(left)

    def _litter(self) -> list[str]:
        hidden = [one.name for place in (self.here, self.temporary) if place.exists()
                  for one in place.iterdir() if _OURS.fullmatch(one.name)]  # fmt: skip
        known = self.line.before.keys() | self.line.outputs.keys() | {"next.onnx"}
        new = [one.name for one in self.here.iterdir() if one.name not in known and stop_places.is_whole(one)
               and one.name not in hidden]  # fmt: skip
        data = set(stop_places.unneeded_data(self.here)) - set(stop_places.unneeded_data(
            Path(self.line.folder) / "begin"))  # fmt: skip
        return sorted([*hidden, *new, *data])

    def _end_all(self) -> None:
        for process in running(self.name):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        end = time.monotonic() + _GONE
        while running(self.name) and time.monotonic() < end:
            time.sleep(0.05)


def running(trial: str) -> dict[int, str]:
    """Returns the processes of a trial that run, with their command lines: they carry its name in their environment."""
    text = f"{stop_lines.TRIAL}={trial}".encode()
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if text in (process / "environ").read_bytes().split(b"\0"):
                found[int(process.name)] = (process / "cmdline").read_text().replace("\0", " ")[:200]
    return found


def _kill_child(parent: int, draw: random.Random) -> None:
    """Kills a child of a process that a trial started, or a descendant of it."""
    found: list[int] = []
    waiting = [parent]
    while waiting:
        file = Path(f"/proc/{waiting[0]}/task/{waiting.pop(0)}/children")
        with contextlib.suppress(OSError):
            new = [int(word) for word in file.read_text().split()]
            found += new
            waiting += new
    if found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(draw.choice(found), signal.SIGKILL)


def _bytes(folder: Path) -> int:
    files = [one for one in folder.rglob("*") if one.is_file()]
    return sum(-(-one.stat().st_size // 4096) * 4096 for one in files) + 4096 * len(files)


def _chattr(*words: object) -> None:
    subprocess.run(["chattr", *map(str, words)], check=False, capture_output=True)


@functools.cache
def _may_mount() -> bool:
    words = ["unshare", "-m", "mount", "--bind", "/dev/shm", "/dev/shm"]
    return os.geteuid() == 0 and subprocess.run(words, check=False, capture_output=True).returncode == 0


def possible() -> list[str]:
    """Returns the kinds of stops that this user may try."""
    return [kind for kind in KINDS if kind not in FOR_ROOT or _may_mount()]


@contextmanager
def kept_signals() -> Iterator[None]:
    """Lets commands start with the default answers to signals: a background job may ignore SIGINT."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGHUP)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def repeated(outcome: Outcome, number: int, seed: str) -> str:
    """Returns a line about a failed trial, and the command that repeats it."""
    faults = "; ".join(f"{name} ({why})" for name, why in outcome.faults.items())
    return (
        f"{outcome.kind}, {shlex.join(outcome.line.words[:6])}, {outcome.moment or 'from the start'}: {faults}\n"
        f"    python benchmarks/hardening.py stops --seed {seed} --trial {number}"
    )
