"""Makes the corpus that the benchmark of `simplify` runs on, in a folder that git ignores.

    python benchmarks/corpus.py [--folder .bench-corpus] [--only CLASS …] [--names NETWORK …]

Classes: `real`, what installed packages ship; `light`, the classic networks that the onnx package ships; `raw`,
`default` and `ts`, networks of `models/architectures.py` by torch's new exporter as it translates, by the new exporter
as it is used, and by the TorchScript exporter, each with fixed and with open sizes; `converted`, pipelines and trees of
skl2onnx and int8 networks; `llama`, stacks of up to 128 layers for `scaling.py`. Nothing is downloaded: weights are
random, sizes small, and a file that is there is not made again. What torch could not export is printed and kept in
FOLDER/exports.jsonl.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).parent.parent / ".bench-corpus"
EXPORTED = ("raw", "default", "ts")
KINDS = ("real", "light", "converted", *EXPORTED)
"""What `simplify.py` measures, in this order."""
MODELS = Path(__file__).parent / "models"
TIMEOUT = 1200.0


def export(folder: Path, names: Sequence[str]) -> None:
    """Every network in every way, each in a process of its own."""
    from models.architectures import ARCHITECTURES

    log = folder / "exports.jsonl"
    known = {}
    if log.exists():
        known = {_key(line): line for line in map(json.loads, log.read_text(encoding="utf-8").splitlines())}
    for name in names or ARCHITECTURES:
        if not names and sum(key[1] == name for key in known) == 2 * len(EXPORTED):
            continue
        lines = _run("exporting.py", name, str(folder))
        for line in lines or [{"way": "any", "name": name, "sizes": "any", "error": "the process died"}]:
            known[_key(line)] = line
        log.write_text("".join(json.dumps(line) + "\n" for line in known.values()), encoding="utf-8")
    failed = [line for line in known.values() if line["error"]]
    print(f"{len(known)} exports, {len(failed)} of which torch could not do")
    for line in failed:
        print(f"  {line['way']} {line['name']} {line['sizes']}: {line['error']}")


def _key(line: dict[str, str]) -> tuple[str, str, str]:
    return line["way"], line["name"], line["sizes"]


def _run(script: str, *arguments: str) -> list[dict[str, str]]:
    """The JSON lines that the script printed; what else it said goes nowhere."""
    command = [sys.executable, str(MODELS / script), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        print(f"{script} {' '.join(arguments)}: over {TIMEOUT:.0f} s")
        return []
    if done.returncode:
        print(f"{script} {' '.join(arguments)} ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"way"')]


def llama(folder: Path) -> None:
    """The stacks that are not there yet; the largest takes two minutes."""
    from models.llama import LAYERS

    (folder / "llama").mkdir(parents=True, exist_ok=True)
    for layers in LAYERS:
        target = folder / "llama" / f"llama_{layers}.onnx"
        if not target.exists():
            print(f"llama of {layers} layers", flush=True)
            _run("llama.py", str(layers), str(target))


def main() -> None:
    """Makes what is not there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--only", nargs="*", default=[], metavar="CLASS", choices=(*KINDS, "llama"))
    parser.add_argument("--names", nargs="*", default=[], metavar="NETWORK")
    given = parser.parse_args()
    wanted = set(given.only or (*KINDS, "llama"))
    sys.path.insert(0, str(Path(__file__).parent))
    if wanted & {"real", "light"}:
        from models.shipped import link

        link(given.folder)
    if wanted.intersection(EXPORTED):
        export(given.folder, given.names)
    if "converted" in wanted:
        _run("converted.py", str(given.folder))
    if "llama" in wanted:
        llama(given.folder)
    for kind in (*KINDS, "llama"):
        print(f"{kind}: {len(list((given.folder / kind).glob('*.onnx')))} models")


if __name__ == "__main__":
    main()
