"""What the machine may do to a command: names that are no text, few open files, no room, no permission, Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import onnxsmith

SOURCE = '<ir_version: 8, opset_import: ["": 17]>\ng (float[600] x) => (float[600] y) { i = Identity(x) y = Add(i, w) }'
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(onnxsmith.__file__).parents[1])}
ODD = os.fsdecode(b"m\xff\xfe.onnx")


def write(path: Path, location: str = "") -> None:
    proto = parser.parse_model(SOURCE)
    tensor = numpy_helper.from_array(np.arange(600, dtype=np.float32), "w")
    if location:
        (path.parent / location).write_bytes(tensor.raw_data)
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)
    proto.graph.initializer.append(tensor)
    path.write_bytes(proto.SerializeToString())


def command(*words: str | Path, cwd: Path, before: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a command; `before` is what the process does first."""
    code = f"import sys; {before or 'pass'}\nfrom onnxsmith.__main__ import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, words)],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        cwd=cwd,
        env={**ENVIRONMENT, **environment},
    )


# Names that are no text


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every name is text")
@pytest.mark.parametrize("location", ["", "weights.bin"])
@pytest.mark.parametrize("in_odd_folder", [False, True])
def test_names_that_are_no_text(tmp_path: Path, location: str, in_odd_folder: bool) -> None:
    folder = tmp_path / os.fsdecode(b"\xffolder") if in_odd_folder else tmp_path
    folder.mkdir(exist_ok=True)
    write(folder / ODD, location)
    for words in (
        ["inspect", ODD, "--html", os.fsdecode(b"r\xff.html")],
        ["run", ODD, "--random", "-o", os.fsdecode(b"o\xff.npz")],
        ["compare", ODD, ODD],
        ["simplify", ODD, "-o", os.fsdecode(b"s\xff.onnx")],
        ["simplify", ODD, "-o", os.fsdecode(b"e\xff.onnx"), "--external-data", "--json"],
        ["dump", ODD, "-o", os.fsdecode(b"v\xff.safetensors")],
    ):
        done = command(*words, cwd=folder)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
    model = onnx.load_from_string((folder / os.fsdecode(b"e\xff.onnx")).read_bytes())
    (entry,) = [entry.value for entry in model.graph.initializer[0].external_data if entry.key == "location"]
    assert (folder / entry).stat().st_size >= 2400


def test_a_name_that_is_no_text_and_not_there(tmp_path: Path) -> None:
    done = command("inspect", ODD, cwd=tmp_path)
    assert done.returncode == 2
    assert "model/not-found" in done.stderr


# Few open files


@pytest.mark.parametrize("limit", [*range(4, 40, 3), 60])
@pytest.mark.parametrize("verb", ["inspect", "simplify"])
def test_a_low_limit_on_open_files_is_a_problem(tmp_path: Path, verb: str, limit: int) -> None:
    write(tmp_path / "m.onnx", "weights.bin")
    words = [verb, "m.onnx", *(["-o", "out.onnx"] if verb == "simplify" else [])]
    lower = f"import resource as r; r.setrlimit(r.RLIMIT_NOFILE, ({limit}, {limit}))"
    done = command(*words, cwd=tmp_path, before=lower)
    assert done.returncode in (0, 2), done.stderr
    assert "Traceback" not in done.stderr
    assert "internal/unexpected" not in done.stderr
    if done.returncode == 2:
        assert done.stderr.strip()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "weights.bin"]


# No room, no permission


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A full file system of one megabyte, but for a few bytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("nothing may be mounted here")
    (folder / "filler").write_bytes(b"1" * 60_000)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.parametrize(
    "words",
    [
        "simplify m.onnx -o disk/m.onnx",
        "run m.onnx --random -o disk/out.npz",
        "dump m.onnx -o disk/out.npz",
        "dump m.onnx -o disk/out.safetensors",
        "inspect m.onnx --html disk/report.html",
        "compare m.onnx other.onnx --worst-input disk/worst.npz",
    ],
)
def test_a_full_disk_is_a_problem(tmp_path: Path, small_disk: Path, words: str) -> None:
    write(tmp_path / "m.onnx")
    proto = onnx.load(tmp_path / "m.onnx")
    proto.graph.node[1].op_type = "Sub"
    onnx.save(proto, tmp_path / "other.onnx")
    target = small_disk / words.split("disk/")[1]
    target.write_text("<!doctype html> old" if target.suffix == ".html" else "old")
    before = target.read_bytes()
    done = command(*words.split(), cwd=tmp_path)
    assert done.returncode == 2, done.stdout
    assert "Traceback" not in done.stderr
    assert any(id_ in done.stderr for id_ in ("save/failed", "report/not-written")), done.stderr
    assert target.read_bytes() == before
    assert sorted(path.name for path in small_disk.iterdir()) == sorted(["filler", target.name])


