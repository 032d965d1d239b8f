"""What it costs to start: processor time of small commands, beside other tools in the same run.

    python benchmarks/startup.py

Each figure is the median of 7 runs after one to warm up: user and system time of the process and those it waited for.
Other tools are measured if they are installed. Exits with 1 when a command is over its target, or loads torch or
onnxruntime.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text

RUNS = 7
TARGET = 0.3  # seconds of processor time for --help
HEAVY = ("torch", "onnxruntime")
PEERS = ("polygraphy", "onnxslim", "onnxsim")
MODEL = '<ir_version: 10, opset_import: ["": 20]> g (float[n] x) => (float[n] y) { y = Relu(x) }'

# The console script does the same; this runs from a checkout too.
ENTRY = "from onnxsmith.__main__ import main; main()"
TELL = f"print(*(set({HEAVY!r}) & sys.modules.keys()), file=sys.stderr)"
PLUGIN = 0.02
"""The seconds that the pytest plugin may add to `pytest --help`."""
PROBE = f"import atexit, sys; atexit.register(lambda: {TELL}); {ENTRY}"


@dataclass(frozen=True)
class Row:
    """One command. `target` is in seconds; None for what is measured only."""

    name: str
    command: list[str]
    target: float | None = None


def seconds(command: list[str], folder: Path, statuses: tuple[int, ...] = (0,)) -> float:
    """Processor time of one run, user and system, of the process and the children it waited for.

    Raises RuntimeError when the command ends with another status than these.
    """
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in statuses:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def median(command: list[str], folder: Path) -> float:
    """The median of `RUNS` runs after one to warm up, in seconds."""
    seconds(command, folder)
    return statistics.median(seconds(command, folder) for _ in range(RUNS))


def plugin_seconds(folder: Path) -> float:
    """What the pytest plugin adds to `pytest --help`: the median of the differences of pairs."""
    pytest = [sys.executable, "-m", "pytest", "--help"]
    without = [*pytest, "-p", "no:onnxsmith"]
    pairs = [(seconds(pytest, folder), seconds(without, folder)) for _ in range(RUNS + 1)]
    return statistics.median(used - bare for used, bare in pairs[1:])


def loads(arguments: list[str], folder: Path) -> str:
    """Which of `HEAVY` the command has loaded when it ends, as text."""
    command = [sys.executable, "-c", PROBE, *arguments]
    found = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return found.stderr.strip()


def rows() -> tuple[list[Row], list[Row]]:
    """Our commands, and what they are held beside, as far as it is installed."""
    own = [
        Row("onnxsmith --help", ["--help"], TARGET),
        Row("onnxsmith --version", ["--version"], TARGET),
        Row("onnxsmith inspect small.onnx", ["inspect", "small.onnx"]),
    ]
    peers = [Row("python -c 'import onnx'", [sys.executable, "-c", "import onnx"])]
    for name in PEERS:
        found = shutil.which(name, path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
        if found:
            peers.append(Row(f"{name} --help", [found, "--help"]))
    return own, peers


def main() -> int:
    """Measures, prints the table, returns the exit status."""
    own, peers = rows()
    failed = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save(from_text(MODEL), folder / "small.onnx")
        for row in own:
            loaded = loads(row.command, folder)
            if loaded:
                print(f"{row.name} loads {loaded}")
                failed = True
        beside = {peer.name: median(peer.command, folder) for peer in peers}
        times = {row.name: median([sys.executable, "-c", ENTRY, *row.command], folder) for row in own}
        own_plugin = plugin_seconds(folder)
    print(f"{'command':<32}{'processor time':>16}{'target':>10}" + "".join(f"{f'/ {name}':>28}" for name in beside))
    for row in own:
        target = f"{row.target:.2f} s" if row.target is not None else ""
        ratios = "".join(f"{times[row.name] / other:>27.2f}x" for other in beside.values())
        over = row.target is not None and times[row.name] > row.target
        failed = failed or over
        print(f"{row.name:<32}{times[row.name]:>14.2f} s{target:>10}{ratios}{'  OVER ITS TARGET' if over else ''}")
    for peer_name, other in beside.items():
        print(f"{peer_name:<32}{other:>14.2f} s")
    over = own_plugin > PLUGIN
    print(f"pytest --help with our plugin: {1000 * own_plugin:.0f} ms more{', OVER ITS TARGET' if over else ''}")
    return int(failed or over)


if __name__ == "__main__":
    sys.exit(main())
