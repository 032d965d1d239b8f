"""Whether an export ever hangs: new processes that hold an onnxruntime session of their own, and export from threads.

    python benchmarks/hangs.py [--runs 50] [--limit 300]

Each process makes an `onnxruntime.InferenceSession` with threads, then exports a module by TorchScript's exporter
(which runs in a new process), then eight modules from four threads. Prints how many processes ended, in how many
seconds, and how many files of the threads differ from the one that was exported alone. Exits with 1 where a process did
not end within the limit, or a file differs.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

WORK = """
import hashlib, tempfile, threading
from pathlib import Path
import numpy, onnxruntime, torch
import onnxsmith
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text

folder = Path(tempfile.mkdtemp())
save(from_text('<ir_version: 10, opset_import: ["": 20]> g (float[n] x) => (float[n] y) { y = Relu(x) }'),
     folder / "own.onnx")
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 4
held = onnxruntime.InferenceSession(folder / "own.onnx", options)
held.run(None, {"x": numpy.ones(1000, numpy.float32)})

class Frozen(torch.nn.Module):
    def forward(self, x):
        return x * float(x.sum() > 1e9) + 1

onnxsmith.export(Frozen(), (torch.rand(4),), output=folder / "script.onnx", strategy="torchscript")

module = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.LSTM(8, 4, batch_first=True)).eval()

def exported(number):
    path = folder / f"{number}.onnx"
    onnxsmith.export(module, (torch.rand(2, 3, 8),), output=path, dynamic={"input": {0: "batch"}})
    return hashlib.sha256(path.read_bytes()).hexdigest()

alone, found = exported(0), {}

def work(first):
    for number in (first, first + 1):
        found[number] = exported(number)

threads = [threading.Thread(target=work, args=(first,)) for first in range(1, 9, 2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sum(one != alone for one in found.values()) + 8 - len(found))
"""


def main() -> int:
    """Runs the processes one after the other and prints what came of them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one process")
    chosen = parser.parse_args()
    hung, failed, differ, seconds = 0, 0, 0, []
    for number in range(chosen.runs):
        start = time.monotonic()
        try:
            done = subprocess.run([sys.executable, "-W", "ignore", "-c", WORK], capture_output=True, text=True,
                                  timeout=chosen.limit, check=False)  # fmt: skip
        except subprocess.TimeoutExpired:
            hung += 1
            continue
        seconds.append(time.monotonic() - start)
        if done.returncode:
            failed += 1
            print(f"process {number} ended with {done.returncode}: {done.stderr[-500:]}")
        else:
            differ += int(done.stdout.split()[-1])
    usual = f"median {statistics.median(seconds):.0f} s, at most {max(seconds):.0f} s" if seconds else "none ended"
    print(f"{chosen.runs} processes: {hung} hung, {failed} failed; {differ} of {8 * chosen.runs} files differ; {usual}")
    return 1 if hung or failed or differ else 0


if __name__ == "__main__":
    sys.exit(main())
