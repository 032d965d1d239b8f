"""`export` on models out of packages, beside both exporters of torch: each file held to its module by ONNX Runtime.

    python benchmarks/packages.py [--only PACKAGE[/MODEL] …] [--tools ours dynamo torchscript] [--again]
                                  [--file .bench-packages/results.json] [--check] [--list]

The models are those of `packages/models`: built by the constructors of torchvision, timm, transformers and others, with
random weights and dynamic axes. A file is right when onnxruntime computes with it what eager PyTorch does, at two other
sizes of each dynamic axis too; frozen, when only at the example's sizes. "Silent": a file that is wrong or frozen, of
which the exporter said no word. What was measured is kept, model by model, so that a run continues; `--again` measures
anew. `--check` runs each model at all its sizes, without exporting it. `--list` prints each model that is not right.
Exits with 1 when a target is missed: 95% right, no silent file, and right wherever another exporter is.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
TOOLS = ("ours", "dynamo", "torchscript")
Results = dict[str, dict[str, dict[str, Any]]]
"""Model → tool → record."""


TARGET = 0.95
"""The share of right files; a choice."""


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--tools", nargs="+", default=list(TOOLS), choices=TOOLS)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--file", type=Path, default=Path(".bench-packages/results.json"))
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--list", dest="listed", action="store_true")
    parser.add_argument("--tables", action="store_true", help="print what is known")
    options = parser.parse_args()
    if options.check:
        return check(options.only)
    results: Results = json.loads(options.file.read_text()) if options.file.exists() else {}
    if not options.tables:
        run(options, results)
    print(summary(results))
    if options.listed:
        print(listing(results))
    return 1 if missed(results) else 0


def run(options: argparse.Namespace, results: Results) -> None:
    """Measures what is missing, and keeps it after each model."""
    from packages.case import MODELS

    options.file.parent.mkdir(parents=True, exist_ok=True)
    for package in MODELS:
        if not chosen(package, options.only):
            continue
        command = [sys.executable, "-W", "ignore", "-m", "packages.worker", package]
        with subprocess.Popen(
            command, cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as worker:
            assert worker.stdin is not None
            assert worker.stdout is not None
            for name in json.loads(worker.stdout.readline()):
                known = {} if options.again else results.get(name, {})
                missing = [tool for tool in options.tools if tool not in known]
                if not missing or not chosen(name, options.only):
                    continue
                worker.stdin.write(json.dumps({"case": name, "tools": missing}) + "\n")
                worker.stdin.flush()
                results[name] = {**results.get(name, {}), **json.loads(worker.stdout.readline())}
                options.file.write_text(json.dumps(results, indent=1))
                said = ", ".join(f"{tool} {results[name][tool]['verdict']}" for tool in missing)
                print(f"{name}: {said}", flush=True)
            worker.stdin.close()


def chosen(name: str, only: list[str]) -> bool:
    """Whether a package or a model is asked for."""
    package = name.partition("/")[0]
    return not only or any(one in (name, package) or (name == package and one.startswith(f"{name}/")) for one in only)


def check(only: list[str]) -> int:
    """Runs each model at all its sizes; 1 if one does not run."""
    from packages.worker import warm

    warm()
    from packages.case import MODELS, cases
    from packages.judge import answer, first

    bad = count = 0
    for package in MODELS:
        if not chosen(package, only):
            continue
        for name, case in cases(package).items():
            if not chosen(name, only):
                continue
            count += 1
            label = "built"
            try:
                module = case.module()
                weights = sum(parameter.numel() for parameter in module.parameters())
                for label, given in case.trials():  # noqa: B007  # the last one is said
                    answer(module, given)
                print(f"{name}: {weights / 1e6:.1f} million weights", flush=True)
            except Exception as error:  # noqa: BLE001  # a mistake in the case
                bad += 1
                print(f"{name}: {label}: {first(error)}", flush=True)
    print(f"{count} models, {bad} that do not run")
    return int(bad > 0)


def complete(results: Results) -> Results:
    """The models that all tools were measured on."""
    return {name: found for name, found in results.items() if all(tool in found for tool in TOOLS)}


def behind(results: Results) -> list[str]:
    """The models that another exporter gets right, and onnxsmith does not."""
    return [
        name
        for name, found in complete(results).items()
        if found["ours"]["verdict"] != "right" and any(found[tool]["verdict"] == "right" for tool in TOOLS[1:])
    ]


def missed(results: Results) -> bool:
    """Whether a target is missed."""
    records = [found["ours"] for found in complete(results).values()]
    right = sum(record["verdict"] == "right" for record in records)
    return bool(right < TARGET * len(records) or any(map(is_silent, records)) or behind(results))


def summary(results: Results) -> str:
    """The ratios."""
    full = complete(results)
    lines = [f"{len(full)} models"]
    for tool in TOOLS:
        verdicts = [found[tool]["verdict"] for found in full.values()]
        counts = ", ".join(f"{verdict} {verdicts.count(verdict)}" for verdict in dict.fromkeys(sorted(verdicts)))
        silent = [name for name, found in full.items() if is_silent(found[tool])]
        share = verdicts.count("right") / max(len(verdicts), 1)
        lines.append(
            f"{tool}: right {verdicts.count('right')} of {len(full)} ({share:.1%}); {counts}; silent {len(silent)}"
        )
    best = sum("right" in (found[tool]["verdict"] for tool in TOOLS[1:]) for found in full.values())
    lines.append(f"the better of both peers: right {best} of {len(full)}")
    lines.append(f"right by a peer, not by ours: {len(behind(results))}: {', '.join(behind(results))}")
    return "\n".join(lines)


def is_silent(record: dict[str, Any]) -> bool:
    """A file that is wrong or frozen, without a warning."""
    return record["verdict"] in ("wrong", "frozen") and not record.get("warned")


def listing(results: Results) -> str:
    """What is not right, and why."""
    lines = []
    for name, found in results.items():
        if found.get("ours", {}).get("verdict") == "right":
            continue
        for tool, record in found.items():
            mark = " SILENT" if is_silent(record) else ""
            lines.append(f"{name} {tool}: {record['verdict']}{mark} {record['why'][:400]}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
