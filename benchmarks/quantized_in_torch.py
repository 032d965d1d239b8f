"""Networks that were quantised in PyTorch: exported by onnxsmith and by `torch.onnx.export`.

    python benchmarks/quantized_in_torch.py [--only TEXT]

Needs torchao (`pip install --no-deps torchao`). For each file: whether it stores every quantised weight as integers,
and how far it is from PyTorch on onnxruntime without and with optimisations and on OpenVINO, in steps of 8 bits over
the range of the output, or in the steps of its last quantiser if they are wider. `-` is a file that does not load. A
file agrees if it is at most one step away everywhere.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import torch
from exporting.quantized_networks import NETWORKS, build

import onnxsmith
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Options

RUNTIMES = (("onnxruntime", "disable"), ("onnxruntime", ""), ("openvino", ""))
ONE = 1.01
"""One step, and the rounding of floats."""
INPUTS = 8
"""Inputs on which each file is compared. A choice."""
_NARROW = {ir.DataType.INT8, ir.DataType.UINT8, ir.DataType.INT4, ir.DataType.UINT4}
_SMALL = 256
"""Elements up to which a tensor counts as no weight: biases, scales. A choice."""
_FLOAT_IN_TORCH = {
    "PT2E, X86Inductor, attention": 1,
    "torchao, int8 weights, attention": 1,
    "torchao, int4 embedding": 4,
}
"""Large weights that PyTorch itself keeps as floats: embeddings, or what is not in the embedding."""


def ours(module: Any, args: Any, path: Path) -> str:
    result = onnxsmith.export(module, args, output=path)
    return "" if path.exists() else result.report.headline


def theirs(module: Any, args: Any, path: Path) -> str:
    torch.onnx.export(module, args, str(path), dynamo=True, verbose=False, external_data=False)
    return ""


def expected(module: Any, args: Any) -> tuple[list[tuple[Any, ...]], list[np.ndarray[Any, Any]]]:
    """Inputs, and what the network gives for them."""
    inputs = [args]
    for seed in range(1, INPUTS):
        torch.manual_seed(seed)
        inputs.append(
            tuple(torch.randn_like(a) if a.is_floating_point() else torch.randint_like(a, 0, 100) for a in args)
        )
    with torch.no_grad():
        return inputs, [module(*given).numpy() for given in inputs]


def stored(name: str, path: Path) -> str:
    """The forms of the large weights in a file, with their numbers; `!` if floats are among them that
    PyTorch has as integers."""
    model = ir.load(path)
    large = [one.const_value for one in model.graph.initializers.values() if one.const_value is not None]
    kinds = Counter(one.dtype.name.lower() for one in large if one.size > _SMALL)
    pairs = Counter(node.op_type for node in model.graph)
    count = sum(one.dtype not in _NARROW for one in large if one.size > _SMALL)
    floats = count > _FLOAT_IN_TORCH.get(name, 0)
    said = " ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    return f"{said}{' !' if floats else ''}, {pairs['QuantizeLinear']} Q {pairs['DequantizeLinear']} DQ"


def steps(path: Path, runtime: tuple[str, str], inputs: Any, wanted: Any) -> float | None:
    """The largest difference in steps of 8 bits over the range of the output; None if the runtime refuses the file."""
    name, level = runtime
    options = Options(optimization=level) if level else Options()
    step = max((max(one.max() for one in wanted) - min(one.min() for one in wanted)) / 255, _last_step(path))
    try:
        with runtimes.get(name).prepare(path, options) as session:
            worst = 0.0
            for given, answer in zip(inputs, wanted, strict=True):
                names = [port.name for port in session.signature.inputs]
                got = session.run({name: one.numpy() for name, one in zip(names, given, strict=True)})
                worst = max(worst, float(np.abs(next(iter(got.values())) - answer).max() / step))
    except onnxsmith.OnnxsmithError:
        return None
    return worst


def _last_step(path: Path) -> float:
    """The scale with which the file dequantises its output; 0 if it does not."""
    model = ir.load(path)
    maker = model.graph.outputs[0].producer()
    if maker is None or maker.op_type != "DequantizeLinear":
        return 0.0
    scale = ir.convenience.get_const_tensor(maker.inputs[1])
    return float(scale.numpy().max()) if scale is not None else 0.0


def row(name: str, folder: Path) -> tuple[list[str], list[bool]]:
    cells, flags = [name], []
    module, args = build(name)
    inputs, wanted = expected(module, args)
    for export in (ours, theirs):
        path = folder / f"{export.__name__}.onnx"
        path.unlink(missing_ok=True)
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                why = export(module, args, path)
        except Exception as error:  # noqa: BLE001 — a benchmark counts every error
            why = f"{type(error).__name__}: {error}".splitlines()[0]
        if why:
            print(f"  {name}: {export.__name__}: {why[:200]}", file=sys.stderr)
            cells += ["not exported", "", "", ""]
            flags.append(False)
            continue
        found = [steps(path, runtime, inputs, wanted) for runtime in RUNTIMES]
        form = stored(name, path)
        cells += [form, *("-" if one is None else f"{one:.2f}" for one in found)]
        flags.append("!" not in form and " 0 DQ" not in form and all(one is not None and one <= ONE for one in found))
    return cells, flags


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="networks whose name contains this text")
    asked = parser.parse_args()
    logging.disable(logging.ERROR)
    warnings.simplefilter("ignore")
    heads = ["network"]
    for tool in ("onnxsmith", "torch.onnx"):
        heads += [tool, "ort off", "ort on", "OpenVINO"]
    print("| " + " | ".join(heads) + " |")
    print("|" + " --- |" * len(heads))
    total, good = 0, [0, 0]
    with tempfile.TemporaryDirectory() as folder:
        for name in NETWORKS:
            if asked.only in name:
                cells, flags = row(name, Path(folder))
                print("| " + " | ".join(cells) + " |", flush=True)
                total += 1
                good = [before + one for before, one in zip(good, flags, strict=True)]
    print(f"\ninteger weights, loaded and within one step on all three: onnxsmith {good[0]} of {total}, "
          f"torch.onnx {good[1]} of {total}")  # fmt: skip


if __name__ == "__main__":
    main()
