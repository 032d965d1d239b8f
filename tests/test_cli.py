"""The command line as a shell sees it: help, exit status, streams, and what an interrupt leaves behind."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import pytest
from typer.testing import CliRunner

import onnxsmith
from onnxsmith.base import options, rooms
from onnxsmith.base.report.base import Report
from onnxsmith.cli import application
from onnxsmith.cli.commands.base import Command
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text

SOURCE = Path(onnxsmith.__file__).parent.parent
COMMANDS = rooms.classes("onnxsmith.cli.commands", Command)  # type: ignore[type-abstract]
HEAVY = ("torch", "onnxruntime", "openvino", "nncf")

ODD_NAME = "<script>alert(1)</script>"
SMALL = """
<ir_version: 10, opset_import: ["": 20]>
g (float[batch,3] x) => (float[batch,3] y) { a = Identity(x)\n y = %s(a) }
"""
ENDLESS = """
<ir_version: 10, opset_import: ["": 20]>
g (float[2] x) => (float[2] y) <int64 trips = {1000000000}, bool go = {1}> {
    y = Loop(trips, go, x) <body = b (int64 i, bool c, float[2] a) => (bool d, float[2] e) {
        d = Identity(c)
        e = Tanh(a)
    }>
}
"""


def started(
    *args: str, cwd: Path, code: str = "", env: dict[str, str] | None = None, stderr: int = subprocess.PIPE
) -> subprocess.Popen[str]:
    """The command in a session of its own; `code` is run in place of the command's own entry."""
    entry = ["-c", code] if code else ["-m", "onnxsmith"]
    return subprocess.Popen(
        [sys.executable, *entry, *args],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "COLUMNS": "100", **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        start_new_session=True,
        preexec_fn=_as_from_a_terminal,
    )


def _as_from_a_terminal() -> None:
    """A shell starts background jobs with Ctrl-C ignored, and what runs these tests may be one."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def called(*args: str, cwd: Path, code: str = "", env: dict[str, str] | None = None) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of the command, without its lines of progress, which depend on
    the time that it takes, unless `env` says otherwise."""
    with started(*args, cwd=cwd, code=code, env={"ONNXSMITH_PROGRESS": "none"} | (env or {})) as process:
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with `tanh.onnx`, `relu.onnx` of the same interface, and `damaged.onnx`."""
    for name in ("Tanh", "Relu"):
        save(from_text(SMALL % name), tmp_path / f"{name.lower()}.onnx")
    whole = (tmp_path / "tanh.onnx").read_bytes()
    (tmp_path / "damaged.onnx").write_bytes(whole[: len(whole) // 2])
    return tmp_path


# Help


@pytest.mark.parametrize("name", COMMANDS)
def test_help_lists_every_field(name: str, tmp_path: Path) -> None:
    status, out, err = called(*name.split("/"), "--help-all", cwd=tmp_path)
    assert (status, err) == (0, "")
    words = "".join(out.split())  # lines break at hyphens too
    for field in options.fields_of(COMMANDS[name]):
        about = field.metadata
        if about.get("now"):  # deprecated: it works, and help shows the option to use
            continue
        shown = about.get("metavar") or field.name.upper()
        if about["kind"] != "argument":
            shown = options.spelled(field)
        assert shown in words
        assert "".join(about["help"].split()) in words
    for shared in ("--json", "--html", "--quiet"):
        assert shared in words


def test_help_lists_every_command(tmp_path: Path) -> None:
    for arg in ("--help", "-h"):
        status, out, err = called(arg, cwd=tmp_path)
        assert (status, err) == (0, "")
        assert all(f"\n  {name} " in out for name in {id_.partition("/")[0] for id_ in COMMANDS})


def test_version(tmp_path: Path) -> None:
    assert called("--version", cwd=tmp_path) == (0, f"onnxsmith {onnxsmith.__version__}\n", "")


def test_the_shell_is_told_how_to_complete(tmp_path: Path) -> None:
    code = "import sys; sys.argv[0] = 'onnxsmith'; from onnxsmith.cli.application import main; main()"
    asked = {"_ONNXSMITH_COMPLETE": "source_bash"}
    status, out, _ = called(cwd=tmp_path, code=code, env=asked)
    assert status == 0
    assert "complete -o default -F _onnxsmith_completion onnxsmith" in out
    asked = {"_ONNXSMITH_COMPLETE": "complete_bash", "COMP_WORDS": "onnxsmith ins", "COMP_CWORD": "1"}
    status, out, _ = called(cwd=tmp_path, code=code, env=asked)
    assert (status, out.split()) == (0, ["inspect"])


# What is imported

IMPORT_ALL = """
import importlib, json, pkgutil, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {heavy!r}:
            raise ModuleNotFoundError(f"{{name}} is not here", name=name)

