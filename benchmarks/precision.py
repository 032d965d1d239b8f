"""What quantisers do to accuracy, size and latency: real models, real labels, and each tool at its defaults.

    python benchmarks/precision.py [CASE …] [--peers NAME …] [--ours TO …] [--budget 0.5%] [--held-out] [--again]

For each case: the float32 model's metric, size and latency (onnxruntime, one thread), and for each tool the metric, how
much worse it is, size and latency as parts of float32's, the items whose outputs are not finite, and the CPU
seconds of the whole process that made the file. Each step runs in a process of its own with a time limit, and what
fails is shown as it is. Figures are kept in
`.bench-corpus/precision/results.json`; what is there is not measured again without `--again`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

from precision import case as cases
from precision.ours import OURS, exists
from precision.peers import PEERS
from precision.worker import MARK

FOLDER = Path(__file__).parent.parent / ".bench-corpus" / "precision"
LIMITS = {"prepare": 3600, "make": 600, "ours": 1800, "evaluate": 300}
"""Seconds. A network is trained within twenty minutes even on a core that others use too."""
PACKAGES = ("onnxruntime", "onnx", "nncf", "torch", "onnxsmith")


def work(what: str, *arguments: str) -> dict[str, Any]:
    """What the worker printed; `error` if it failed, died or took too long."""
    command = [sys.executable, "-m", "precision.worker", what, *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parent)}
    log = FOLDER / "worker.log"
    began = _children()
    # In a folder of its own: onnxruntime's pre-processing leaves files in the current one.
    with log.open("w", encoding="utf-8") as said, tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                timeout=LIMITS[what],
            )
        except subprocess.TimeoutExpired:
            return {"error": f"over {LIMITS[what]} s"}
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    for line in reversed(lines):
        if line.startswith(MARK):
            return json.loads(line.removeprefix(MARK)) | {"process cpu s": _children() - began}
    return {"error": f"the process ended with {done.returncode}: {' '.join(lines)[-300:]}"}


def _children() -> float:
    """CPU seconds of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def size(path: Path) -> int:
    """Bytes, weights in a file beside it too."""
    return sum(one.stat().st_size for one in path.parent.glob(f"{path.name}*"))


def made(name: str, model: Path, tool: str, given: argparse.Namespace) -> dict[str, Any]:
    """What a tool's file of this case comes to, or the error at the first step that failed."""
    folder = FOLDER / "made" / name / tool
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    out = folder / "model.onnx"
    if tool in PEERS:
        result = work("make", name, str(model), tool, str(out))
    else:
        more = ["held-out"] if given.held_out else []
        result = work("ours", name, str(model), tool.removeprefix("ours-"), given.budget, str(out), *more)
    if "error" in result:
        return {"error": result["error"], "step": "make"}
    figures = {"make cpu s": result["process cpu s"], "bytes": size(out)}
    result = work("evaluate", name, str(out), str(model))
    for other in folder.glob("*.processed.onnx*"):
        other.unlink()
    return figures | ({**result, "step": "evaluate"} if "error" in result else result)


def row(case: cases.Case, name: str, reference: dict[str, Any], figures: dict[str, Any]) -> str:
    """A line of the table."""
    if "error" in figures:
        return f"  {name:24} {figures['step']}: {' '.join(figures['error'].split())[:150]}"
    metrics, base = figures["metrics"], reference["metrics"]
    value = metrics[case.metric_name]
    also = "".join(f"  {key} {metrics[key]:.4f}" for key in case.also)
    return (
        f"  {name:24} {value:9.4f} {case.loss(base[case.metric_name], value):+9.4f}"
        f" {figures['bytes'] / reference['bytes']:7.3f} {figures['latency']['ratio']:8.2f}"
        f" {figures['not finite']:5d} {_seconds(figures)}{also}"
    )


def _seconds(figures: dict[str, Any]) -> str:
    return f"{figures['make cpu s']:6.1f}" if "make cpu s" in figures else " " * 6


SAME_SIZE = 1.05
"""A peer's file is compared with ours if it is at most this much larger."""
EIGHT_BITS = ("ort-dynamic", "ort-static", "ort-static-per-channel", "nncf")


