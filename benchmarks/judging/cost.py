"""What verification costs: its share of the processor time of `simplify` and of `export`, beside another checkout.

    python benchmarks/judging/cost.py [--folder .bench-corpus/judge] [--against CHECKOUT] [--rounds 3] [--sample N]

Each command runs with and without its verification, in turns, in one process that is warm; the processor time of that
process and of its children counts. With `--against` the sources of another checkout do the same in the same run, in
turns with these. Exits with 1 when verification's share, summed over the models, is larger than that checkout's.
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
import time
import warnings
from pathlib import Path
from typing import Any

BENCH = Path(__file__).parent.parent
sys.path.insert(0, str(BENCH))

SIMPLIFIED = (
    "silero_vad__silero_vad_16k_sequence", "magika__model", "onnx_asr__nemo80", "onnx_asr__kaldi_conv", "bert", "vit",
    "gpt2_cache", "resnet", "speechmos__Run_1663829550_Stage_0", "t5_encoder", "separable",
    "rapidocr_onnxruntime__ch_PP-OCRv4_rec_infer",
)  # fmt: skip
EXPORTED = ("bert", "gpt2", "vit", "resnet", "lstm", "separable", "llama", "graph")
SLACK = 1.05
"""How much larger a share may come out: rounds of one checkout differ by as much."""


def spent() -> float:
    """Seconds of processor time of this process and of the children it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def once(command: str, source: Any, verify: bool) -> float:
    """Seconds that one run takes. Raises what the command raises; a report that is not `done` is no figure."""
    import onnxsmith

    with tempfile.TemporaryDirectory() as folder:
        begin = spent()
        if command == "simplify":
            result = onnxsmith.simplify(source, Path(folder) / "m.onnx", verify=verify)
        else:
            result = onnxsmith.export(*source, output=Path(folder) / "m.onnx", verify=verify)
        seconds = spent() - begin
    if result.report.verdict.value != "done":
        raise ValueError(result.report.headline)
    return seconds


def serve() -> None:
    """A line `COMMAND PATH-OR-NETWORK` in, seconds with and without verification out."""
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        command, given = line.split()
        try:
            source: Any = Path(given)
            if command == "export":
                from judging.modules import build

                case = build(given)
                source = case.module, case.args
            print("FIGURES " + json.dumps([once(command, source, verify) for verify in (True, False)]), flush=True)
        except Exception as error:  # noqa: BLE001 — whatever stops it, the others are measured
            print("FIGURES " + json.dumps(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"), flush=True)


class Checkout:
    """A process with the sources of one checkout."""

    def __init__(self, root: Path) -> None:
        path = os.pathsep.join([str(root / "src"), str(BENCH)])
        environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, __file__, "--serve"]
        self._process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, command: str, given: str) -> Any:
        """Seconds with and without verification, or what stopped it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command} {given}\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("FIGURES "):
                return json.loads(line[8:])
        return "the process died"

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.wait()


def measured(checkouts: dict[str, Checkout], command: str, given: str, rounds: int) -> dict[str, Any]:
    """Medians by checkout, after one round to warm up."""
    found: dict[str, list[list[float]]] = {name: [] for name in checkouts}
    for number in range(rounds + 1):
        for name, checkout in checkouts.items():
            figures = checkout.ask(command, given)
            if isinstance(figures, str):
                return {name: figures}
            if number:
                found[name].append(figures)
    return {name: [statistics.median(one) for one in zip(*rows, strict=True)] for name, rows in found.items()}


def table(command: str, rows: list[tuple[str, dict[str, Any]]], checkouts: list[str]) -> tuple[str, dict[str, float]]:
    """Lines of the table, and verification's share of the sum by checkout."""
    head = [command, *(f"{name}: {title}" for name in checkouts for title in ("seconds", "of it verification"))]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    sums = {name: [0.0, 0.0] for name in checkouts}
    for given, figures in rows:
        if any(isinstance(one, str) for one in figures.values()):
            lines.append(f"| {given} | not measured: {next(one for one in figures.values() if isinstance(one, str))} |")
            continue
        cells = []
        for name in checkouts:
            verified, plain = figures[name]
            sums[name] = [sums[name][0] + verified, sums[name][1] + plain]
            cells += [f"{verified:.2f}", f"{1 - plain / verified:.0%}"]
        lines.append(f"| {given} | " + " | ".join(cells) + " |")
    shares = {name: 1 - plain / verified if verified else 0.0 for name, (verified, plain) in sums.items()}
    cells = [cell for name in checkouts for cell in (f"{sums[name][0]:.2f}", f"{shares[name]:.0%}")]
    lines.append("| all | " + " | ".join(cells) + " |")
    return "\n".join(lines), shares


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=BENCH.parent / ".bench-corpus" / "judge")
    parser.add_argument("--against", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=0, help="not used: nothing is drawn")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve()
        return 0
    roots = {"here": BENCH.parent, **({"there": given.against.absolute()} if given.against else {})}
    checkouts = {name: Checkout(root) for name, root in roots.items()}
    larger = False
    try:
        for command, names in (("simplify", SIMPLIFIED), ("export", EXPORTED)):
            rows = []
            for name in names[: given.sample]:
                what = str((given.folder / "float32" / f"{name}.onnx").absolute()) if command == "simplify" else name
                rows.append((name, measured(checkouts, command, what, given.rounds)))
            text, shares = table(command, rows, list(checkouts))
            print(text + "\n", flush=True)
            larger |= "there" in shares and shares["here"] > SLACK * shares["there"]
            larger |= not any(shares.values())
    finally:
        for checkout in checkouts.values():
            checkout.close()
    return int(larger)


if __name__ == "__main__":
    sys.exit(main())