sys.meta_path.insert(0, Absent())
import onnxsmith
failed = {{}}
def walk(package):
    for info in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        try:
            module = importlib.import_module(info.name)
        except Exception as error:
            failed[info.name] = f"{{type(error).__name__}}: {{error}}"
        else:
            if info.ispkg:
                walk(module)
walk(onnxsmith)
print(json.dumps([failed, sorted(name for name in sys.modules if name.startswith("onnxsmith"))]))
"""

LOADED = """
import atexit, sys
from onnxsmith.cli.application import main
def tell():
    heavy = [name for name in {names!r} if name in sys.modules]
    print("loaded:", *heavy, file=sys.stderr)
atexit.register(tell)
main()
"""


@pytest.mark.torch
def test_only_the_exporter_imports_torch_at_the_top(tmp_path: Path) -> None:
    status, out, err = called(cwd=tmp_path, code=IMPORT_ALL.format(heavy=HEAVY))
    assert status == 0, err
    failed, imported = json.loads(out)
    torchs = ("onnxsmith.exporter.", "onnxsmith.compat.functions.", "onnxsmith.base.seams.torch")
    elsewhere = {name: why for name, why in failed.items() if not name.startswith(torchs)}
    assert not elsewhere
    assert all("torch is not here" in why for why in failed.values()), failed
    assert "onnxsmith.comparison.outputs.compare" not in failed, "two files are compared without torch"
    assert len(imported) > 100, "the walk has lost its way"


@pytest.mark.parametrize(
    "args", [["--help"], ["--version"], ["export", "--help"], ["inspect", "tanh.onnx"], ["explain", "algebra/identity"]]
)
def test_what_runs_no_model_loads_no_runtime(args: list[str], folder: Path) -> None:
    status, _, err = called(*args, cwd=folder, code=LOADED.format(names=HEAVY))
    assert (status, err) == (0, "loaded:\n")


def test_help_loads_neither_the_format_nor_what_draws(folder: Path) -> None:
    heavy = (*HEAVY, "onnx", "onnx_ir", "numpy", "pydantic", "rich", "jinja2")
    _, _, err = called("--help", cwd=folder, code=LOADED.format(names=heavy))
    assert err == "loaded:\n"


# Exit status and streams


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("inspect tanh.onnx", 0),
        ("simplify tanh.onnx -o out.onnx", 0),
        ("compare tanh.onnx tanh.onnx@reference", 0),
        ("compare tanh.onnx relu.onnx", 1),
        ("run tanh.onnx --random", 0),
        ("run tanh.onnx", 2),
        ("inspect absent.onnx", 2),
        ("inspect damaged.onnx", 2),
        ("simplify tanh.onnx -o absent/out.onnx", 2),
        ("simplify tanh.onnx", 2),
        ("explain no/such-problem", 2),
        ("compare tanh.onnx relu.onnx --no-such-option", 2),
        ("no-such-command", 2),
    ],
)
def test_exit_status(line: str, status: int, folder: Path) -> None:
    before = {path.name for path in folder.iterdir()}
    got, out, err = called(*line.split(), cwd=folder)
    assert got == status, out + err
    assert "Traceback" not in out + err
    assert (err != "") == (status == 2), "problems of what could not be done, and nothing else, go to standard error"
    assert {path.name for path in folder.iterdir()} - before == ({"out.onnx"} if "-o out.onnx" in line else set())


def test_quiet_says_nothing_when_all_is_well(folder: Path) -> None:
    assert called("compare", "tanh.onnx", "tanh.onnx", "--quiet", cwd=folder) == (0, "", "")
    status, out, err = called("compare", "tanh.onnx", "relu.onnx", "-q", cwd=folder)
    assert (status, out) == (1, "")
    assert "verify/different" in err


@pytest.mark.parametrize(
    "args",
    [
        ["inspect", "tanh.onnx", "--nodes", "--tensors", "--text"],
        ["inspect", "tanh.onnx", "y"],
        ["simplify", "tanh.onnx", "-o", "out.onnx"],
        ["compare", "tanh.onnx", "relu.onnx"],
        ["run", "tanh.onnx", "--random"],
        ["explain", "algebra/identity"],
        ["doctor"],
        ["inspect", "absent.onnx"],
    ],
    ids=" ".join,
)
def test_json_is_the_whole_report(args: list[str], folder: Path) -> None:
    status, out, err = called(*args, "--json", cwd=folder)
    assert err == ""
    data = json.loads(out)
    report = Report.from_json(out)
    assert report.verdict.exit_code == status
    assert report.command == data["command"] == args[0]
    assert report.to_json() + "\n" == out
    assert {key: type(value) for key, value in data.items()} == {
        "schema": int,
        "version": str,
        "command": str,
        "verdict": str,
        "headline": str,
        "models": list,
        "notes": list,
        "problems": list,
        "parts": list,
    }


# HTML


class _Page(html.parser.HTMLParser):
    """Collects the tags and the attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_needs_nothing_else_and_runs_nothing(tmp_path: Path) -> None:
    model = from_text(SMALL % "Tanh")
    for node in model.graph:
        node.name = ODD_NAME
    model.graph.inputs[0].name = '"><img src=x onerror=alert(1)>'
    model.producer_name = ODD_NAME
    save(model, tmp_path / "odd.onnx")
    args = ("inspect", "odd.onnx", "--nodes", "--text", "--html", "page.html")
    status, _, err = called(*args, cwd=tmp_path)
    assert (status, err) == (0, "")
    source = (tmp_path / "page.html").read_text(encoding="utf-8")
    page = _Page(source)
    assert ODD_NAME in page.text, "the name is there, as text"
    assert not page.tags & {"img", "link", "iframe", "object", "embed", "base", "a", "form"}
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", source, re.DOTALL)
    own = files("onnxsmith.cli.render").joinpath("sort.js").read_text(encoding="utf-8")
    assert scripts == [own], "the one that sorts tables, and what a name says is none"
    digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in source, "and the browser runs no other"
    assert not page.attributes & {"src", "href", "srcset", "onerror", "onload", "style"}
    assert "http://" not in source
    assert "https://" not in source
    assert "url(" not in source
    assert "@import" not in source
    assert "default-src 'none'" in source, "and the browser is told so"


