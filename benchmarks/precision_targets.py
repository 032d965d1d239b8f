"""Whether the files that `quantize` writes for a target build there: the real cases, the target's own software.

    python benchmarks/precision_targets.py [CASE …] [--target NAME …] [--to METHOD …] [--budget 0.5%]

For each case, method and target: `onnxsmith quantize --target`, in a process of its own, with the case's data and
metric. Then `onnxsmith check --target` asks the target about the file, which `quantize` did not ask. A line says what
came of it: `built`; `refused here`, if quantize wrote nothing and said why; `told`, if the file does not build and the
report said so; `SILENT`, if it does not build and nothing was said.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from importlib import metadata
from pathlib import Path
from typing import Any

from precision import case as cases

FOLDER = Path(__file__).parent.parent / ".bench-corpus" / "precision"
SECONDS = 1800
PACKAGES = ("onnxsmith", "onnxruntime", "openvino", "tensorrt-rtx-cu13")


def quantised(name: str, model: Path, to: str, target: str, budget: str, out: Path) -> dict[str, Any]:
    """What `quantize` says of a case, and whether it wrote the file."""
    import onnxsmith

    case = cases.load(name)
    result = onnxsmith.quantize(
        model,
        out,
        to=to,
        target=target,
        data=list(case.samples()),
        calibration=list(case.calibration()),
        metric=case.metric,
        decode=case.decode,
        budget=budget,
    )
    said = [result.report.headline, *(f"{one.what}: {one.where or one.why}" for one in result.report.problems)]
    return {"wrote": result.ok and out.exists(), "said": " | ".join(said)}


def checked(out: Path, target: str) -> dict[str, Any]:
    """What the target says of the file."""
    import onnxsmith

    report = onnxsmith.check(out, targets=[target]).report
    return {"fits": report.verdict.value not in ("different", "failed"), "said": report.headline}


def apart(*arguments: str) -> dict[str, Any]:
    """One of the two steps in a process of its own."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--step", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"over {SECONDS} s"}
    lines = done.stdout.splitlines()
    return json.loads(lines[-1]) if done.returncode == 0 and lines else {"error": done.stderr.strip()[-300:]}


def row(name: str, to: str, target: str, budget: str) -> tuple[str, str]:
    """What came of one file, and the words of it."""
    folder = FOLDER / "targets" / name
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / f"{to}-{target}.onnx"
    out.unlink(missing_ok=True)
    model = cases.load(name).prepare(FOLDER)
    made = apart("quantize", name, str(model), to, target, budget, str(out))
    if "error" in made:
        return "error", made["error"]
    if not made["wrote"]:
        return "refused here", made["said"]
    found = apart("check", str(out), target)
    if "error" in found:
        return "error", found["error"]
    if found["fits"]:
        return "built", made["said"]
    told = target in made["said"] and ("refuse" in made["said"] or "cannot" in made["said"])
    return ("told" if told else "SILENT"), f"{made['said']} | {found['said']}"


def main() -> None:
    """Prints one line for each file, and the sums."""
    if "--step" in sys.argv:
        step, *given = sys.argv[sys.argv.index("--step") + 1 :]
        if step == "quantize":
            name, model, to, target, budget, out = given
            print(json.dumps(quantised(name, Path(model), to, target, budget, Path(out))))
        else:
            print(json.dumps(checked(Path(given[0]), given[1])))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", default=cases.names())
    parser.add_argument("--target", nargs="*", default=["tensorrt-rtx", "openvino"], metavar="NAME")
    parser.add_argument("--to", nargs="*", default=["float16", "int8"], metavar="METHOD")
    parser.add_argument("--budget", default="0.5%")
    given = parser.parse_args()
    print(", ".join(f"{name} {metadata.version(name)}" for name in PACKAGES))
    counts: Counter[tuple[str, str]] = Counter()
    for target in given.target:
        for name in given.cases:
            for to in given.to:
                found, said = row(name, to, target, given.budget)
                counts[target, found] += 1
                print(f"{target:14} {name:18} {to:8} {found:13} {' '.join(said.split())[:300]}", flush=True)
    for (target, found), count in sorted(counts.items()):
        print(f"{target}: {found} {count}")


if __name__ == "__main__":
    main()