def summary(results: dict[str, Any], names: list[str], budget: str) -> None:
    """Prints how ours in 8 bits stands beside each peer's file of the same size, and the CPU time beside the peer's."""
    budget_share = float(budget.removesuffix("%")) / 100 if budget.endswith("%") else 0.0
    pairs, worse, beyond, times = 0, [], [], []
    for name in names:
        case, kept = cases.load(name), results.get(name, {"tools": {}})
        mine = kept["tools"].get("ours-int8", {"error": ""})
        if "error" in mine:
            continue
        base = kept["float32"]["metrics"][case.metric_name]
        lost = case.loss(base, mine["metrics"][case.metric_name])
        for peer in EIGHT_BITS:
            theirs = kept["tools"].get(peer, {"error": ""})
            if "error" in theirs:
                continue
            times.append(mine["make cpu s"] / theirs["make cpu s"])
            if theirs["bytes"] > mine["bytes"] * SAME_SIZE:
                continue
            pairs += 1
            other = case.loss(base, theirs["metrics"][case.metric_name])
            worse += [f"{name} beside {peer}"] if lost > other else []
            beyond += [f"{name} beside {peer}"] if lost > max(other, budget_share * abs(base)) else []
    if times:
        print(
            f"\nint8 beside peers' files that are at most {SAME_SIZE - 1:.0%} larger: {pairs} pairs, ours worse in "
            f"{len(worse)} ({', '.join(worse) or 'none'}), of these out of budget in {len(beyond)}; CPU beside theirs: "
            f"median {statistics.median(times):.1f}, at most {max(times):.1f} times"
        )


def measure(name: str, tools: list[str], given: argparse.Namespace, results: dict[str, Any]) -> None:
    """Measures what is missing of a case, prints its table as it grows, keeps the results."""
    prepared = work("prepare", name, str(FOLDER))
    if "error" in prepared:
        print(f"\n{name}: {prepared['error']}")
        return
    case, model = cases.load(name), Path(prepared["model"])
    kept = results.setdefault(name, {"tools": {}})
    if given.again or "float32" not in kept:
        evaluated = work("evaluate", name, str(model), str(model))
        if "error" in evaluated:
            print(f"\n{name}: float32: {evaluated['error']}")
            return
        kept["float32"] = evaluated | {"bytes": size(model)}
    reference = kept["float32"]
    counted = f"{reference['items']} items, {reference['bytes'] / 2**20:.1f} MiB"
    timing = f"{reference['latency']['ms']:.2f} ms a run, {reference['cpu s']:.1f} s a test"
    better = "higher" if case.higher else "lower"
    print(f"\n{name}: {case.metric_name} ({better} is better); {counted}, {timing}")
    print(f"  {'':24} {'metric':>9} {'worse by':>9} {'size':>7} {'latency':>8} {'NaN':>5} {'CPU s':>6}")
    print(row(case, "float32", reference, reference), flush=True)
    for tool in tools:
        if given.again or tool not in kept["tools"]:
            kept["tools"][tool] = made(name, model, tool, given)
            _keep(results)
        print(row(case, tool, reference, kept["tools"][tool]), flush=True)
    _keep(results)


def _keep(results: dict[str, Any]) -> None:
    whole = FOLDER / "results.json"
    part = whole.with_suffix(".part")
    part.write_text(json.dumps(results, indent=1), encoding="utf-8")
    part.replace(whole)


def main() -> None:
    """Measures the cases and tools that were asked for, by default all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(cases.names())}")
    parser.add_argument("--peers", nargs="*", choices=list(PEERS), default=list(PEERS), metavar="NAME")
    parser.add_argument("--ours", nargs="*", choices=OURS, default=list(OURS), metavar="TO")
    parser.add_argument("--budget", default="0.5%")
    parser.add_argument("--held-out", action="store_true", help="ours does not see the test data")
    parser.add_argument("--again", action="store_true", help="measure what is kept, too")
    given = parser.parse_args()
    if unknown := set(given.cases) - set(cases.names()):
        parser.error(f"no such case: {', '.join(sorted(unknown))}; there are {', '.join(cases.names())}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    whole = FOLDER / "results.json"
    results = json.loads(whole.read_text(encoding="utf-8")) if whole.exists() else {}
    results["versions"] = {name: _version(name) for name in PACKAGES}
    print(", ".join(f"{name} {version}" for name, version in results["versions"].items()))
    tools = [*given.peers, *(f"ours-{to}" for to in given.ours if exists())]
    if not exists():
        print("this onnxsmith has no quantize: only the other tools are measured")
    for name in given.cases or cases.names():
        measure(name, tools, given, results)
    summary(results, given.cases or cases.names(), given.budget)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


if __name__ == "__main__":
    main()