def test_html_that_cannot_be_written_is_a_problem(folder: Path) -> None:
    status, _, err = called("inspect", "tanh.onnx", "--html", "absent/page.html", cwd=folder)
    assert status == 2
    assert "report/not-written" in err


# Interrupts


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    """A simplification that is in the middle of a check which takes hours, and its folder."""
    save(from_text(ENDLESS), tmp_path / "in.onnx")
    (tmp_path / "out.onnx").write_bytes(b"what was there before")
    with started("simplify", "in.onnx", "-o", "out.onnx", cwd=tmp_path) as process:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob(".out.onnx.*/out.onnx")):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        try:
            yield tmp_path, process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def is_gone(group: int) -> bool:
    """Whether no process of the group is left within five seconds."""
    end = time.monotonic() + 5
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("after", [0.0, 1.5], ids=["while saving", "while running"])
@pytest.mark.parametrize("how", ["ctrl-c", "kill"])
def test_an_interrupt_leaves_nothing_behind(
    endless: tuple[Path, subprocess.Popen[str]], how: str, after: float
) -> None:
    folder, process = endless
    time.sleep(after)
    if how == "ctrl-c":
        os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to every process in front
    else:
        process.terminate()
    out, err = process.communicate(timeout=30)
    assert process.returncode == 2
    assert "run/interrupted" in err
    assert "; as before: out.onnx" in err
    assert "Traceback" not in err
    assert out == ""
    assert sorted(path.name for path in folder.iterdir()) == ["in.onnx", "out.onnx"]
    assert (folder / "out.onnx").read_bytes() == b"what was there before"
    assert is_gone(process.pid), "the child that ran the model ends too, and a moment later the process that watches"