def test_a_full_folder_for_temporary_files_is_a_problem(tmp_path: Path, small_disk: Path) -> None:
    (tmp_path / "m.onnxtxt").write_text(SOURCE.replace("{ i", "<float[600] w = {" + "1.5, " * 599 + "1.5}> { i"))
    done = command("run", "m.onnxtxt", "--random", cwd=tmp_path, TMPDIR=str(small_disk))
    assert "Traceback" not in done.stderr
    assert "internal/unexpected" not in done.stderr
    assert done.returncode in (0, 2)


@pytest.mark.parametrize(
    "words", ["simplify m.onnx -o disk/m.onnx", "run m.onnx --random -o disk/o.npz", "dump m.onnx -o disk/v.npz",
              "inspect m.onnx --html disk/r.html", "reduce m.onnx -o disk/r --command false --input in.npz"]
)  # fmt: skip
def test_a_disk_that_may_not_be_written_is_a_problem(tmp_path: Path, small_disk: Path, words: str) -> None:
    write(tmp_path / "m.onnx")
    np.savez(tmp_path / "in.npz", x=np.zeros(600, np.float32))
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    done = command(*words.split(), cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "internal/unexpected" not in done.stderr
    assert [path.name for path in small_disk.iterdir()] == ["filler"]


# Ctrl-C


@pytest.mark.parametrize("after", [0.0, 0.02, 0.05, 0.1, 0.2, 0.4])
def test_an_interrupt_while_importing_ends_with_one_line(tmp_path: Path, after: float) -> None:
    write(tmp_path / "m.onnx")
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from onnxsmith.base import interrupts; interrupts.begin(); print('begun', flush=True)\n"
        "from onnxsmith.__main__ import main; main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, "simplify", "m.onnx", "-o", "out.onnx"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=ENVIRONMENT,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert "Traceback" not in said
    if process.returncode == 130:
        assert said == "onnxsmith: interrupted\n"
    else:  # it was at work already
        assert process.returncode == 2
        assert "run/interrupted" in said
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


def test_a_library_that_makes_another_error_of_an_interrupt(tmp_path: Path) -> None:
    write(tmp_path / "m.onnx")
    code = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "onnxsmith.viewer.inspection.inspect":
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt:
                raise ImportError("could not be imported")
sys.meta_path.insert(0, Finder())
from onnxsmith.__main__ import main; main()
"""
    done = subprocess.run(
        [sys.executable, "-c", code, "inspect", "m.onnx"], capture_output=True, text=True, check=False, cwd=tmp_path,
        env=ENVIRONMENT,
    )  # fmt: skip
    assert done.returncode == 2
    assert "run/interrupted" in done.stderr


@pytest.mark.parametrize("module", ["onnx.onnx_cpp2py_export", "google._upb._message"])
def test_an_interrupt_waits_for_a_native_module_that_is_loaded(tmp_path: Path, module: str) -> None:
    write(tmp_path / "m.onnx")
    code = f"""
import os, signal, sys
from importlib.machinery import ExtensionFileLoader
signal.signal(signal.SIGINT, signal.default_int_handler)
def called(frame, event, argument):  # sends the signal in the first Python function that the module itself calls
    loader = frame.f_back and frame.f_back.f_back and frame.f_back.f_back.f_locals.get("self")
    if event == "call" and isinstance(loader, ExtensionFileLoader) and loader.name == "{module}":
        sys.setprofile(None)
        print("sent", flush=True)
        os.kill(os.getpid(), signal.SIGINT)
sys.setprofile(called)
from onnxsmith.__main__ import main; main()
"""
    done = subprocess.run(
        [sys.executable, "-c", code, "simplify", "m.onnx", "-o", "out.onnx"], capture_output=True, text=True,
        check=False, cwd=tmp_path, env=ENVIRONMENT,
    )  # fmt: skip
    assert done.stdout.startswith("sent")
    assert done.returncode == 2, done.stderr
    assert "run/interrupted" in done.stderr
    assert "; not written: out.onnx" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


@pytest.mark.parametrize("sent", ["SIGINT", "SIGTERM"])
def test_an_interrupt_that_comes_in_a_finaliser_still_ends_the_command(tmp_path: Path, sent: str) -> None:
    write(tmp_path / "m.onnx")
    code = f"""
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from onnxsmith.cli.commands.simplify import Simplify
class Held:
    def __del__(self):
        os.kill(os.getpid(), signal.{sent})
        time.sleep(0.01)
def run(self):
    Held()
    time.sleep(50)
Simplify.run = run
from onnxsmith.__main__ import main; main()
"""
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code, "simplify", "m.onnx", "-o", "out.onnx"], capture_output=True, text=True,
        check=False, cwd=tmp_path, env=ENVIRONMENT,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "run/interrupted" in done.stderr
    assert "Exception ignored" not in done.stderr
    assert time.monotonic() - begun < 45
