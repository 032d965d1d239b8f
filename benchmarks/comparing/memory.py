"""What memory a comparison by layer of BERT-base takes: that of the command and of all its processes together.

    python benchmarks/comparing/memory.py [--words 128] [--memory 512]

Twelve layers of width 768 with eager attention and random weights, 0.44 GB of them, and one row of words, held to files
that torch made of it:

- `program`: the module, and the file of torch.onnx, in which a normalisation is one operation;
- `file`: the file of torch's older exporter, in which it is nine, as onnxruntime runs it and with optimisations off.

Counted is what the command and its children hold every 20 ms, pages that they share once (Pss of Linux). `--memory` is
the command's own option, megabytes for the tensors that are looked at together.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

TARGET = 2e9
LEAST = {"program": 0, "file": 500}
"""Tensors that have to be paired; the program has no more than some 300 that a file has, too."""

MODEL = """
import torch
from transformers import BertConfig, BertModel


class Words(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bert = BertModel(BertConfig(attn_implementation="eager"), add_pooling_layer=False)

    def forward(self, words):
        return self.bert(words).last_hidden_state


def build():
    torch.manual_seed(0)
    return Words().eval(), (torch.randint(0, 30000, (1, {words})),)


if __name__ == "__main__":
    module, args = build()
    named = dict(input_names=["words"], output_names=["hidden"], verbose=False)
    torch.onnx.export(module, args, "program.onnx", external_data=False, **named)
    torch.onnx.export(module, args, "file.onnx", dynamo=False, opset_version=16, **named)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=128)
    parser.add_argument("--memory", type=int, default=512)
    asked = parser.parse_args()
    missed = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "model.py").write_text(MODEL.format(words=asked.words))
        subprocess.run([sys.executable, "model.py"], cwd=folder, check=True, capture_output=True)
        words = np.random.default_rng(0).integers(0, 30000, (1, asked.words))
        np.savez(folder / "words.npz", words=words)
        sides = {"program": ("model.py:build", "program.onnx"), "file": ("file.onnx", "file.onnx@onnxruntime:disable")}
        for way, least in LEAST.items():
            peak, found = _compared(folder, sides[way], asked.memory)
            missed |= peak > TARGET or found["tensors"] < least
            print(f"{way:8}{found['tensors']:5} tensors, {found['runs']} runs, at most {peak / 1e9:.2f} GB", flush=True)
    return int(missed)


def _compared(folder: Path, sides: tuple[str, str], memory: int) -> tuple[int, dict[str, int]]:
    """The most bytes at once, and what the report says."""
    command = [sys.executable, "-m", "onnxsmith", "compare", *sides, "--per-layer", "--memory", str(memory), "--json"]
    command += ["--only-given", "--input", "words.npz"]
    with (folder / "report.json").open("w") as said:
        process = subprocess.Popen(command, cwd=folder, stdout=said, stderr=subprocess.DEVNULL)
        peak = 0
        while process.poll() is None:
            peak = max(peak, sum(map(_held, _tree(process.pid))))
            time.sleep(0.02)
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    assert process.returncode == 0, report["headline"]
    layers = next(part for part in report["parts"] if "layers" in part)
    return peak, {"tensors": len(layers["layers"]), "runs": layers["runs"]}


def _tree(process: int) -> list[int]:
    """A process and those that it started, and they."""
    found = [process]
    for one in found:
        try:
            found += map(int, Path(f"/proc/{one}/task/{one}/children").read_text().split())
        except OSError:  # it has ended
            continue
    return found


def _held(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


if __name__ == "__main__":
    sys.exit(main())