# Progress

SLOW = """
import time
from onnxsmith.base.clock import advance, stage
from onnxsmith.{module} import {name} as bar
with bar({arguments}):
    with stage("verify"):
        advance("verify", 1, 4)
        time.sleep(0.5)
print("done")
"""


def in_terminal(code: str, cwd: Path) -> str:
    """What the program draws on standard error, which is a terminal."""
    front, back = pty.openpty()
    with started(cwd=cwd, code=code, env={"TERM": "xterm"}, stderr=back) as process:
        os.close(back)
        drawn = b""
        while True:
            try:
                piece = os.read(front, 4096)
            except OSError:  # Linux says EIO when the other side is closed
                break
            if not piece:
                break
            drawn += piece
        out, _ = process.communicate(timeout=30)
    os.close(front)
    assert out == "done\n", drawn
    return drawn.decode()


def test_a_bar_is_drawn_in_a_terminal(tmp_path: Path) -> None:
    drawn = in_terminal(SLOW.format(module="cli.render.progress", name="shown", arguments="delay=0"), tmp_path)
    assert "verify" in drawn
    assert drawn.count("\x1b[?25l") == drawn.count("\x1b[?25h") == 1, "the cursor is hidden and comes back"


def test_what_is_over_in_two_seconds_draws_no_bar(tmp_path: Path) -> None:
    assert "verify" not in in_terminal(
        SLOW.format(module="cli.application", name="_progress", arguments="enabled=True"), tmp_path
    )


SHOWN = {"ONNXSMITH_PROGRESS": ""}
STAGES = """
import time
from onnxsmith.base.clock import advance, stage
from onnxsmith.cli.application import _progress
with _progress(enabled={enabled}):
    for name in ("load", "verify", "load", "save"):
        with stage(name):
            advance(name, 1, 4)
            time.sleep({seconds} if name == "verify" else 0)
print("done")
"""


def test_a_line_for_each_stage_without_a_terminal(tmp_path: Path) -> None:
    status, out, err = called(cwd=tmp_path, code=STAGES.format(enabled=True, seconds=2.5), env=SHOWN)
    assert (status, out) == (0, "done\n")
    lines = err.splitlines()
    assert [line.rpartition(" ")[2] for line in lines] == ["verify", "load", "save"]
    assert all(re.fullmatch(r"onnxsmith: \d+ s: \w+", line) for line in lines), "no codes of a terminal"


@pytest.mark.parametrize(
    ("enabled", "seconds", "env"),
    [(False, 2.5, SHOWN), (True, 0.1, SHOWN), (True, 2.5, {"ONNXSMITH_PROGRESS": "none"})],
    ids=["quiet", "short", "left out"],
)
def test_no_line(tmp_path: Path, enabled: bool, seconds: float, env: dict[str, str]) -> None:
    code = STAGES.format(enabled=enabled, seconds=seconds)
    assert called(cwd=tmp_path, code=code, env=env) == (0, "done\n", "")


def test_the_table_of_times_counts_all_that_the_user_waited_for(tmp_path: Path) -> None:
    """The start of Python and imports, and what lies outside the stages."""
    (tmp_path / "m.onnxtxt").write_text(
        '<ir_version: 10, opset_import: ["": 20]> g (float[n] x) => (float[n] y) { y = Neg(x) }'
    )
    begin = time.monotonic()
    status, out, _ = called("run", "m.onnxtxt", "--random", "--json", cwd=tmp_path)
    around = time.monotonic() - begin
    assert status == 0
    seconds = next(part["seconds"] for part in json.loads(out)["parts"] if part["kind"] == "timing")
    assert next(iter(seconds)) == "start-up"
    assert list(seconds)[-1] == "other"
    assert seconds["start-up"] > 0
    assert 0.5 * around < sum(seconds.values()) <= around + 0.05  # the rest is the end of Python


def test_a_reader_that_goes_away_is_no_failure(tmp_path: Path) -> None:
    command = f"{sys.executable} -m onnxsmith explain all | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == "0"
    assert "Traceback" not in done.stderr


def test_a_full_disk_under_the_report_is_exit_status_two(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "onnxsmith", "explain", "all"]
        done = subprocess.run(command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", ["explain all", "explain all --json", "inspect absent.onnx"])
@pytest.mark.parametrize("streams", [">/dev/full", "2>/dev/full", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_take_nothing(tmp_path: Path, words: str, streams: str) -> None:
    command = f"{sys.executable} -m onnxsmith {words} {streams}"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == (0 if words.startswith("explain") and streams != ">/dev/full" else 2)
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


def test_an_error_that_nobody_foresaw_is_exit_status_two(tmp_path: Path) -> None:
    program = (
        "from onnxsmith.cli.commands.explain import Explain\n"
        "def run(self): raise ZeroDivisionError('unforeseen')\n"
        "Explain.run = run\n"
        "from onnxsmith.cli.application import main\n"
        "import sys; sys.argv = ['onnxsmith', 'explain', 'all']; main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "internal/unexpected" in done.stderr
    assert "ZeroDivisionError: unforeseen" in done.stderr


def test_warnings_of_numpy_stay_off_the_screen(tmp_path: Path) -> None:
    program = (
        "import sys, warnings, numpy as np\n"
        "from onnxsmith.cli.commands.explain import Explain\n"
        "def run(self):\n"
        "    np.float32([1e38]) * np.float32([1e38]), np.float32([np.nan]).astype(int), np.mean([])\n"
        "    warnings.warn('of a user', stacklevel=1)\n"
        "    raise ZeroDivisionError\n"
        "Explain.run = run\n"
        "from onnxsmith.cli.application import main\n"
        "sys.argv = ['onnxsmith', 'explain', 'all']; main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "of a user" in done.stderr
    assert "RuntimeWarning" not in done.stderr


@pytest.mark.torch
def test_what_a_model_prints_stays_out_of_the_json(tmp_path: Path) -> None:
    (tmp_path / "chatty.py").write_text(
        "import ctypes, os, subprocess, sys, torch\nprint('loading')\n"
        "ctypes.CDLL(None).puts(b'kept in a buffer of C until the end')\n"
        "os.write(1, b'past Python')\nsubprocess.run([sys.executable, '-c', 'print(\"of a process\")'])\n"
        "class Net(torch.nn.Module):\n    def forward(self, x):\n        print('forward')\n        return x + 1\n"
        "def build(): return Net(), (torch.rand(2),)\n"
    )
    command = [sys.executable, "-m", "onnxsmith", "export", "chatty.py:build", "-o", "m.onnx", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert json.loads(done.stdout)["verdict"] == "done", done.stderr
    for text in ("loading", "kept in a buffer of C until the end", "past Python", "of a process"):
        assert text in done.stderr


@pytest.mark.torch
def test_a_factory_that_changes_the_folder_moves_no_file(tmp_path: Path) -> None:
    (tmp_path / "weights/more").mkdir(parents=True)
    (tmp_path / "net.py").write_text(
        "import os, torch\nos.chdir('weights/more')\n"
        "def build():\n    os.chdir(os.getcwd() + '/..')\n    return torch.nn.ReLU(), (torch.rand(2),)\n"
    )
    assert called("export", "net.py:build", "-o", "m.onnx", cwd=tmp_path)[0] == 0
    assert (tmp_path / "m.onnx").exists()


def test_the_words_of_a_model_are_printed_as_they_are(folder: Path) -> None:
    status, _, said = called("inspect", "root:x:0.onnx", cwd=folder)
    assert status == 2
    assert "root:x:0.onnx" in said


@pytest.mark.parametrize("where", ["_render", "_with_waiting"])
@pytest.mark.parametrize("interrupted", [False, True])
def test_a_report_that_fails_is_no_difference(where: str, interrupted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt may leave a library half imported, which then fails wherever it is used next."""

    def failing(*_: object, **__: object) -> None:
        raise RecursionError("numpy.exceptions")

    @contextmanager
    def unwinding() -> Iterator[Callable[[], bool]]:
        yield lambda: interrupted

    monkeypatch.setattr(application, where, failing)
    monkeypatch.setattr(application.interrupts, "unwinding", unwinding)
    done = CliRunner().invoke(application.app, ["op", "Relu"])
    assert done.exit_code == 2
    assert ("run/interrupted" if interrupted else "RecursionError") in done.stderr
